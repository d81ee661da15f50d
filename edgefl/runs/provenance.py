"""What a run's last bits depend on beside its plan: versions, the machine, edgefl's code and the user's."""

from __future__ import annotations

import ast
import hashlib
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from importlib.resources import files
from importlib.resources.abc import Traversable
from operator import itemgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from pydantic import BaseModel, ValidationError

from edgefl.core.catalogue import load
from edgefl.core.errors import UnknownNameError
from edgefl.core.params import Component, Strict, kinds
from edgefl.core.scenario import Engine
from edgefl.core.units import RESOLVED
from edgefl.core.user_code import is_users
from edgefl.planning.plan import Planned

_PACKAGES = {
    "torch": "torch",
    "torchvision": "torchvision",
    "numpy": "numpy",
    "simpy": "simpy",
    "edgefl": "edgefl-emulator",
}
# The rooms of the package that a run goes through; the others only show or export what it did.
_ROOMS = (
    "core",
    "data",
    "models",
    "methods",
    "measures",
    "protocol",
    "world",
    "compute",
    "planning",
    "store",
    "runs",
)
_MACHINE = {"architecture": "the machine", "capability": "torch's CPU capability", "cuda": "the CUDA device"}
_DIGITS = 16


def provenance(planned: Planned, device: torch.device | None = None) -> dict[str, Any]:
    """What a run depends on beside its plan, as plain data.

    Args:
        planned: the run.
        device: the device that trains; None for a CPU.

    Returns:
        "versions" of Python and packages; "machine"; "code": a digest of each room of edgefl; "files": a
        digest of each file of the user's own that the run uses, and of those that they import.
    """
    machine = {"architecture": platform.machine(), "capability": torch.backends.cpu.get_cpu_capability()}
    if device is not None and device.type == "cuda":
        machine["cuda"] = torch.cuda.get_device_name(device)
    return {
        "versions": dict(_versions()),
        "machine": machine,
        "code": dict(_code()),
        "files": {_name(path): _digest(content) for path, content in sorted(_own_files(planned).items())},
    }


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two provenances, in words, a line each; nothing that one of them does not tell."""
    found = []
    for key, names in (("versions", {}), ("machine", _MACHINE)):
        for name, before, after in _changed(then, now, key):
            found.append(f"{names.get(name, name)}: {before or 'none'} then, {after or 'none'} now")
    if rooms := [name for name, _, _ in _changed(then, now, "code")]:
        *others, last = rooms
        words = f"{', '.join(others)} and {last} have" if others else f"{last} has"
        found.append(f"edgefl's {words} changed since")
    for name, before, after in _changed(then, now, "files"):
        what = "has changed since" if before and after else "is new" if after else "is no longer used"
        found.append(f"{name} {what}")
    return found


def trainers(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two ways to train, in words; of different families, which those are."""
    if then.get("family") != now.get("family"):
        return [f"trained by {then.get('family')} then, by {now.get('family')} now"]
    return [
        f"{name}: {before or 'none'} then, {after or 'none'} now"
        for name, before, after in _changed({"trainer": then}, {"trainer": now}, "trainer")
    ]


def _changed(
    then: Mapping[str, Any], now: Mapping[str, Any], key: str
) -> Iterator[tuple[str, str | None, str | None]]:
    """The names under a key of which the values differ, with both values."""
    if key not in then or key not in now:
        return
    for name in dict.fromkeys([*now[key], *then[key]]):
        before, after = then[key].get(name), now[key].get(name)
        if before != after:
            yield name, before, after


@lru_cache
def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name, package in _PACKAGES.items():
        try:
            found[name] = installed(package)
        except PackageNotFoundError:
            continue
    return found


@lru_cache
def _code() -> dict[str, str]:
    """Read once: the code of this process is what it was then."""
    return digests(files("edgefl"))


def digests(package: Traversable) -> dict[str, str]:
    """A digest of each of the package's rooms: of the paths and the bytes of its Python files."""
    return {room: _digest_of(package / room) for room in _ROOMS}


def _digest_of(room: Traversable) -> str:
    hasher = hashlib.sha256()
    for name, file in sorted(_sources(room), key=itemgetter(0)):
        content = file.read_bytes()
        hasher.update(f"{name}\0{len(content)}\0".encode())
        hasher.update(content)
    return hasher.hexdigest()[:_DIGITS]


def _sources(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, Traversable]]:
    """The Python files of a folder, with their paths in it."""
    for each in folder.iterdir():
        if each.name.endswith(".py"):
            yield prefix + each.name, each
        elif "." not in each.name and each.name != "__pycache__" and each.is_dir():
            yield from _sources(each, f"{prefix}{each.name}/")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


def _name(path: Path) -> str:
    return "/".join(path.parts[-2:])


def _own_files(planned: Planned) -> dict[Path, bytes]:
    """The content of the user's own files that a run uses, but for its engine, and of those they import."""
    scenario, fleet = planned.plan.scenario, planned.plan.fleet
    modules = [*_modules(scenario.model_copy(update={"engine": Engine(name="null")})), *_modules(fleet)]
    found: dict[Path, bytes] = {}
    while modules:
        file = getattr(modules.pop(), "__file__", None)
        if file is None or not is_users(file) or (path := Path(file)) in found:
            continue
        # It may have changed since it was loaded.
        with suppress(OSError, SyntaxError, ValueError):
            found[path] = path.read_bytes()
            modules.extend(_imported(found[path]))
    return found


def _modules(record: BaseModel, kinds_of_others: Sequence[str] = ()) -> Iterator[ModuleType]:
    """The modules of the components in a record, and in their parameters.

    Args:
        record: the record.
        kinds_of_others: of components that do not say of which kind they are, such as a method's base.
    """
    of_kind = kinds(type(record))
    if (module := sys.modules.get(type(record).__module__)) is not None:
        yield module
    for key in type(record).model_fields:
        value = getattr(record, key)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, Component):
                yield from _of_component([of_kind[key]] if key in of_kind else kinds_of_others, each)
            elif isinstance(each, BaseModel):
                yield from _modules(each)


def _of_component(kinds_: Sequence[str], component: Component) -> Iterator[ModuleType]:
    for kind in kinds_:
        # It was checked when it was planned; here its kind may be another one.
        with suppress(UnknownNameError, ValidationError):
            module = load(kind, component.name)
            yield module
            params = getattr(module, "Params", None)
            if isinstance(params, type) and issubclass(params, Strict):
                found = params.model_validate(component.params, context=RESOLVED)
                yield from _modules(found, (kind, "augmentations"))
                # The file of a model that is any module.
                file = getattr(found, "path", "")
                yield from (
                    one for one in list(sys.modules.values()) if getattr(one, "__file__", None) == file
                )
            return


def _imported(content: bytes) -> Iterator[ModuleType]:
    """The modules that a source imports, as far as they have been imported."""
    for node in ast.walk(ast.parse(content)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        yield from (sys.modules[name] for name in names if name in sys.modules)
