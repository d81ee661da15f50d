"""docs/extending.md lists all that a component may define, as the classes of the kinds have it."""

import inspect

from pages import check, table

from edgefl.core import catalogue
from edgefl.core.params import Component

KINDS = catalogue.KINDS[catalogue.KINDS.index("methods") :]  # those before are YAML


def hooks(of: type[Component]) -> list[tuple[str, str]]:
    """What a class has for its files to define, its constants first, and whether they must."""
    found = [(f"`{name}`", "") for name in sorted(of.__class_vars__) if name.isupper() and name in vars(of)]
    for name, method in vars(of).items():
        if inspect.isfunction(method) and name[0] != "_" and name not in INHERITED:
            names = [each for each in inspect.signature(method).parameters if each != "self"]
            required = "required" if name in of.__abstractmethods__ else ""
            found.append((f"`{name}({', '.join(names)})`", required))
    return found


# What boards have for others to ask, of what their files define.
INHERITED = {"refusal", "launch_known", "reads", "known"}


def test_the_table_has_what_the_classes_have(request):
    """By kind: the class, and what its files may define."""
    rows = []
    for kind in KINDS:
        base = catalogue.base_of(kind)
        every = [f"**{hook}**" if required else hook for hook, required in hooks(base)]
        rows.append((f"`{kind}/`", f"`{base.__module__}.{base.__name__}`", ", ".join(every)))
    check("extending.md", "hooks", table(("folder", "class", "**required** and other"), rows), request.config)
