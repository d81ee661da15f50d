"""What a run's last bits depend on beside its plan: versions, the machine, edgefl's code and the user's."""

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

import torch

from edgefl.core.user_code import LOADED, is_users
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
        device: the device that trains; None for a CPU.

    Returns:
        "versions" of Python and packages; "machine"; "code": a digest of each room of edgefl; "files": a
        digest of each file of the user's own that the run uses, and of what was imported from beside them.
    """
    machine = {"architecture": platform.machine(), "capability": torch.backends.cpu.get_cpu_capability()}
    if device is not None and device.type == "cuda":
        machine["cuda"] = torch.cuda.get_device_name(device)
    files = {}
    for path in sorted(set(_own_files(planned))):
        # It may be gone since it was loaded.
        with suppress(OSError):
            files[_name(path)] = _digest(path)
    return {"versions": versions(), "machine": machine, "code": dict(_code()), "files": files}


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
def versions() -> dict[str, str]:
    """Those of Python and of packages, as far as they are installed."""
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
    return digests(Path(__file__).parent.parent)


def digests(package: Path) -> dict[str, str]:
    """A digest of each of the package's rooms: of the paths and the bytes of its Python files."""
    return {room: _digest(*sorted((package / room).rglob("*.py"))) for room in _ROOMS}


def _digest(*files: Path) -> str:
    hasher = hashlib.sha256()
    for path in files:
        hasher.update(f"{_name(path)}\0".encode() + path.read_bytes())
    return hasher.hexdigest()[:_DIGITS]


def _name(path: Path) -> str:
    return "/".join(path.parts[-2:])


def _own_files(planned: Planned) -> Iterator[Path]:
    """The user's own files that a run names, and those that were imported from below the same folders."""
    told = json.dumps(planned.resolved)
    loaded = {name: getattr(module, "__file__", None) for name, module in sys.modules.copy().items()}
    own = (Path(file) for name, file in loaded.items() if file and name.startswith(LOADED))
    named = [
        path
        for path in own
        if str(path) in told or f'"{path.stem}"'.replace("_", "-") in told.replace("_", "-")
    ]
    yield from named
    beside = tuple({f"{one.parents[1]}{os.sep}" for one in named})
    for name, file in loaded.items():
        if file and file.startswith(beside) and not name.startswith(LOADED) and is_users(file):
            yield Path(file)
