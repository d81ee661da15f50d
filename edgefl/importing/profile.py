"""Traces as a profile: the users, links and intervals of a fleet, with their sources."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np

from edgefl.core import catalogue
from edgefl.core.draws import Floats
from edgefl.core.errors import UserError
from edgefl.core.units import show_bits, show_count, show_seconds, show_share
from edgefl.core.yamls import MOST_BYTES, Document, dump, text_of
from edgefl.importing import fedscale
from edgefl.importing.assumed import assumed
from edgefl.importing.classes import classes
from edgefl.importing.trace import RecordedUsers, UserIntervals

TOGETHER, INDEPENDENTLY = "together", "independently"


@dataclass(frozen=True, kw_only=True)
class Base:
    """What traces do not say.

    Attributes:
        name: the profile's.
        device: whose model decides the time of users without a device.
        link: whose latency, radio and loss users' links have, and whose rates if they have none.
    """

    name: str
    device: str
    link: str


class ImportedProfile(NamedTuple):
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


def profile_of(traces: list[RecordedUsers], dealt: str, base: Base) -> ImportedProfile:
    """The profile of traces.

    Args:
        traces: their users are the same, row by row, or dealt independently.
        dealt: how their columns are dealt to clients.
        base: what they do not say.

    Raises:
        UserError: the base's device or link is unknown, or one that a trace names.
    """
    draft = _Draft(base)
    for trace in traces:
        draft.add(trace)
    users = max(map(len, traces))
    file = draft.beside("users.csv")
    # A column of fewer users is gone through again: a number of intervals may be there several times.
    rows = zip(*(islice(cycle(column), users) for column in draft.columns.values()), strict=True)
    draft.files[file] = _csv(list(draft.columns), rows)
    dropped = [sentence for trace in traces for sentence in trace.dropped]
    record = {
        "title": f"{show_count(users, 'user')} of {' and '.join(trace.kind for trace in traces)}",
        "members": [{"device": base.device, "link": base.link}],
        **draft.record,
        "users": {"file": file, "dealt": dealt},
        "notes": _notes(traces, dealt, draft.read, dropped),
    }
    files = {f"profiles/{base.name}.yaml": dump(record).encode(), **draft.files}
    return ImportedProfile(files, users, draft.read, dropped)


class _Draft:
    """What traces add to a profile.

    Attributes:
        columns: of its users.
        record: more keys of it.
        files: that it names, by path.
        read: what was made of the traces, a sentence each.
    """

    def __init__(self, base: Base) -> None:
        catalogue.find("devices", base.device, where="--device")
        catalogue.find("links", base.link, where="--link")
        self._base = base
        self.columns: dict[str, Sequence[Any]] = {}
        self.record: dict[str, Any] = {}
        self.files: dict[str, bytes] = {}
        self.read: list[str] = []

    def beside(self, file: str) -> str:
        """The path of a file beside the profile's."""
        return f"profiles/{self._base.name}/{file}"

    def add(self, trace: RecordedUsers) -> None:
        """A trace's columns, links and intervals.

        Raises:
            UserError: it names an unknown device or link.
        """
        _check_names(trace)
        if trace.devices is not None:
            self.columns["device"] = trace.devices
        if trace.links is not None:
            self.columns["link"] = trace.links
        elif {trace.down_bps is None, trace.up_bps is None, trace.latency_s is None} != {True}:
            made = _links_of(trace, self._base)
            self.record["links"], self.columns["link"] = made.records, made.of
            self.read.append(made.read)
        self._add_speed(trace)
        if trace.intervals is not None:
            self._add_intervals(trace, trace.intervals)
        self.read += trace.read

    def _add_speed(self, trace: RecordedUsers) -> None:
        if trace.slowdown is not None:
            self.columns["slowdown"] = [f"{value:.9g}" for value in trace.slowdown.tolist()]
            self.read.append(_spread("slowdown", trace.slowdown))
        if trace.kind == fedscale.CAPACITY:
            median = f"the median user is as fast as {self._base.device} with any model"
            self.read.append(f"computation is a relative speed: {median}")

    def _add_intervals(self, trace: RecordedUsers, intervals: UserIntervals) -> None:
        if not len(intervals.user):
            raise UserError("no user of the sample is ever available", where="--users")
        file = self.beside("availability.csv")
        self.columns["availability"], self.files[file] = _numbered(intervals, len(trace))
        self.record["availability"] = {"name": "intervals", "file": file}
        if intervals.repeat_s is not None:
            self.record["availability"]["repeat"] = f"{intervals.repeat_s:.17g} s"
        if trace.on_leave:
            self.record["on_leave"] = trace.on_leave


