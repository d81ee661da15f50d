"""The catalogue of components: one file adds one component.

Shipped components are in the package (code) and in the checkout's or the wheel's folders (YAML).
Users' own are in folders of the same names under each directory on ``EDGEFL_PATH``; nothing else
there is read or executed. Two files of one name are an error that names both. YAML files in such folders of
the working directory are looked at last, and only for names that no other file has.
"""

import ast
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from edgefl.core.errors import EdgeflError, UnknownNameError, UserError, in_one_line, nearest, one_of, short
from edgefl.core.notes import note
from edgefl.core.user_code import LOADED, user_code

_PACKAGE = Path(__file__).parent.parent

# kind -> package, and the class in it that the Params of its files derive from: its methods and constants are
# what these files may define.
_CODE = {
    "methods": ("edgefl.methods", "MethodParams"),
    "models": ("edgefl.models", "ModelParams"),
    "policies": ("edgefl.world.policies", "Policy"),
    "selectors": ("edgefl.world.selectors", "SelectorParams"),
    "codecs": ("edgefl.protocol.codecs", "Codec"),
    "partitions": ("edgefl.data.partitions", "Partition"),
    "datasets": ("edgefl.data.sources", "Dataset"),
    "augmentations": ("edgefl.data.augmentations", "Augmentation"),
    "engines": ("edgefl.compute.engines", "EngineParams"),
    "boards": ("edgefl.core.devices", "Board"),
    "optimizers": ("edgefl.core.optimizers", "Optimizer"),
    "schedules": ("edgefl.core.schedules", "Schedule"),
    "samplers": ("edgefl.core.samplers", "Sampler"),
    "availability": ("edgefl.core.availability", "Availability"),
    "speed": ("edgefl.core.speed", "Speed"),
    "measures": ("edgefl.measures", "Measure"),
    "trackers": ("edgefl.trackers", "TrackerParams"),
}
# Those that need no torch.
LIGHT = frozenset(
    kind for kind, (package, _) in _CODE.items() if re.match(r"edgefl\.(core|world)\.", package)
)
_YAML = ("devices", "profiles", "links", "scenarios", "validation")
# Kinds whose folder is inside another kind's folder.
_INSIDE = {"links": "profiles/links"}

KINDS = (*_YAML, *_CODE)


class Entry(NamedTuple):
    # The file's, without suffix; a scenario's name includes its folders.
    name: str
    path: Path


def shipped(kind: str) -> Path:
    """The folder of shipped files of a kind: in the checkout, or in the installed package."""
    if kind in _CODE:
        return _PACKAGE.parent.joinpath(*_CODE[kind][0].split("."))
    folder = _INSIDE.get(kind, kind)
    inside = _PACKAGE / "shipped" / folder
    return inside if inside.is_dir() else _PACKAGE.parent / folder


def user_folders() -> list[Path]:
    """The directories on ``EDGEFL_PATH``; a note names what is none."""
    found = []
    for text in filter(None, os.environ.get("EDGEFL_PATH", "").split(os.pathsep)):
        try:
            folder = Path(text).expanduser()
            next(folder.iterdir(), None)
        except (OSError, RuntimeError, ValueError) as error:
            note(f"EDGEFL_PATH: {text} is left out: {getattr(error, 'strerror', None) or error}")
        else:
            found.append(folder)
    return found


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


def user_file(file: str) -> Path:
    """The absolute path of a data file, in the working directory or in one on EDGEFL_PATH."""
    for folder in (Path(), *user_folders()):
        # A name that is too long, or the home of nobody, is no file either.
        with suppress(OSError, RuntimeError):
            path = folder / Path(file).expanduser()
            if path.is_file():
                return path.absolute()
    hint = "give a path relative to the working directory or to a directory on EDGEFL_PATH"
    raise UnknownNameError(f"no file {short(file)!r}", hint=hint)


