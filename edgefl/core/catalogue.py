"""The catalogue of components: one file adds one component.

Shipped components are in the package (code) and in the checkout's or the wheel's folders (YAML).
Users' own are in folders of the same names under each directory on ``EDGEFL_PATH``; nothing else
there is read or executed. Two files of one name are an error that names both.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from edgefl.core.errors import EdgeflError, UnknownNameError, UserError, in_one_line, nearest
from edgefl.core.user_code import LOADED, user_code

_PACKAGE = Path(__file__).parent.parent

# kind -> (folder under the package or the shipped folder, suffix)
_CODE = {
    "methods": "methods",
    "models": "models",
    "policies": "world/policies",
    "selectors": "world/selectors",
    "codecs": "protocol/codecs",
    "partitions": "data/partitions",
    "datasets": "data/sources",
    "augmentations": "data/augmentations",
    "engines": "compute/engines",
    "optimizers": "core/optimizers",
    "schedules": "core/schedules",
    "samplers": "core/samplers",
    "availability": "core/availability",
    "speed": "core/speed",
}
_YAML = ("devices", "profiles", "links", "scenarios")
# Kinds whose folder is inside another kind's folder.
_INSIDE = {"links": "profiles/links"}

KINDS = (*_YAML, *_CODE)

# What edgefl calls in a file of each kind; the others' files have a class ``Params`` with methods.
_FUNCTIONS = {
    "methods": ("build",),
    "models": ("build",),
    "policies": ("serve",),
    "selectors": ("build",),
    "codecs": ("sizes",),
    "partitions": ("split",),
    "augmentations": ("augment",),
    "engines": ("build",),
}


@dataclass(frozen=True)
class Entry:
    """One component.

    Attributes:
        name: the file's name without suffix; a scenario's name includes its folders.
        path: the file.
        module: the module's dotted name if the file is part of the package, else "".
    """

    name: str
    path: Path
    module: str = ""


def shipped(kind: str) -> Path:
    """The folder of shipped files of a kind: in the checkout, or in the installed package."""
    if kind in _CODE:
        return _PACKAGE / _CODE[kind]
    folder = _INSIDE.get(kind, kind)
    inside = _PACKAGE / "shipped" / folder
    return inside if inside.is_dir() else _PACKAGE.parent / folder


def user_folders() -> list[Path]:
    """The directories on ``EDGEFL_PATH``.

    Raises:
        UserError: one of them is not a directory.
    """
    folders = [
        Path(text).expanduser() for text in os.environ.get("EDGEFL_PATH", "").split(os.pathsep) if text
    ]
    for folder in folders:
        if not folder.is_dir():
            raise UserError(
                f"{folder} is not a directory", where="EDGEFL_PATH", hint="separate directories with ':'"
            )
    return folders


def user_files() -> list[dict[str, bytes]]:
    """The component files in each directory on ``EDGEFL_PATH``, by their relative paths."""
    return [
        {
            path.relative_to(root).as_posix(): path.read_bytes()
            for kind in KINDS
            for path in sorted((root / kind).rglob("*"))
            if path.suffix in {".py", ".yaml"} and path.is_file()
        }
        for root in user_folders()
    ]


def entries(kind: str) -> Mapping[str, Entry]:
    """All components of one kind, by name.

    Raises:
        UserError: the kind is unknown, or two files have one name.
    """
    if kind not in KINDS:
        raise UnknownNameError(f"unknown kind {kind!r}", hint=nearest(kind, KINDS))
    found: dict[str, Entry] = {}
    for folder in (shipped(kind), *(root / _INSIDE.get(kind, kind) for root in user_folders())):
        for entry in _scan(kind, folder):
            if entry.name in found:
                raise UserError(
                    f"two files claim the name {entry.name!r} in {kind}",
                    where=f"{found[entry.name].path} and {entry.path}",
                    hint="rename one of them",
                )
            found[entry.name] = entry
    return dict(sorted(found.items()))


def _scan(kind: str, folder: Path) -> list[Entry]:
    if kind in _YAML:
        others = [folder.parent / path for other, path in _INSIDE.items() if other != kind]
        return [
            Entry(path.relative_to(folder).with_suffix("").as_posix(), path)
            for path in sorted(folder.rglob("*.yaml"))
            if not any(path.is_relative_to(other) for other in others)
        ]
    dotted = f"edgefl.{_CODE[kind].replace('/', '.')}." if folder == _PACKAGE / _CODE[kind] else ""
    return [
        Entry(path.stem.replace("_", "-"), path, dotted and dotted + path.stem)
        for path in sorted(folder.glob("[!_]*.py"))
    ]


def find(kind: str, name: str, *, where: str = "") -> Entry:
    """The component of a name, matched without regard to case where none is spelled so.

    Raises:
        UnknownNameError: no file has it; the nearest name is suggested.
    """
    known = entries(kind)
    # Underscores and hyphens are equivalent in names, as in Python distributions.
    canonical = name if kind in _YAML else name.replace("_", "-")
    if canonical not in known:
        folded = {each.casefold(): each for each in known}
        canonical = folded.get(canonical.casefold(), canonical)
    if canonical not in known:
        raise UnknownNameError(
            f"unknown {singular(kind)} {name!r}", where=where, hint=nearest(canonical, known)
        )
    return known[canonical]


def kind_of(word: str) -> str:
    """A kind by its name in the singular or plural, in any case.

    Raises:
        UnknownNameError: there is no such kind.
    """
    for kind in KINDS:
        if word.casefold() in {kind, singular(kind)}:
            return kind
    raise UnknownNameError(f"unknown kind {word!r}", where="KIND", hint=nearest(word, KINDS))


def singular(kind: str) -> str:
    """A kind's name for one of it: "policy" of "policies"."""
    return {"policies": "policy"}.get(kind, kind.removesuffix("s"))


