"""What is counted over a run, of all clients: active clients, link use, energy, accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from edgefl.analysis.run import Run
from edgefl.core.arrays import Floats, Ints
from edgefl.show.perfetto.choice import Window

MOST_POINTS = 100_000
"""A counter that changes more often shows its value at so many times, evenly spaced."""

NS = 1e9


class Counter(NamedTuple):
    """A number that changes in steps.

    Attributes:
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


def counters(run: Run, window: Window) -> Iterator[Counter]:
    """A run's counters.

    Raises:
        UserError: the run is damaged.
    """
    jobs = run.jobs
    active = _spans(jobs.dispatched_s, run.until_s, np.ones(len(jobs)))
    yield _steps(active, window, "active clients", "", "clients with a job under way")
    for way, from_s, to_s in (
        ("down", jobs.dispatched_s, run.over_s("received_s")),
        ("up", jobs.worked_s, run.until_s),
    ):
        moved = jobs[f"{way}_bytes"]
        # What takes no time counts nothing.
        under_way = (to_s > from_s) & (moved > 0)
        begin_s, end_s, moved = from_s[under_way], to_s[under_way], moved[under_way]
        about = f"mean rates of the {way}loads under way"
        if run.is_shared:
            about += "; rates change meanwhile, so that the sum may exceed what a shared link carries"
        rates = _spans(begin_s, end_s, 8.0 * moved / (end_s - begin_s))
        yield _steps(rates, window, f"{way}link", "bit/s", about)
        if run.is_shared:
            each = _spans(begin_s, end_s, np.ones(len(moved)))
            yield _steps(each, window, f"{way}loads", "", f"{way}loads under way")
    about = "of all clients whose energy is known in full; each stage counts when it ends"
    yield _steps(_energy(run), window, "energy", "J", about)
    rows = run.reader.query("SELECT model, t_s, accuracy FROM evaluations ORDER BY model, version")
    for model, scores in groupby(rows, itemgetter("model")):
        t_s, accuracy = np.array([(row["t_s"], row["accuracy"]) for row in scores]).T
        changes = t_s, np.diff(accuracy, prepend=0.0)
        yield _steps(changes, window, f"accuracy, {model}", "", "on test data", starts=False)


def _spans(from_s: Floats, to_s: Floats, height: Floats) -> tuple[Floats, Floats]:
    """Times and changes of a sum of spans."""
    return np.concatenate([from_s, to_s]), np.concatenate([height, -height])


def _energy(run: Run) -> tuple[Floats, Floats]:
    """When energy was charged, and how much."""
    known, tails = np.flatnonzero(run.known[run.jobs.client]), run.known[run.tails["client"]]
    jobs, ends = run.jobs[known], ("received_s", "worked_s", "arrived_s")
    charged = (
        jobs.receive_j + jobs.receive_idle_j + jobs.earlier_tail_j,
        jobs.work_j + jobs.work_tail_j + jobs.work_idle_j,
        jobs.transmit_j + jobs.transmit_idle_j,
    )
    return (
        np.concatenate([*(run.over_s(at, known) for at in ends), run.tails["t_s"][tails]]),
        np.concatenate([*charged, run.tails["joules"][tails]]),
    )


def _steps(
    changes: tuple[Floats, Floats], window: Window, name: str, unit: str, about: str, *, starts: bool = True
) -> Counter:
    """A counter from its times and changes, (n,); where it ``starts``, it is 0 before its first change."""
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