def entries(kind: str) -> Mapping[str, Entry]:
    """All components of one kind, by name; raises a ``UserError`` where two files have one name."""
    found = dict(_shipped(kind))
    for folder in user_folders():
        for entry in _scan(kind, folder / _INSIDE.get(kind, kind)):
            if entry.name in found:
                what = f"two files claim the name {entry.name!r} in {kind}"
                where = f"{found[entry.name].path} and {entry.path}"
                raise UserError(what, where=where, hint="rename one of them")
            found[entry.name] = entry
    here = _scan(kind, Path.cwd() / _INSIDE.get(kind, kind)) if kind in _YAML else []
    return dict(sorted({**{entry.name: entry for entry in here}, **found}.items()))


@cache
def _shipped(kind: str) -> Mapping[str, Entry]:
    """Looked for once: a run asks for fifty components."""
    return {entry.name: entry for entry in _scan(kind, shipped(kind))}


def _scan(kind: str, folder: Path) -> list[Entry]:
    if kind in _YAML:
        others = [folder.parent / path for other, path in _INSIDE.items() if other != kind]
        return [
            Entry(path.relative_to(folder).with_suffix("").as_posix(), path)
            for path in sorted(folder.rglob("*.yaml"))
            if path.is_file() and not any(path.is_relative_to(other) for other in others)
        ]
    files = (path for path in sorted(folder.glob("[!_]*.py")) if path.is_file())
    return [Entry(path.stem.replace("_", "-"), path) for path in files]


def find(kind: str, name: str, *, where: str = "") -> Entry:
    """The component of a name, matched without regard to case where none is spelled so; else raises."""
    if kind == "profiles" and os.path.isfile(name) and name.endswith(".yaml"):  # noqa: PTH113 - raises nothing
        return Entry(str(Path(name).absolute()), Path(name).absolute())
    known = entries(kind)
    canonical = _spelled(kind, name, known)
    if canonical not in known:
        hint = _hint(kind, name, canonical, known)
        raise UnknownNameError(f"unknown {singular(kind)} {name!r}", where=where, hint=hint)
    entry, here = known[canonical], Path(_INSIDE.get(kind, kind), f"{canonical}.yaml")
    if kind in _YAML and here.is_file():
        if entry.path == here.absolute() and Path.cwd() not in [*user_folders(), _PACKAGE.parent]:
            note(f"found in ./{here.parent}: {canonical}")
        elif here.read_bytes() != entry.path.read_bytes():
            note(f"./{here} is not used: the {singular(kind)} {canonical!r} is {entry.path}")
    return entry


def _hint(kind: str, name: str, canonical: str, known: Mapping[str, Entry]) -> str:
    """What an unknown name may mean: code that is not read, another kind's, one whose summary has it."""
    here = _scan(kind, Path.cwd() / kind) if kind in _CODE else ()
    if file := next((entry.path.name for entry in here if entry.name == canonical), ""):
        read = 'export EDGEFL_PATH="$PWD:$EDGEFL_PATH"'
        return f"./{kind}/{file} is read only if EDGEFL_PATH lists this directory: {read}"
    if kind == "datasets" and os.path.isdir(name):  # noqa: PTH112 - raises nothing
        return f"for the images in this folder, write {name}/"
    for other, own in called(name).items():
        if other != "scenario":  # of which many show what they are named for
            return f"there is the {other} {own!r}: edgefl show {other} {own}"
    return _mentioning(name, [kind]) or nearest(canonical, known)


def _mentioning(name: str, kinds: Iterable[str]) -> str:
    """A hint to the one file of code whose summary has a name, as FedOpt's has FedAdam; "" for none."""
    letters = "[-_ ]?".join(map(re.escape, re.sub("[-_ ]", "", name)))
    word = re.compile(rf"\b{letters}\b", re.IGNORECASE)
    every = [entry for kind in kinds if kind in _CODE for entry in entries(kind).values()]
    found = [entry.name for entry in every if word.search(summary(entry))]
    return f"did you mean {found[0]!r}?" if len(found) == 1 else ""


def _spelled(kind: str, name: str, known: Mapping[str, Entry]) -> str:
    """A name as its file spells it, if there is one."""
    # Underscores and hyphens are equivalent in names, as in Python distributions.
    canonical = name if kind in _YAML else name.replace("_", "-")
    folded = {each.casefold(): each for each in known}
    return canonical if canonical in known else folded.get(canonical.casefold(), canonical)


