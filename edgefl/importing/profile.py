"""Traces as a profile: the users, links and intervals of a fleet, with their sources."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from io import StringIO
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np

from edgefl.core import catalogue
from edgefl.core.draws import Floats
from edgefl.core.nodes import MOST_BYTES
from edgefl.core.units import show_bits, show_count, show_seconds, show_share
from edgefl.core.yamls import Document, dump, text_of
from edgefl.importing.as_published import device_of
from edgefl.importing.classes import classes
from edgefl.importing.trace import Intervals, Trace

TOGETHER, INDEPENDENTLY = "together", "independently"


@dataclass(frozen=True, kw_only=True)
class Base:
    """What traces do not say.

    Attributes:
        name: the profile's.
        device: whose model decides the time of users without a device.
        link: whose latency, radio and loss users' links have, and whose rates if they have none.
        as_published: keep a trace's absolute times, whatever the model.
    """

    name: str
    device: str
    link: str
    as_published: bool = False


class Profile(NamedTuple):
    """A profile that was made.

    Attributes:
        files: what to write, by path relative to a directory on EDGEFL_PATH.
        users: how many recorded users there are.
        read: what was made of the traces, a sentence each.
        dropped: what of them is lost, a sentence each.
    """

    files: dict[str, bytes]
    users: int
    read: list[str]
    dropped: list[str]


class _Links(NamedTuple):
    """Users' links.

    Attributes:
        records: by name, as YAML has them.
        of: each user's, (users,).
        read: a sentence about them.
    """

    records: dict[str, Any]
    of: list[str]
    read: str


def profile_of(traces: list[Trace], dealt: str, base: Base) -> Profile:
    """The profile of traces.

    Args:
        traces: their users are the same, row by row, or dealt independently.
        dealt: how their columns are dealt to clients.
        base: what they do not say.

    Raises:
        UserError: the base's device or link is unknown.
    """
    columns: dict[str, list[Any]] = {}
    own: dict[str, Any] = {"availability": {}, "users": {}}
    files: dict[str, bytes] = {}
    read: list[str] = []
    folder = f"profiles/{base.name}"
    links: dict[str, Any] = {}
    device = base.device
    catalogue.find("devices", device, where="--device")
    catalogue.find("links", base.link, where="--link")
    for trace in traces:
        _check_names(trace)
        if trace.devices is not None:
            columns["device"] = list(trace.devices)
        if trace.links is not None:
            columns["link"] = list(trace.links)
        elif trace.down_bps is not None or trace.up_bps is not None or trace.latency_s is not None:
            made = _links_of(trace, base)
            links, columns["link"] = made.records, made.of
            read.append(made.read)
        if trace.slowdown is not None:
            columns["slowdown"] = [f"{value:.6g}" for value in trace.slowdown.tolist()]
            read.append(_spread("slowdown", trace.slowdown))
        if trace.ms_per_sample is not None and base.as_published:
            device = base.name
            files[f"devices/{base.name}.yaml"] = device_of(trace, trace.ms_per_sample, base.device)
        if trace.intervals is not None:
            columns["availability"], table = _numbered(trace.intervals, len(trace))
            files[f"{folder}/availability.csv"] = table
            own["availability"] = {"name": "intervals", "file": f"{folder}/availability.csv"}
            if trace.intervals.repeat_s is not None:
                own["availability"]["repeat"] = f"{trace.intervals.repeat_s!r} s"
            if trace.on_leave:
                own["on_leave"] = trace.on_leave
        read += trace.read
    users = max(map(len, traces))
    # A column of fewer users is gone through again: a number of intervals may be there several times.
    rows = zip(*(islice(cycle(column), users) for column in columns.values()), strict=True)
    files[f"{folder}/users.csv"] = _csv(list(columns), rows)
    dropped = [sentence for trace in traces for sentence in trace.dropped]
    own["users"] = {"file": f"{folder}/users.csv", "dealt": dealt}
    record = {
        "title": _title(traces),
        "members": [{"device": device, "link": base.link}],
        **({"links": links} if links else {}),
        **{key: value for key, value in own.items() if value},
        "notes": _notes(traces, dealt, read, dropped),
    }
    profile = dump(record).encode()
    return Profile({f"profiles/{base.name}.yaml": profile, **files}, users, read, dropped)


def _check_names(trace: Trace) -> None:
    for kind, names in (("devices", trace.devices), ("links", trace.links)):
        for name in dict.fromkeys(names or ()):
            catalogue.find(kind, name, where=f"{trace.sources[0].file}, column {catalogue.singular(kind)}")


def _title(traces: list[Trace]) -> str:
    return f"{show_count(max(map(len, traces)), 'user')} of {' and '.join(trace.kind for trace in traces)}"


def _notes(traces: list[Trace], dealt: str, read: list[str], dropped: list[str]) -> str:
    files = "; ".join(trace.cited for trace in traces)
    how = {
        TOGETHER: "What is recorded of one user stays together.",
        INDEPENDENTLY: (
            "Each column is dealt on its own: the traces do not say which of their users are the same."
        ),
    }[dealt]
    made = f" Read: {'; '.join(read)}." if read else ""
    left = f" Dropped: {'; '.join(dropped)}." if dropped else ""
    return f"Made by edgefl import of {files}. {how}{made}{left}"


def _spread(what: str, values: Floats) -> str:
    return f"{what} {values.min():.3g} to {values.max():.3g}, {np.median(values):.3g} in the median"


def _links_of(trace: Trace, base: Base) -> _Links:
    """Users' links: each their own, or classes where there are many."""
    path = catalogue.find("links", base.link, where="--link").path
    below = Document.parse(text_of(path, MOST_BYTES), str(path)).data
    given = {"down": trace.down_bps, "up": trace.up_bps, "latency": trace.latency_s}
    columns = {key: values for key, values in given.items() if values is not None}
    # Latencies can be zero, which has no logarithm.
    least = {"latency": 1e-9}
    values = np.stack([np.maximum(one, least.get(key, 0.0)) for key, one in columns.items()], axis=1)
    found = classes(values)
    width = len(str(len(found.values) - 1))
    names = [f"class-{index:0{width}d}" for index in range(len(found.values))]
    rounded = f", rounded by at most {show_share(found.rounding, 1)}" if found.rounding else ""
    source = f"{trace.cited}{', one of ' + str(len(names)) + ' classes' if rounded else ''}{rounded}"
    records = {}
    for name, row in zip(names, found.values.tolist(), strict=True):
        own = dict(zip(columns, row, strict=True))
        records[name] = {
            "title": _link_title(own, trace.kind),
            **{key: _derived(key, value, source) for key, value in own.items()},
            **{key: _assumed(below[key], base.link) for key in _BELOW if key in below and key not in own},
        }
    of = [names[index] for index in found.of.tolist()]
    shown = "; ".join(
        f"{key} {show(one.min())} to {show(one.max())}, {show(float(np.median(one)))} in the median"
        for key, one in columns.items()
        for show in [show_seconds if key == "latency" else show_bits]
    )
    return _Links(records, of, f"{shown}; {show_count(len(names), 'link')}{rounded}")