def load(kind: str, name: str, *, where: str = "") -> ModuleType:
    """The module of a code component.

    Raises:
        UnknownNameError: no file has the name.
        UserError: a user's file fails to import, or lacks what every file of its kind has.
    """
    entry = find(kind, name, where=where)
    if entry.module:
        return importlib.import_module(entry.module)
    dotted = f"{LOADED}{kind}.{entry.path.stem}"
    known = sys.modules.get(dotted)
    if known is not None and known.__file__ == str(entry.path):
        return known
    spec = importlib.util.spec_from_file_location(dotted, entry.path)
    if spec is None or spec.loader is None:
        raise UserError(f"{entry.path.name} cannot be imported", where=str(entry.path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[dotted] = module
    try:
        with user_code():
            spec.loader.exec_module(module)
        _check_functions(kind, entry, module)
    except BaseException as error:
        del sys.modules[dotted]
        if isinstance(error, EdgeflError) or not isinstance(error, Exception):
            raise
        # Read, and not run: null bytes, say.
        raise UserError(
            f"{entry.path.name} fails to import: {in_one_line(error)}", where=str(entry.path)
        ) from error
    return module


def _check_functions(kind: str, entry: Entry, module: ModuleType) -> None:
    for name in _FUNCTIONS.get(kind, ()):
        if not hasattr(module, name):
            raise UserError(
                f"the {singular(kind)} {entry.name!r} has no function {name!r}",
                where=str(entry.path),
                hint=f"every file in {kind}/ has one; see docs/extending.md",
            )


def summary(entry: Entry) -> str:
    """A component's description: the first line of its docstring or comment, without importing it."""
    text = entry.path.read_text(encoding="utf-8")
    if entry.path.suffix == ".py":
        try:
            doc = ast.get_docstring(ast.parse(text)) or ""
        except SyntaxError as error:
            return f"(not valid Python: {error.msg}, line {error.lineno})"
        return doc.split("\n", 1)[0].strip()
    for line in text.splitlines():
        if line.startswith("#"):
            return line.lstrip("# ").strip()
        if line.startswith("title:"):
            return line.removeprefix("title:").strip().strip("'\"")
    return ""
