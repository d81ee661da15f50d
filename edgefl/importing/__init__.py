"""Profiles from traces: FedScale's, FLASH's, and tables of users."""

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.core import catalogue
from edgefl.core.arrays import Floats, Ints
from edgefl.core.csv_rows import csv_text
from edgefl.core.errors import UnknownNameError, UserError, nearest, short
from edgefl.core.files import atomically, check_free
from edgefl.core.units import show_bits, show_count, show_seconds, show_share
from edgefl.core.yamls import Document, dump
from edgefl.importing import fedscale, flash, table
from edgefl.importing.trace import INDEPENDENTLY, RecordedUsers, Spans, TraceSource, joined

# The link of what traces do not say, by their kind.
_LINKS = {"fedscale": "4g", "flash": "flash-wifi", "csv": "4g"}
KINDS = tuple(_LINKS)
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")

# In place of a latency of zero, which has no logarithm.
_LEAST_S = 1e-9
# What links have of the one below where the trace does not say it.
_BELOW = ("down", "up", "latency", "handshakes", "loss", "radio")
# Of users' own links: each number's unit, and how it is told.
_NUMBERS: dict[str, tuple[str, Callable[[float], str]]] = {
    "down": ("bit/s", show_bits),
    "up": ("bit/s", show_bits),
    "latency": ("s", show_seconds),
}


@dataclass(frozen=True)
class Imported:
    """A profile that was written.

    Attributes:
        files: all files, the profile's first.
        users: how many recorded users it has.
        dealt: how their columns are dealt to clients, "together" or "independently".
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
    made, read = _profile(alike, dealt, name, device, link or _LINKS[kind])
    written = {folder / file: content for file, content in made.items()}
    check_free(*written, force=force)
    try:
        (folder / "profiles" / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {folder}: {error.strerror}", where="--out") from error
    atomically(written)
    run = f"edgefl run quickstart --set fleet={name}"
    if folder.resolve() not in {one.resolve() for one in (Path(), *catalogue.user_folders())}:
        run = f"EDGEFL_PATH={shlex.quote(str(folder))}${{EDGEFL_PATH:+:$EDGEFL_PATH}} {run}"
    return Imported(
        name=name,
        path=next(iter(written)),
        files=tuple(written),
        users=max(map(len, alike)),
        dealt=dealt,
        sources=tuple(source for trace in traces for source in trace.sources),
        read=tuple(read),
        dropped=tuple(sentence for trace in alike for sentence in trace.dropped),
        next_step=run,
    )


def _name_of(out: Path, name: str | None) -> str:
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


def _traces(kind: str, paths: list[Path], ready: str | None, repeat: str | None) -> list[RecordedUsers]:
    if repeat is not None and kind != "csv":
        raise UserError("--repeat is only for csv", where="--repeat")
    if kind == "csv":
        traces = [table.read(paths, repeat)]
    elif kind == "flash":
        traces = [flash.read(path, ready) for path in paths]
    else:
        traces = [fedscale.read(path) for path in paths]
    kinds = [trace.kind for trace in traces]
    if len(set(kinds)) < len(kinds):
        what = f"both are {kinds[0]} traces; give one of each"
        raise UserError(what, where=", ".join(map(str, paths)))
    if ready is not None and flash.STATES not in kinds:
        raise UserError("--ready is only for FLASH's states", where="--ready")
    return traces


def _profile(
    traces: list[RecordedUsers], dealt: str, name: str, device: str, link: str
) -> tuple[dict[str, bytes], list[str]]:
    """The files of a profile, by path in the folder, and what was made of the traces."""
    catalogue.find("devices", device, where="--device")
    folder = f"profiles/{name}"
    columns: dict[str, Sequence[Any]] = {}
    more: dict[str, Any] = {}
    tables: dict[str, bytes] = {}
    read: list[str] = []
    for trace in traces:
        for column in {"device", "link"} & trace.columns.keys():
            for one in dict.fromkeys(trace.columns[column]):
                where = f"{trace.sources[0].file}, column {column}"
                catalogue.find(catalogue.kind_of(column), one, where=where)
            columns[column] = trace.columns[column]
        if trace.columns.keys() & _NUMBERS.keys():
            more["links"], columns["link"], told = _links(trace, link)
            read.append(told)
        if (slowdown := trace.columns.get("slowdown")) is not None:
            columns["slowdown"] = [f"{value:.9g}" for value in slowdown]
            read.append(_told("slowdown", slowdown, "{:.3g}".format))
        if trace.kind == fedscale.CAPACITY:
            read.append(f"computation is a relative speed: the median user is as fast as {device}")
        if (spans := trace.columns.get("availability")) is not None:
            columns["availability"], tables[f"{folder}/availability.csv"] = _intervals(spans)
            repeat = {} if trace.repeat_s is None else {"repeat": f"{trace.repeat_s:.17g} s"}
            more["availability"] = {"name": "intervals", "file": f"{folder}/availability.csv", **repeat}
        if trace.on_leave:
            more["on_leave"] = trace.on_leave
        read += trace.read
    users = max(map(len, traces))
    # A column of fewer users is gone through again.
    rows = zip(*(islice(cycle(column), users) for column in columns.values()), strict=True)
    tables[f"{folder}/users.csv"] = csv_text(columns, rows).encode()
    record = {
        "title": f"{show_count(users, 'user')} of {' and '.join(trace.kind for trace in traces)}",
        "members": [{"device": device, "link": link}],
        **more,
        "users": {"file": f"{folder}/users.csv", "dealt": dealt},
        "notes": _notes(traces, dealt, read),
    }
    return {f"{folder}.yaml": dump(record).encode(), **tables}, read


def _notes(traces: list[RecordedUsers], dealt: str, read: list[str]) -> str:
    files = "; ".join(trace.cited() for trace in traces)
    how = "What is recorded of one user stays together."
    if dealt == INDEPENDENTLY:
        unknown = len(traces) > 1 and not all(trace.ids for trace in traces)
        why = ": the traces do not say which of their users are the same" if unknown else ""
        how = f"Each column is dealt on its own{why}."
    made = f" Read: {'; '.join(read)}." if read else ""
    dropped = [sentence for trace in traces for sentence in trace.dropped]
    left = f" Dropped: {'; '.join(dropped)}." if dropped else ""
    return f"Made by edgefl import of {files}. {how}{made}{left}"


def _links(trace: RecordedUsers, base: str) -> tuple[dict[str, Any], list[str], str]:
    """Users' links: each their own, or classes where there are many; whose they are, and a sentence."""
    path = catalogue.find("links", base, where="--link").path
    known = Document.read(path).data
    if "trace" in known:
        raise UserError(f"the link {base} follows a trace; give one with constant rates", where="--link")
    columns = {key: np.array(trace.columns[key]) for key in _NUMBERS if key in trace.columns}
    below = {key: _assumed(known[key], base) for key in _BELOW if key in known and key not in columns}
    values, of, rounding = classes(np.maximum(np.stack(list(columns.values()), axis=1), _LEAST_S))
    names = [f"link-{index:0{len(str(len(values) - 1))}d}" for index in range(len(values))]
    rounded = f", rounded by at most {show_share(rounding, 1)}" if rounding else ""
    source = trace.cited() + (f", one of {len(names)} classes{rounded}" if rounded else "")
    records = {}
    for name, row in zip(names, np.where(values > _LEAST_S, values, 0.0).tolist(), strict=True):
        numbers, titles = {}, []
        for key, value in zip(columns, row, strict=True):
            unit, show = _NUMBERS[key]
            numbers[key] = {"value": f"{value:.9g} {unit}", "status": "derived", "source": source}
            titles.append(f"{show(value)} {key}")
        records[name] = {"title": f"{', '.join(titles)} ({trace.kind})", **numbers, **below}
    told = [_told(key, one, _NUMBERS[key][1]) for key, one in columns.items()]
    if "down" in columns and trace.columns.get("down") is trace.columns.get("up"):
        told = [_told("down and up", columns["down"], show_bits)]
    told.append(f"{show_count(len(names), 'link')}{rounded}")
    return records, [names[index] for index in of], "; ".join(told)