_BELOW = ("down", "up", "latency", "handshakes", "loss", "radio")


def _link_title(own: dict[str, float], kind: str) -> str:
    shown = [
        f"{show_seconds(value) if key == 'latency' else show_bits(value)} {key}" for key, value in own.items()
    ]
    return f"{', '.join(shown)} ({kind})"


def _derived(key: str, value: float, source: str) -> dict[str, str]:
    quantity = f"{value:.9g} s" if key == "latency" else f"{value:.9g} bit/s"
    return {"value": quantity, "status": "derived", "source": source}


def _assumed(number: dict[str, Any], link: str) -> dict[str, Any]:
    """A number of the base link, which the trace does not have."""
    kept: dict[str, Any] = {key: deepcopy(number[key]) for key in ("low", "value", "high") if key in number}
    status = number["status"]
    if status == "unknown":
        return {**kept, "status": status, "source": f"not in the trace, and unknown of the link {link}"}
    return {**kept, "status": "assumed", "source": f"not in the trace: as of the link {link}, {status} there"}


def _numbered(intervals: Intervals, users: int) -> tuple[list[int], bytes]:
    """Each user's number in the intervals' file, and the file.

    The largest number must have an interval: users who are never available come before one who is.
    """
    numbers = np.arange(users)
    last = int(intervals.user[-1])
    numbers[last], numbers[users - 1] = users - 1, last
    of = numbers[intervals.user].tolist()
    rows = zip(of, intervals.start_s.tolist(), intervals.end_s.tolist(), strict=True)
    return numbers.tolist(), _csv(["client", "start_s", "end_s"], sorted(rows))


def _csv(header: list[str], rows: Iterable[Sequence[Any]]) -> bytes:
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue().encode()