def _check_names(trace: RecordedUsers) -> None:
    for kind, names in (("devices", trace.devices), ("links", trace.links)):
        for name in dict.fromkeys(names or ()):
            catalogue.find(kind, name, where=f"{trace.sources[0].file}, column {catalogue.singular(kind)}")


def _notes(traces: list[RecordedUsers], dealt: str, read: list[str], dropped: list[str]) -> str:
    files = "; ".join(trace.cited() for trace in traces)
    how = "What is recorded of one user stays together."
    if dealt == INDEPENDENTLY:
        unknown = len(traces) > 1 and not all(trace.identified for trace in traces)
        why = ": the traces do not say which of their users are the same" if unknown else ""
        how = f"Each column is dealt on its own{why}."
    made = f" Read: {'; '.join(read)}." if read else ""
    left = f" Dropped: {'; '.join(dropped)}." if dropped else ""
    return f"Made by edgefl import of {files}. {how}{made}{left}"


def _spread(what: str, values: Floats) -> str:
    return _told(what, values, "{:.3g}".format)


def _links_of(trace: RecordedUsers, base: Base) -> _Links:
    """Users' links: each their own, or classes where there are many."""
    path = catalogue.find("links", base.link, where="--link").path
    known = Document.parse(text_of(path, MOST_BYTES), str(path)).data
    if "trace" in known:
        raise UserError(f"the link {base.link} follows a trace; give one with constant rates", where="--link")
    below = {key: assumed(known[key], f"the link {base.link}") for key in _BELOW if key in known}
    given = {"down": trace.down_bps, "up": trace.up_bps, "latency": trace.latency_s}
    columns = {key: values for key, values in given.items() if values is not None}
    values = np.stack([np.maximum(one, _LEAST_S) for one in columns.values()], axis=1)
    found = classes(values)
    width = len(str(len(found.values) - 1))
    names = [f"link-{index:0{width}d}" for index in range(len(found.values))]
    rounded = f", rounded by at most {show_share(found.rounding, 1)}" if found.rounding else ""
    source = f"{trace.cited(_DIGITS)}{', one of ' + str(len(names)) + ' classes' if rounded else ''}{rounded}"
    records = {}
    exact = np.where(found.values > _LEAST_S, found.values, 0.0)
    for name, row in zip(names, exact.tolist(), strict=True):
        own = dict(zip(columns, row, strict=True))
        records[name] = {
            "title": _link_title(own, trace.kind),
            **{key: _derived(key, value, source) for key, value in own.items()},
            **{key: one for key, one in below.items() if key not in own},
        }
    of = [names[index] for index in found.of.tolist()]
    if trace.down_bps is trace.up_bps:
        columns = {"down and up": columns["down"]}
    shown = "; ".join(_range(key, one) for key, one in columns.items())
    return _Links(records, of, f"{shown}; {show_count(len(names), 'link')}{rounded}")


def _range(key: str, values: Floats) -> str:
    return _told(key, values, show_seconds if key == "latency" else show_bits)


def _told(what: str, values: Floats, show: Callable[[float], str]) -> str:
    """The range and the median of users' values, or the one that all have."""
    least, median, most = (show(float(one)) for one in np.quantile(values, [0, 0.5, 1]))
    return f"{what} {least}" if least == most else f"{what} {least} to {most}, {median} in the median"


# In place of a latency of zero, which has no logarithm.
_LEAST_S = 1e-9
# Of a digest, beside each number; the notes have all of them.
_DIGITS = 16
_BELOW = ("down", "up", "latency", "handshakes", "loss", "radio")


def _link_title(own: dict[str, float], kind: str) -> str:
    shown = [
        f"{show_seconds(value) if key == 'latency' else show_bits(value)} {key}" for key, value in own.items()
    ]
    return f"{', '.join(shown)} ({kind})"


def _derived(key: str, value: float, source: str) -> dict[str, str]:
    quantity = f"{value:.9g} s" if key == "latency" else f"{value:.9g} bit/s"
    return {"value": quantity, "status": "derived", "source": source}


def _numbered(intervals: UserIntervals, users: int) -> tuple[list[int], bytes]:
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
