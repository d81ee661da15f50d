"""How long jobs and rounds took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from edgefl.analysis.run import Bools, Floats, Merges, Run
from edgefl.core.event import ENDINGS, Kind

_MOST = 201
# Virtual seconds are equal that differ in less: differences of times are rounded.
_DECIMALS = 9
# What a merged job did between two of its stations.
_SPANS = {
    "job": ("dispatched_s", "arrived_s"),
    "receive": ("dispatched_s", "received_s"),
    "work": ("received_s", "worked_s"),
    "transmit": ("worked_s", "arrived_s"),
}


@dataclass(frozen=True)
class Durations:
    """Of one run: the cumulative distribution of its durations, in virtual seconds.

    Of jobs, those count that were merged in rounds: a job takes from its dispatch until its upload has
    arrived, a stage from one station to the next, with the time in which its client was away or paused. Late,
    lost and cut jobs do not count, nor exchanges before and after the rounds. A round takes from the last
    merge of the round before it, or of the exchanges at the start, to its own last merge.

    Attributes:
        run: its place.
        device: the clients' device; empty for all. A fleet of one device has those of all alone.
        what: "job", "receive", "work", "transmit" or "round".
        count: how many there are.
        left_out: of jobs and stages, how many jobs in rounds were not merged; 0 of rounds.
        seconds: different durations in ascending order, at most 201: all, or one for each half percent.
        share: the share of all that took at most so long.
    """

    run: int
    device: str
    what: str
    count: int
    left_out: int
    seconds: Sequence[float]
    share: Sequence[float]


def durations(found: Run, run: int, rounds: int | None) -> list[Durations]:
    """Those of a run; of what there is none, there is no record.

    Args:
        found: the run's.
        run: its place.
        rounds: how many it had, of which the last may have been broken off; None where that is not known.
    """
    jobs, names = found.jobs, found.device_names
    in_rounds = found.in_rounds[jobs.exchange]
    merged = in_rounds & (jobs.ending == ENDINGS.index(Kind.MERGED))
    device = found.clients.device[jobs.client]
    groups = [("", in_rounds), *((name, in_rounds & (device == place)) for place, name in enumerate(names))]
    whole = list(_of_jobs(found, run, groups[: len(groups) if len(names) > 1 else 1], merged))
    return whole + _record(run, "", "round", _rounds_s(found, rounds), 0)


def _of_jobs(found: Run, run: int, groups: Sequence[tuple[str, Bools]], merged: Bools) -> Iterator[Durations]:
    for name, mine in groups:
        chosen = np.flatnonzero(mine & merged)
        left_out = int(np.count_nonzero(mine)) - len(chosen)
        for what, (start, end) in _SPANS.items():
            seconds = getattr(found.jobs, end)[chosen] - getattr(found.jobs, start)[chosen]
            yield from _record(run, name, what, seconds, left_out)


def _rounds_s(found: Run, rounds: int | None) -> Floats:
    """How long each round took that had a merge, in order."""
    merges, at = found.merges, np.array(found.at)[found.merges.exchange]
    begun_s = merges.t_s[at == "start"].max(initial=0.0)
    of_rounds = _chosen(merges, (at == "round") & (merges.round < (np.inf if rounds is None else rounds)))
    last = np.flatnonzero(np.diff(of_rounds.round, append=-1))
    return np.diff(of_rounds.t_s[last], prepend=begun_s)


def _chosen(merges: Merges, mine: Bools) -> Merges:
    return Merges(**{name: column[mine] for name, column in vars(merges).items()})


def _record(run: int, device: str, what: str, seconds: Floats, left_out: int) -> list[Durations]:
    if not len(seconds):
        return []
    different, counts = np.unique(np.round(seconds, _DECIMALS), return_counts=True)
    share = np.cumsum(counts) / len(seconds)
    if len(different) > _MOST:
        # The first duration that so large a share does not exceed; the least and the most are among them.
        quantiles = np.linspace(0.0, 1.0, _MOST)
        kept = np.unique(np.minimum(np.searchsorted(share, quantiles), len(different) - 1))
        different, share = different[kept], share[kept]
    return [Durations(run, device, what, len(seconds), left_out, different.tolist(), share.tolist())]
