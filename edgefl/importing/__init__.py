"""Profiles from traces: FedScale's, FLASH's, and tables of users."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from edgefl.core import catalogue
from edgefl.core.errors import UnknownNameError, UserError, nearest, short
from edgefl.core.files import all_atomically
from edgefl.core.outputs import check_free
from edgefl.core.units import parse
from edgefl.importing import fedscale, flash, table
from edgefl.importing.profile import profile_of
from edgefl.importing.trace import RecordedUsers, TraceSource, joined

# The link of what traces do not say, by their kind.
_LINKS = {"fedscale": "4g", "flash": "flash-wifi", "csv": "4g"}
KINDS = tuple(_LINKS)
"""The kinds of traces."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


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
    device: str = "phone-mid",
    link: str | None = None,
    ready: str | None = None,
    repeat: str | None = None,
    users: int | None = None,
    force: bool = False,
) -> Imported:
    """Writes the profile of a trace, or of two that go together.

    Args:
        kind: whose traces they are, one of ``KINDS``.
        files: the trace's file, or those of two, in either order.
        out: a folder, in which the profile is written as ``profiles/NAME.yaml`` and its tables beside it.
        name: the profile's; by default the folder's.
        device: of users without a device; capacities are relative to it.
        link: a network class whose numbers users have where the trace has none.
        ready: of FLASH's states: the conditions of being available; by default "locked,wifi,charged".
        repeat: of a table: a time with its unit after which the intervals repeat.
        users: of more users than so many, a random sample is taken.
        force: overwrite the profile.

    Raises:
        UserError: a file is not of its kind, a name is unknown or taken, or a file would be overwritten.
        RunError: the profile cannot be written.
    """
    if kind not in KINDS:
        raise UnknownNameError(f"unknown kind of trace {kind!r}", where="KIND", hint=nearest(kind, KINDS))
    paths = [Path(file) for file in ([files] if isinstance(files, str | PathLike) else files)]
    if len(paths) not in {1, 2}:
        raise UserError("give one file, or two that go together", where="FILE")
    if users is not None and users < 1:
        raise UserError("must be at least 1", where="--users")
    folder = Path(out)
    name = _name_of(folder, name)
    traces = _traces(kind, paths, ready, repeat)
    alike, dealt = joined(traces)
    alike = [trace.sampled(users) for trace in alike]
    made, read = profile_of(alike, dealt, name, device, link or _LINKS[kind])
    written = {folder / file: content for file, content in made.items()}
    check_free(*written, force=force)
    try:
        (folder / "profiles" / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {folder}: {error.strerror}", where="--out") from error
    all_atomically(written)
    return Imported(
        name=name,
        path=next(iter(written)),
        files=tuple(written),
        users=max(map(len, alike)),
        dealt=dealt,
        sources=tuple(source for trace in traces for source in trace.sources),
        read=tuple(read),
        dropped=tuple(sentence for trace in alike for sentence in trace.dropped),
        next_step=_next_step(folder, name),
    )


def _traces(kind: str, paths: list[Path], ready: str | None, repeat: str | None) -> list[RecordedUsers]:
    """The traces of files."""
    if repeat is not None and kind != "csv":
        raise UserError("--repeat is only for csv", where="--repeat")
    if kind == "csv":
        try:
            repeat_s = None if repeat is None else parse(repeat, "time")
        except ValueError as error:
            raise UserError(str(error), where="--repeat") from None
        traces = [table.read(paths, repeat_s)]
    elif kind == "flash":
        conditions = flash.conditions_of("locked,wifi,charged" if ready is None else ready)
        traces = [flash.read(path, conditions) for path in paths]
    else:
        traces = [fedscale.read(path) for path in paths]
    kinds = [trace.kind for trace in traces]
    if len(set(kinds)) < len(kinds):
        what = f"both are {kinds[0]} traces; give one of each"
        raise UserError(what, where=", ".join(map(str, paths)))
    if ready is not None and flash.STATES not in kinds:
        raise UserError("--ready is only for FLASH's states", where="--ready")
    return traces


def _name_of(out: Path, name: str | None) -> str:
    """The profile's name: the folder's, unless another is given."""
    found = out.resolve().name if name is None else name
    if not _NAME.fullmatch(found):
        raise UserError(
            f"invalid profile name {short(found)!r}",
            where="--out" if name is None else "--name",
            hint="give up to 100 lower-case letters, digits, '-', '_' and '.' with --name",
        )
    known = catalogue.entries("profiles").get(found)
    if known is not None and known.path.resolve() != (out / "profiles" / f"{found}.yaml").resolve():
        what = f"the name {found!r} belongs to another profile"
        raise UserError(what, where=str(known.path), hint="give the profile another one with --name")
    return found


def _next_step(out: Path, name: str) -> str:
    """The command that runs the profile, for a shell."""
    run = f"edgefl run quickstart --set fleet={name}"
    if out.resolve() in {folder.resolve() for folder in (Path(), *catalogue.user_folders())}:
        return run
    return f"EDGEFL_PATH={shlex.quote(str(out))}${{EDGEFL_PATH:+:$EDGEFL_PATH}} {run}"
