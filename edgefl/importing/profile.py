"""Traces as a profile: the users, links and intervals of a fleet, with their sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np

from edgefl.core import catalogue
from edgefl.core.arrays import Floats, Ints
from edgefl.core.csv_rows import csv_text
from edgefl.core.errors import UserError
from edgefl.core.units import show_bits, show_count, show_seconds, show_share
from edgefl.core.yamls import Document, dump
from edgefl.importing.fedscale import CAPACITY
from edgefl.importing.trace import INDEPENDENTLY, RecordedUsers, Spans

MOST_CLASSES = 128
# In place of a latency of zero, which has no logarithm.
_LEAST_S = 1e-9
# What links have of the one below where the trace does not say it.
_BELOW = ("down", "up", "latency", "handshakes", "loss", "radio")
_UNITS = {"down": "bit/s", "up": "bit/s", "latency": "s"}


def profile_of(
    traces: list[RecordedUsers], dealt: str, name: str, device: str, link: str
) -> tuple[dict[str, bytes], list[str]]:
    """The files of a profile, by path in a directory on EDGEFL_PATH, and what was made of the traces.

    Args:
        traces: their users are the same, row by row, or dealt independently.
        dealt: how their columns are dealt to clients.
        name: the profile's.
        device: whose model decides the time of users without a device.
        link: whose latency, radio and loss users' links have, and whose rates if they have none.

    Raises:
        UserError: the device or the link is unknown, or one that a trace names.
    """
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
        if trace.columns.keys() & _UNITS.keys():
            more["links"], columns["link"], told = _links(trace, link)
            read.append(told)
        if (slowdown := trace.columns.get("slowdown")) is not None:
            columns["slowdown"] = [f"{value:.9g}" for value in slowdown]
            read.append(_told("slowdown", slowdown, "{:.3g}".format))
        if trace.kind == CAPACITY:
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
    columns = {key: np.array(trace.columns[key]) for key in _UNITS if key in trace.columns}
    below = {key: _assumed(known[key], base) for key in _BELOW if key in known and key not in columns}
    values, of, rounding = classes(np.maximum(np.stack(list(columns.values()), axis=1), _LEAST_S))
    names = [f"link-{index:0{len(str(len(values) - 1))}d}" for index in range(len(values))]
    rounded = f", rounded by at most {show_share(rounding, 1)}" if rounding else ""
    source = trace.cited() + (f", one of {len(names)} classes{rounded}" if rounded else "")
    records = {}
    for name, row in zip(names, np.where(values > _LEAST_S, values, 0.0).tolist(), strict=True):
        own = dict(zip(columns, row, strict=True))
        title = ", ".join(f"{_shown(key)(value)} {key}" for key, value in own.items())
        numbers = {
            key: {"value": f"{value:.9g} {_UNITS[key]}", "status": "derived", "source": source}
            for key, value in own.items()
        }
        records[name] = {"title": f"{title} ({trace.kind})", **numbers, **below}
    if trace.columns.get("down") is trace.columns.get("up"):
        columns = {"down and up": columns["down"]}
    told = "; ".join(_told(key, one, _shown(key)) for key, one in columns.items())
    return records, [names[index] for index in of], f"{told}; {show_count(len(names), 'link')}{rounded}"


def _shown(key: str) -> Callable[[float], str]:
    return show_seconds if key == "latency" else show_bits


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


def classes(values: Floats, most: int = MOST_CLASSES) -> tuple[Floats, Ints, float]:
    """Many users' values as a few, since a fleet's prices are by kind of client.

    Users are of one class whose values lie in one cell of a logarithmic grid; the cells are as small as they
    can be for so many classes. A class's value is the geometric mean of its least and its largest.

    Args:
        values: positive and finite, (users, columns).
        most: the most classes.

    Returns:
        The values of each class, (classes, columns), each user's class, (users,), and the largest relative
        difference between the two.
    """
    found, of = np.unique(values, axis=0, return_inverse=True)
    of = of.reshape(-1)
    if len(found) <= most:
        return found, of, 0.0
    scaled = np.log(values / values.min(axis=0))
    cells = most
    while len(found) > most:
        # The largest lies in the last cell, not behind it.
        place = np.minimum(np.floor(scaled / scaled.max() * cells), cells - 1)
        found, of = np.unique(place, axis=0, return_inverse=True)
        of, cells = of.reshape(-1), cells * 9 // 10
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
