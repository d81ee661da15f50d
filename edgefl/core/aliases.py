"""What others call by another name, or look for among another kind: where the hint of an unknown name leads.

A run carries the names of files alone, so an alias is told and not resolved.
"""

import re
from collections.abc import Mapping
from shlex import quote

from edgefl.core.errors import one_of

# How one of a kind is set in a scenario, of kinds that are taken for others; `edgefl show` explains the rest.
SETTINGS = {
    "device": "fleet={{members: [{{device: {}, link: ethernet}}]}}",
    "measure": "evaluate.measures=[{}]",
    "method": "method={}",
    "policy": "server.policy={}",
    "selector": "server.selector={}",
}

# What others call so, in lower case, without separators and "raspberry": its kind, and what to write.
ALIASES = {
    **dict.fromkeys(("pi4", "pi4b"), ("device", "raspberry-pi-4b")),
    "pi5": ("device", "raspberry-pi-5"),
    **dict.fromkeys(("pizero", "pizero2", "pizero2w"), ("device", "raspberry-pi-zero-2w")),
    "fedadagrad": ("method", "{name: fedopt, optimizer: adagrad}"),
    "fedadam": ("method", "{name: fedopt, optimizer: adam}"),
    "fedavgm": ("method", "{name: fedopt, optimizer: avgm}"),
    "fedyogi": ("method", "{name: fedopt, optimizer: yogi}"),
    "async": ("policy", "fedasync"),
    "fmnist": ("dataset", "fashion-mnist"),
    "noniid": ("partition", "dirichlet"),
    "tifl": ("selector", "tiers"),
}
SPELLING = re.compile(r"[-_ ]|^r(as(pberry)?)?(?=[-_ ]?pi)")


def lead(kind: str, name: str, having: Mapping[str, str]) -> str:
    """A hint to what others call so, or to what of another kind is ``having`` the name; "" if there is none.

    ``kind`` is the one asked for, "" for any; kinds are in the singular.
    """
    other, value = ALIASES.get(SPELLING.sub("", name.casefold())) or next(iter(having.items()), ("", ""))
    own = re.sub(r"{name: ([^,]*).*", r"\1", value)
    if own == value and kind in {other, ""}:
        return one_of([repr(own) if kind else f"{other} {own}"] if own else [])
    setting = SETTINGS.get(other, "").format(value)
    how = f"--set {quote(setting)}" if setting else f"edgefl show {other} {own}"
    return f"there is the {other} {own!r}: {how}" if own else ""
