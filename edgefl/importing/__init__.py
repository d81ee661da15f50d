"""Profiles from traces: FedScale's, FLASH's, and tables of users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from edgefl.core.errors import UnknownNameError, UserError, nearest
from edgefl.core.outputs import check_free
from edgefl.core.units import parse
from edgefl.importing import fedscale, flash, table
from edgefl.importing.joining import joined
from edgefl.importing.profile import INDEPENDENTLY, TOGETHER, Base, profile_of
from edgefl.importing.trace import RecordedUsers, TraceSource
from edgefl.importing.writing import name_of, next_step, write

# Kinds that go together, and the link of what they do not say.
_FAMILIES = {
    (fedscale.CAPACITY, fedscale.AVAILABILITY): "4g",
    (flash.STATES, flash.SPEEDS): "flash-wifi",
    (table.CSV,): "4g",
}
KINDS = tuple(kind for family in _FAMILIES for kind in family)
"""The kinds of traces."""
Progress = Callable[[str, int, int], None]
_DEVICE = "phone-mid"
_TWO = 2


@dataclass(frozen=True)
class Imported:
    """A profile that was written.

    Attributes:
        name: the profile's.
        path: its file.
        files: all files, the profile's first.
        users: how many recorded users it has.
        dealt: how their columns are dealt to clients, "together" or "independently".
        sources: the files of the traces.
        read: what was made of the traces, a sentence each.
        dropped: what of them is lost, a sentence each.
        next_step: the command that runs it, for a shell.
    """

    name: str
    path: Path
    files: tuple[Path, ...]
    users: int
    dealt: str
    sources: tuple[TraceSource, ...]
    read: tuple[str, ...]
    dropped: tuple[str, ...]
    next_step: str


def import_traces(
    kind: str,
    files: str | PathLike[str] | Sequence[str | PathLike[str]],
    out: str | PathLike[str],
    *,
    name: str | None = None,
    device: str = _DEVICE,
    link: str | None = None,
    ready: str | None = None,
    repeat: str | None = None,
    users: int | None = None,
    dealt: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Imported:
    """Writes the profile of a trace, or of two that go together.

    Args:
        kind: the kind of the trace, one of ``KINDS``; of two, either's.
        files: the trace's file, or those of two, in either order.
        out: a folder, in which the profile is written as ``profiles/NAME.yaml`` and its tables beside it.
        name: the profile's; by default the folder's.
        device: of users without a device; capacities are relative to it.
        link: a network class whose numbers users have where the trace has none.
        ready: flash-states: the conditions of being available; by default "locked,wifi,charged".
        repeat: csv: a time with its unit after which the intervals repeat.
        users: of more users than so many, a random sample is taken.
        dealt: "together" or "independently"; by default together, unless two traces do not say who is who.
        force: overwrite the profile.
        progress: called with a label, the steps done and the steps in all.

    Raises:
        UserError: a file is not of its kind, a name is unknown or taken, or a file would be overwritten.
        RunError: the profile cannot be written.
    """
    family = _family(kind)
    paths = [Path(file) for file in ([files] if isinstance(files, str | PathLike) else files)]
    folder, show = Path(out), progress or _silent
    base = Base(name=name_of(folder, name), device=device, link=link or _FAMILIES[family])
    _check_options(len(paths), users, dealt)
    check_free(folder / f"profiles/{base.name}.yaml", force=force)
    traces = _traces(family, paths, ready, _repeat(repeat), show)
    _check_kinds(kind, traces, paths)
    _check_uses(traces, ready=ready, repeat=repeat)
    show("writing", len(paths), len(paths) + 1)
    alike, dealt = joined(traces, dealt, users)
    made = profile_of(alike, dealt, base)
    check_free(*(folder / file for file in made.files), force=force)
    write(folder, made.files)
    return Imported(
        name=base.name,
        path=folder / next(iter(made.files)),
        files=tuple(folder / file for file in made.files),
        users=made.users,
        dealt=dealt,
        sources=tuple(source for trace in traces for source in trace.sources),
        read=tuple(made.read),
        dropped=tuple(made.dropped),
        next_step=next_step(folder, base.name),
    )


def _traces(
    family: tuple[str, ...], paths: list[Path], ready: str | None, repeat_s: float | None, show: Progress
) -> list[RecordedUsers]:
    """The traces of files, as they were read."""
    if family == (table.CSV,):
        show("reading", 0, len(paths) + 1)
        return table.read(paths, repeat_s)
    conditions = flash.conditions_of(",".join(flash.READY) if ready is None else ready)
    found = []
    for done, path in enumerate(paths):
        show(f"reading {path.name}", done, len(paths) + 1)
        is_fedscale = fedscale.CAPACITY in family
        found.append(fedscale.read(path) if is_fedscale else flash.read(path, conditions))
    return found


def _silent(_label: str, _done: int, _total: int) -> None:
    """Shows nothing."""


def _family(kind: str) -> tuple[str, ...]:
    for family in _FAMILIES:
        if kind in family:
            return family
    raise UnknownNameError(f"unknown kind of trace {kind!r}", where="KIND", hint=nearest(kind, KINDS))


def _check_options(files: int, users: int | None, dealt: str | None) -> None:
    if not 1 <= files <= _TWO:
        raise UserError("give one file, or two that go together", where="FILE")
    if users is not None and users < 1:
        raise UserError("must be at least 1", where="--users")
    if dealt not in {None, TOGETHER, INDEPENDENTLY}:
        raise UserError(f"must be {TOGETHER!r} or {INDEPENDENTLY!r}; got {dealt!r}", where="--dealt")


def _repeat(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        found = parse(text, "time")
    except ValueError as error:
        raise UserError(str(error), where="--repeat") from None
    if not found:
        raise UserError("must be greater than 0 s", where="--repeat")
    return found


def _check_kinds(kind: str, traces: Sequence[RecordedUsers], paths: Sequence[Path]) -> None:
    """Checks that the trace that was asked for is there, and none twice.

    Raises:
        UserError: it is not.
    """
    kinds = [trace.kind for trace in traces]
    if kind not in kinds:
        raise UserError(
            f"not a {kind} trace, but {kinds[0]}",
            where=str(paths[0]),
            hint=f"try edgefl import {kinds[0]}",
        )
    if len(set(kinds)) < len(kinds):
        raise UserError(
            f"both files are {kinds[0]} traces; give one of each kind", where=", ".join(map(str, paths))
        )


def _check_uses(traces: Sequence[RecordedUsers], *, ready: str | None, repeat: str | None) -> None:
    """Checks that each option is of use.

    Raises:
        UserError: one is for another kind of trace.
    """
    kinds = {trace.kind for trace in traces}
    timed = any(trace.intervals is not None for trace in traces)
    for option, given, of_use, what in (
        ("--ready", ready is not None, flash.STATES in kinds, flash.STATES),
        ("--repeat", repeat is not None, table.CSV in kinds and timed, "csv with a file of intervals"),
    ):
        if given and not of_use:
            raise UserError(f"{option} is only for {what}", where=option)