def _told(what: str, values: Any, show: Callable[[float], str]) -> str:
    """The range and the median of users' values, or the one that all have."""
    least, median, most = (show(float(one)) for one in np.quantile(values, [0, 0.5, 1]))
    return f"{what} {least}" if least == most else f"{what} {least} to {most}, {median} in the median"


def _assumed(value: Any, link: str) -> Any:
    """A link's number where a trace does not say it; what has no status as it is."""
    if not isinstance(value, dict) or "status" not in value:
        return value
    if value["status"] == "unknown":
        return {**value, "source": f"not in the trace, and unknown of the link {link}"}
    source = f"not in the trace: the link {link}'s, {value['status']} there"
    return {**value, "status": "assumed", "source": source}


def classes(values: Floats, most: int = 128) -> tuple[Floats, Ints, float]:
    """Many users' values as a few, since a fleet's prices are by kind of client.

    Users are of one class whose values lie in one cell of a logarithmic grid; the cells are as small as they
    can be for so many classes. A class's value is the geometric mean of its least and its largest. Values
    are positive and finite, (users, columns). Gives those of each class, (classes, columns), each user's
    class, (users,), and the largest relative difference between the two.
    """
    found, of = np.unique(values, axis=0, return_inverse=True)
    if len(found) <= most:
        return found, of.reshape(-1), 0.0
    scaled = np.log(values / values.min(axis=0))
    cells = most
    while len(found) > most:
        # The largest lies in the last cell, not behind it.
        place = np.minimum(np.floor(scaled / scaled.max() * cells), cells - 1)
        found, of = np.unique(place, axis=0, return_inverse=True)
        cells = cells * 9 // 10
    of = of.reshape(-1)
    least, largest = (np.full(found.shape, fill) for fill in (np.inf, 0.0))
    np.minimum.at(least, of, values)
    np.maximum.at(largest, of, values)
    found = np.sqrt(least) * np.sqrt(largest)
    return found, of, float(np.abs(found[of] / values - 1).max())


def _intervals(spans: Sequence[Spans]) -> tuple[list[int], bytes]:
    """Each user's number in the intervals' file, and the file.

    The largest number must have an interval: whoever is never available is number 0.
    """
    if not any(spans):
        raise UserError("no user of the sample is ever available", where="--users")
    some = np.array(list(map(bool, spans)))
    numbers = np.where(some, np.cumsum(some) - int(some.all()), 0).tolist()
    rows = ((number, *span) for number, own in zip(numbers, spans, strict=True) for span in own)
    return numbers, csv_text(["client", "start_s", "end_s"], rows).encode()
