"""Start files: a device, a fleet or a scenario that works as it is, with comments on what to change."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from edgefl.core import catalogue
from edgefl.core.errors import UnknownNameError, UserError, nearest, short
from edgefl.core.files import atomically
from edgefl.core.sourced import sourced
from edgefl.planning.describe import shown_number
from edgefl.planning.fleets import device, profile

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")

_DEVICE = """title: {name}
like: {like}
# Uncomment what the data sheet has. What is left out is taken from {like} and counts as assumed.
{numbers}
# A number with its source: {{value: 2 W, status: measured, source: a meter at the socket}}
"""
# What data sheets have.
_SHEET = re.compile(
    r"peak\..*|memory|memory_bandwidth|power\.(idle|active)|battery\.capacity|rows|columns|clock_rate"
)

_FLEET = """title: {name}
like: {like}
# Devices with their shares, and links: edgefl list devices, edgefl list links.
members:
{members}
# Other keys replace those of {like} too:
# slowdown: {{name: lognormal, sigma: 0.25}}
# failures: {{crash: 0.01}}
"""

_SCENARIO = """# {name}: what it is for.
name: {name}
task: {{dataset: digits, clients: 10, partition: {{name: dirichlet, alpha: 0.5}}}}
model: {{name: mlp, hidden: [32]}}
method: fedavg
local: {{epochs: 2, batch_size: 16, optimizer: {{name: sgd, lr: 0.1}}}}
fleet: home-lab
server: {{participants: 5, rounds: 10}}
# A run for each method:
# sweep: {{method: [fedavg, fedprox, scaffold]}}
"""


def _device(name: str, like: str) -> str:
    numbers: dict[str, list[str]] = {}
    for key, number in sourced(device(like, where="--like")):
        if _SHEET.fullmatch(key) and number.value is not None:
            top, _, inner = key.partition(".")
            text = shown_number(key, number, number.value)
            numbers.setdefault(top, []).append(f"{inner}: {text}" if inner else text)
    lines = (
        f"# {top}: {{{', '.join(texts)}}}" if ": " in texts[0] else f"# {top}: {texts[0]}"
        for top, texts in numbers.items()
    )
    return _DEVICE.format(name=name, like=like, numbers="\n".join(lines))


def _fleet(name: str, like: str) -> str:
    lines = []
    for one in profile(like, where="--like").members:
        values = one.model_dump(exclude_defaults=True) | {"share": f"{one.share:g}"}
        lines.append(f"  - {{{', '.join(f'{key}: {value}' for key, value in values.items())}}}")
    return _FLEET.format(name=name, like=like, members="\n".join(lines))


class NewFile(NamedTuple):
    """A file that was written, and the command that tries it."""

    file: str
    next: str


# The folder of a kind, its text by name and what it is like, what that is by default, and what to type next.
_STARTS: Mapping[str, tuple[str, Callable[[str, str], str], str, str]] = {
    "device": ("devices", _device, "raspberry-pi-5", "edgefl profile quickstart --device {}"),
    "fleet": ("profiles", _fleet, "home-lab", "edgefl check quickstart --set fleet={}"),
    "scenario": ("scenarios", lambda name, _: _SCENARIO.format(name=name), "", "edgefl check {}"),
}


def start(kind: str, name: str, like: str | None = None) -> NewFile:
    """Writes a start file into the working directory's folder of its kind.

    Args:
        kind: "device", "fleet" or "scenario".
        like: the device or fleet that it is like.

    Raises:
        UserError: the kind or ``like`` is unknown, or the name cannot be used.
        RunError: the file cannot be written.
    """
    if kind not in _STARTS:
        raise UnknownNameError(f"unknown kind {short(kind)!r}", where="KIND", hint=nearest(kind, _STARTS))
    folder, text, default, following = _STARTS[kind]
    if like is not None and not default:
        raise UserError("a scenario is like no other: --like is for devices and fleets", where="--like")
    path = Path(folder) / f"{name}.yaml"
    check_name(folder, name, path)
    if path.exists():
        raise UserError(f"{path} already exists", where="NAME", hint="choose another name")
    content = text(name, like or default)
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}", where="NAME") from error
    atomically({path: content.encode()})
    return NewFile(str(path), following.format(name))


def check_name(kind: str, name: str, path: Path, where: str = "NAME") -> None:
    """Refuses a name for what this file describes that is invalid or another file's."""
    what = catalogue.singular(kind)
    if not _NAME.fullmatch(name):
        raise UserError(
            f"invalid {what} name {short(name)!r}",
            where=where,
            hint="use up to 100 lower-case letters, digits, '-', '_' and '.', such as my-laptop",
        )
    known = catalogue.entries(kind).get(name)
    if known is not None and known.path.resolve() != path.resolve():
        raise UserError(
            f"the name {name!r} belongs to another {what}", where=str(known.path), hint="choose another name"
        )