def called(name: str) -> dict[str, str]:
    """What has a name, as its file spells it, by its kind in the singular."""
    every = {kind: entries(kind) for kind in KINDS}
    spelled = {kind: _spelled(kind, name, known) for kind, known in every.items()}
    return {singular(kind): own for kind, own in spelled.items() if own in every[kind]}


def only_kind_of(name: str) -> str:
    """The one kind that has a name; raises an ``UnknownNameError`` where none has it, or several have."""
    having = called(name)
    if len(having) == 1:
        return next(iter(having))
    if having:
        hint = one_of([f"{kind} {own}" for kind, own in having.items()])
        raise UnknownNameError(f"{name!r} is the name of several", where="NAME", hint=hint)
    # What is in a folder, such as a paper's scenario, would crowd out the rest, and so would what validates.
    every = {each for kind in KINDS if kind != "validation" for each in entries(kind) if "/" not in each}
    hint = _mentioning(name, KINDS) or nearest(name, every, otherwise="edgefl list has the names")
    raise UnknownNameError(f"nothing is named {name!r}", where="NAME", hint=hint)


def kind_of(word: str) -> str:
    """A kind by its name in the singular or plural; raises an ``UnknownNameError`` for another word."""
    for kind in KINDS:
        if word.casefold() in {kind, singular(kind)}:
            return kind
    raise UnknownNameError(f"unknown kind {word!r}", where="KIND", hint=nearest(word, KINDS))


def singular(kind: str) -> str:
    """A kind's name for one of it: "policy" of "policies"."""
    return {"policies": "policy"}.get(kind, kind.removesuffix("s"))


def base_of(kind: str) -> Any:
    """The class that a kind's Params derive from."""
    package, name = _CODE[kind]
    return getattr(importlib.import_module(package), name)


def load(kind: str, name: str, *, where: str = "") -> ModuleType:
    """The module of a code component; see ``find`` and ``module_of``."""
    return module_of(kind, find(kind, name, where=where))


def module_of(kind: str, entry: Entry) -> ModuleType:
    """The module of a code component; raises a ``UserError`` where a user's file fails to import."""
    if entry.path.parent == shipped(kind):
        return importlib.import_module(f"{_CODE[kind][0]}.{entry.path.stem}")
    dotted = f"{LOADED}{kind}.{entry.path.stem}"
    known = sys.modules.get(dotted)
    if known is not None and known.__file__ == str(entry.path):
        return known
    spec: Any = importlib.util.spec_from_file_location(dotted, entry.path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[dotted] = module
    try:
        with user_code():
            spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[dotted]
        if isinstance(error, EdgeflError) or not isinstance(error, Exception):
            raise
        # Read, and not run: null bytes, say.
        what = f"{entry.path.name} fails to import: {in_one_line(error)}"
        raise UserError(what, where=str(entry.path)) from error
    return module


def summary(entry: Entry) -> str:
    """A component's description, without importing it.

    It is the first line of a docstring, a YAML file's title, the lines of its first comment up to one that
    ends a sentence, or what it is like.
    """
    content = entry.path.read_bytes()
    if entry.path.suffix == ".py":
        try:
            doc = ast.get_docstring(ast.parse(content, entry.path.name)) or ""
        except (SyntaxError, ValueError) as error:
            return f"(not valid Python: {error})"
        return doc.split("\n", 1)[0].strip()
    text = content.decode(errors="replace")
    if title := re.search(r"^title:(.*)", text, re.MULTILINE):
        return title[1].strip().strip("'\"")
    comment: list[str] = []
    for line in text.splitlines():
        if line.startswith("#"):
            comment.append(line.lstrip("# ").strip())
        if comment and (not line.startswith("#") or comment[-1].endswith(".")):
            break
    like = re.search(r"^like:.*", text, re.MULTILINE)
    return " ".join(comment) or (like[0] if like else "")
