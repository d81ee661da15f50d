"""What is counted over a run, of all clients: active clients, link use, energy, accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from edgefl.analysis.timeline import Floats, Ints
from edgefl.core.event import JOULES
from edgefl.show.perfetto.choice import Window
from edgefl.store import Reader

MOST_POINTS = 100_000
"""A counter that changes more often shows its value at so many times, evenly spaced."""

NS = 1e9
_UNTIL = "IFNULL(arrived_s, ended_s)"
_UNKNOWN = " OR ".join(f"{name} IS NULL" for name in JOULES)
# Clients whose energy is known in full.
_KNOWN = (
    f"client NOT IN (SELECT client FROM jobs WHERE {_UNKNOWN} "  # noqa: S608 - our own names
    "UNION SELECT client FROM settled_tails WHERE joules IS NULL)"
)


class Counter(NamedTuple):
    """A number that changes in steps.

    Attributes:
        name: what it counts.
        unit: its unit; empty for none.
        about: what counts.
        t_ns: when it changes, ascending, in virtual nanoseconds, (n,).
        value: its value from then on, (n,).
    """

    name: str
    unit: str
    about: str
    t_ns: Ints
    value: Floats


def nanoseconds(t_s: Floats) -> Ints:
    """Times in whole nanoseconds; their order stays."""
    return np.rint(t_s * NS).astype(np.int64)


def counters(reader: Reader, window: Window) -> Iterator[Counter]:
    """A run's counters.

    Raises:
        UserError: the run is damaged.
    """
    active = _changes(reader, f"SELECT dispatched_s, {_UNTIL}, 1 FROM jobs")  # noqa: S608 - our own names
    yield _steps(active, window, "active clients", "", "clients with a job under way")
    shared = reader.meta.get("shared", False)
    for way in _TRANSFERS:
        about = f"mean rates of the {way}loads under way"
        if shared:
            about += "; rates change meanwhile, so that the sum may exceed what a shared link carries"
        yield _steps(_transfers(reader, way, rates=True), window, f"{way}link", "bit/s", about)
        if shared:
            under_way = _transfers(reader, way, rates=False)
            yield _steps(under_way, window, f"{way}loads", "", f"{way}loads under way")
    about = "of all clients whose energy is known in full; each stage counts when it ends"
    yield _steps(_energy(reader), window, "energy", "J", about)
    for row in reader.query("SELECT DISTINCT model FROM evaluations ORDER BY model"):
        scores = _scores(reader, row["model"])
        yield _steps(scores, window, f"accuracy, {row['model']}", "", "on test data", starts=False)


def _scores(reader: Reader, model: str) -> tuple[Floats, Floats]:
    """When a model's accuracy changed, and by how much."""
    found = reader.arrays(
        f"SELECT t_s, accuracy FROM evaluations WHERE model = '{model}' ORDER BY version",  # noqa: S608 - our own
        t_s=np.float64,
        accuracy=np.float64,
    )
    return found["t_s"], np.diff(found["accuracy"], prepend=0.0)


def _changes(reader: Reader, sql: str) -> tuple[Floats, Floats]:
    """Times and changes of a sum of spans: from, to and height."""
    found = reader.arrays(sql, from_s=np.float64, to_s=np.float64, height=np.float64)
    return np.concatenate([found["from_s"], found["to_s"]]), np.concatenate(
        [found["height"], -found["height"]]
    )


_TRANSFERS = {
    "down": ("dispatched_s", "IFNULL(received_s, ended_s)", "TRUE"),
    "up": ("worked_s", _UNTIL, "worked_s IS NOT NULL"),
}


def _transfers(reader: Reader, way: str, *, rates: bool) -> tuple[Floats, Floats]:
    """The transfers one way, by their rates or each as one; what takes no time counts nothing."""
    from_s, to_s, where = _TRANSFERS[way]
    height = f"8.0 * {way}_bytes / ({to_s} - {from_s})" if rates else "1"
    return _changes(
        reader,
        f"SELECT {from_s}, {to_s}, {height} FROM jobs "  # noqa: S608 - our own names
        f"WHERE {where} AND {to_s} > {from_s} AND {way}_bytes > 0",
    )


def _energy(reader: Reader) -> tuple[Floats, Floats]:
    """When energy was charged, and how much."""
    receive = "receive_j + receive_idle_j + earlier_tail_j"
    stages = {
        "IFNULL(received_s, ended_s)": (receive, "TRUE"),
        "IFNULL(worked_s, ended_s)": ("work_j + work_tail_j + work_idle_j", "received_s IS NOT NULL"),
        _UNTIL: ("transmit_j + transmit_idle_j", "worked_s IS NOT NULL"),
    }
    selects = [
        f"SELECT {t_s}, {joules} FROM jobs WHERE {where} AND {_KNOWN}"  # noqa: S608 - our own names
        for t_s, (joules, where) in stages.items()
    ]
    selects.append(f"SELECT t_s, joules FROM settled_tails WHERE {_KNOWN}")  # noqa: S608 - our own names
    found = reader.arrays(" UNION ALL ".join(selects), t_s=np.float64, joules=np.float64)
    return found["t_s"], found["joules"]


def _steps(
    changes: tuple[Floats, Floats], window: Window, name: str, unit: str, about: str, *, starts: bool = True
) -> Counter:
    """A counter from its changes.

    Args:
        changes: times and changes, (n,).
        window: what is shown of it.
        name: as of ``Counter``.
        unit: likewise.
        about: likewise.
        starts: whether it is 0 before its first change.
    """
    t_ns, deltas = nanoseconds(changes[0]), changes[1]
    if starts:
        t_ns, deltas = np.append(0, t_ns), np.append(0.0, deltas)
    times, place = np.unique(t_ns, return_inverse=True)
    if len(times) > MOST_POINTS:
        # A change shows at the end of its step.
        step = -(-int(times[-1]) // MOST_POINTS)
        times, place = np.unique(-(-t_ns // step) * step, return_inverse=True)
        about = f"{about}; every {step / NS:g} s"
    value: Floats = np.cumsum(np.bincount(place, deltas, len(times)))
    # What is left of sums that end at 0 is rounding.
    value[np.abs(value) < 1e-9 * np.abs(value).max(initial=0.0)] = 0.0
    from_ns, to_ns = (nanoseconds(np.clip(end, 0.0, 9e9)) for end in np.array(window))
    before = int(np.searchsorted(times, from_ns, side="right")) - 1
    shown = slice(max(before, 0), int(np.searchsorted(times, to_ns, side="right")))
    return Counter(name, unit, about, np.maximum(times[shown], from_ns), value[shown])
