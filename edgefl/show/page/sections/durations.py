"""How long jobs and rounds took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from edgefl.analysis.explain.path import rounds_of
from edgefl.analysis.run import Run
from edgefl.core.arrays import Floats
from edgefl.core.event import ENDINGS, Kind
from edgefl.show.page.frames import Block, Frame, FrameColumn, Plot, Switch
from edgefl.show.page.records import Read, Section, Told

_MOST = 201
# Virtual seconds are equal that differ in less: differences of times are rounded.
_DECIMALS = 9
# What a merged job did between two of its stations.
_SPANS = {
    "jobs": ("dispatched_s", "arrived_s"),
    "receiving": ("dispatched_s", "received_s"),
    "work": ("received_s", "worked_s"),
    "transmission": ("worked_s", "arrived_s"),
}
_COLUMNS = {
    "device": FrameColumn("device", told=False),
    "of": FrameColumn("of", told=False),
    "count": FrameColumn("how many"),
    "seconds": FrameColumn("virtual time", "s"),
    "share": FrameColumn("share that took at most so long", "share"),
}


def section(told: Told, read: Sequence[Sequence[Block]]) -> Section:
    """Durations of all runs."""
    del told
    frame = Frame(_COLUMNS, [one for each in read for one in each])
    plot = Plot(
        "durations",
        "Durations of rounds and jobs (CDF)",
        "The share of rounds, jobs or stages that took at most a given virtual time. Choose a run to compare"
        " its classes of devices.",
        "no job has ended yet.",
        "lines",
        frame,
        x=["seconds"],
        y=["share"],
        by=[Switch("of", "Of")],
        runs="all",
        detail="device",
        whole="all devices",
        log="X",
        step=True,
        left="jobs that were not merged do not count",
        missing="nothing was merged",
    )
    return Section("durations", "Durations", [plot])


def read(one: Read) -> list[Block]:
    """The cumulative distributions of a run's durations, in virtual seconds.

    Of jobs, those count that were merged in rounds: a job takes from its dispatch until its upload has
    arrived, a stage from one station to the next, with the time in which its client was away or paused. A
    round takes from the last merge of the round before it, or of the exchanges at the start, to its own last
    merge. A fleet of one device has the distributions of all alone.
    """
    found, names = one.run, one.run.device_names
    jobs = found.jobs
    in_rounds = found.in_rounds[jobs.exchange]
    merged = in_rounds & (jobs.ending == ENDINGS.index(Kind.MERGED))
    device = found.clients.device[jobs.client]
    groups = [("", in_rounds), *((name, in_rounds & (device == place)) for place, name in enumerate(names))]
    blocks = list(_distribution("rounds", "", _rounds_s(found, one.summary.rounds), 0))
    for what, (start, end) in _SPANS.items():
        for name, mine in groups if len(names) > 1 else groups[:1]:
            chosen = np.flatnonzero(mine & merged)
            seconds = jobs[end][chosen] - jobs[start][chosen]
            blocks += _distribution(what, name, seconds, int(np.count_nonzero(mine)) - len(chosen))
    return [{"run": one.place, **block} for block in blocks]


def _rounds_s(found: Run, number: int | None) -> Floats:
    """How long each round took that had a merge, in order; the last may have been broken off."""
    rounds = rounds_of(found)
    inside = found.in_rounds[found.merges.exchange[rounds.first]]
    mine = inside & (rounds.number < (np.inf if number is None else number))
    took_s: Floats = (rounds.to_s - rounds.from_s)[mine]
    return took_s


def _distribution(what: str, device: str, seconds: Floats, left: int) -> Iterator[Block]:
    """Different durations in ascending order, at most 201: all, or one for each half percent; none of none.

    It rises from nothing at the least. The share is of all that took at most so long.
    """
    if not len(seconds):
        return
    different, counts = np.unique(np.round(seconds, _DECIMALS), return_counts=True)
    share = np.cumsum(counts) / len(seconds)
    if len(different) > _MOST:
        # The first duration that so large a share does not exceed; the least and the most are among them.
        quantiles = np.linspace(0.0, 1.0, _MOST)
        kept = np.unique(np.minimum(np.searchsorted(share, quantiles), len(different) - 1))
        different, share = different[kept], share[kept]
    yield {
        "device": device,
        "of": what,
        "count": len(seconds),
        "seconds": [different[0].item(), *different.tolist()],
        "share": [0.0, *share.tolist()],
        "left": left,
    }
