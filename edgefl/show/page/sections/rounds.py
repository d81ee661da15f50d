"""A run's rounds, job by job."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from edgefl.analysis.explain.path import PHASES, Parts
from edgefl.analysis.run import Floats, Ints, Run
from edgefl.core.event import ENDINGS, Kind

# At most so many rounds, and jobs of each.
_ROUNDS, _JOBS = 200, 40
# At least the first, the last and the longest.
_FEWEST = 3
# Differences of times that are smaller, relative to the times, are rounding errors.
_ROUNDING = 1e-9
# Digits of a job's seconds, relative to a job's length: a round may be a wait of hours.
_DIGITS = 5
_CUT = ENDINGS.index(Kind.CUT)
_STATIONS = ("dispatched_s", "received_s", "worked_s", "arrived_s", "ended_s")
# A stage goes from one station to the next.
_STAGES = ("receive", "work", "transmit")


@dataclass(frozen=True)
class Rounds:
    """Of one run: its merges, and the jobs that ended with each. "Round" stands for a merge here.

    A job belongs to the merge that took it, whenever it was dispatched; one that was late or lost to the
    first merge of its exchange at or after its end. Those that no merge followed, and those that were cut
    when the rounds were over, have a round of their own, without a version, for each exchange. Of many
    rounds, the first, the last, the longest and others, evenly spaced, are listed, and of many jobs those
    that arrived, or ended without, last.

    Attributes:
        run: its place.
        device_names: what ``device`` refers to.
        version: of each round that is listed, by ascending ``to_s``, the version that its merge made; -1 for
            none.
        round: its number, from 0; -1 before the first, the number of rounds after the last.
        exchange: its exchange.
        from_s: the first dispatch of the jobs that are listed; of none, ``to_s``.
        to_s: its merge; without one, the last job's end.
        first: the place of its first job in the columns of jobs.
        omitted: how many of its jobs are not listed.
        waited_client: the client with most of its critical path, from the merge before in its round on; -1
            for none: a timer, the server or clients to come.
        waited_phase: what took longest of that, see ``path.PHASES``; empty where there is no path.
        waited_s: virtual seconds of the path that are this client's, or nobody's.
        slowest: the place of the round that took longest from ``from_s`` to ``to_s``, merged ones first.
        client: of each job, its client; within a round those that arrived or ended last come first.
        device: the place of its device.
        dispatched_s: when it was dispatched. Jobs' seconds are rounded to a hundred-thousandth of a job.
        received_s: when it had received; NaN where it did not come so far, as below.
        worked_s: when it had worked.
        arrived_s: when it had arrived.
        ended_s: when it was merged or given up.
        receive_away_s: seconds of each stage, as far as it came, in which its client was away or paused.
        work_away_s: likewise.
        transmit_away_s: likewise.
        ending: "merged", "late", "lost" or "cut".
    """

    run: int
    device_names: Sequence[str]
    version: Sequence[int]
    round: Sequence[int]
    exchange: Sequence[str]
    from_s: Sequence[float]
    to_s: Sequence[float]
    first: Sequence[int]
    omitted: Sequence[int]
    waited_client: Sequence[int]
    waited_phase: Sequence[str]
    waited_s: Sequence[float]
    slowest: int
    client: Sequence[int]
    device: Sequence[int]
    dispatched_s: Sequence[float]
    received_s: Sequence[float]
    worked_s: Sequence[float]
    arrived_s: Sequence[float]
    ended_s: Sequence[float]
    receive_away_s: Sequence[float]
    work_away_s: Sequence[float]
    transmit_away_s: Sequence[float]
    ending: Sequence[str]


class _All(NamedTuple):
    """All rounds, columns (n,) by ascending ``to_s``, and the round of each job, -1 for none."""

    version: Ints
    round: Ints
    place: Ints
    to_s: Floats
    of_job: Ints


def rounds(found: Run, parts: Parts, run: int, most_jobs: int) -> list[Rounds]:
    """Those of a run; none without a merge and without a job.

    Args:
        found: the run's.
        parts: its critical paths.
        run: its place.
        most_jobs: how many jobs are listed, as long as three rounds are.
    """
    every = _in_order(_all(found))
    if not len(every.version):
        return []
    kept = _kept(found, every, most_jobs)
    jobs, first, omitted = _listed(found, every, kept)
    places = first.tolist(), [*first[1:].tolist(), len(jobs)]
    dispatched_s = found.jobs.dispatched_s[jobs]
    from_s = [
        dispatched_s[start:end].min(initial=to_s)
        for start, end, to_s in zip(*places, every.to_s[kept].tolist(), strict=True)
    ]
    return [
        Rounds(
            run=run,
            device_names=found.device_names,
            version=every.version[kept].tolist(),
            round=every.round[kept].tolist(),
            exchange=[found.names[place] for place in every.place[kept]],
            from_s=[float(value) for value in from_s],
            to_s=every.to_s[kept].tolist(),
            first=first.tolist(),
            omitted=omitted.tolist(),
            **_waited(found, parts, every.version[kept]),
            slowest=int(np.lexsort((every.to_s[kept] - from_s, every.version[kept] >= 0))[-1]),
            **_columns(found, jobs),
        )
    ]


def _all(found: Run) -> _All:
    """The merges, and then what no merge followed, exchange by exchange."""
    jobs, merges = found.jobs, found.merges
    of_job = np.full(len(jobs), -1, dtype=np.int64)
    at = np.searchsorted(merges.version, jobs.into_version)
    taken = np.flatnonzero(np.isin(jobs.into_version, merges.version))
    of_job[taken] = at[taken]
    after = int(merges.round[found.in_rounds[merges.exchange]].max(initial=-1)) + 1
    more: list[tuple[int, int, float]] = []
    for place, when in enumerate(found.at):
        own = np.flatnonzero(merges.exchange == place)
        rest = np.flatnonzero((jobs.exchange == place) & (jobs.into_version < 0))
        nearest = np.searchsorted(merges.t_s[own], jobs.ended_s[rest])
        nearest[jobs.ending[rest] == _CUT] = len(own)
        of_job[rest] = np.append(own, len(merges) + len(more))[nearest]
        if (nearest == len(own)).any():
            ends_s = jobs.ended_s[rest][nearest == len(own)]
            more.append((-1 if when == "start" else after, place, float(ends_s.max())))
    numbers, places, until_s = zip(*more, strict=True) if more else ((), (), ())
    return _All(
        version=np.append(merges.version, np.full(len(more), -1, dtype=np.int64)),
        round=np.append(merges.round, np.array(numbers, dtype=np.int64)),
        place=np.append(merges.exchange, np.array(places, dtype=np.int64)),
        to_s=np.append(merges.t_s, np.array(until_s)),
        of_job=of_job,
    )


def _in_order(every: _All) -> _All:
    """By ascending ``to_s``; of one time, merges first."""
    order = np.argsort(every.to_s, kind="stable")
    rank = np.append(np.argsort(order), -1)
    columns = every.version, every.round, every.place
    version, round_, place = (column[order] for column in columns)
    return _All(version, round_, place, every.to_s[order], rank[every.of_job])


def _kept(found: Run, every: _All, most_jobs: int) -> Ints:
    """The places of the rounds that are listed."""
    number = len(every.version)
    sizes = np.bincount(every.of_job[every.of_job >= 0], minlength=number)
    each = min(int(sizes.max(initial=1)), _JOBS)
    most = max(_FEWEST, min(_ROUNDS, most_jobs // max(each, 1)))
    if number <= most:
        return np.arange(number)
    from_s = every.to_s.copy()
    mine = every.of_job >= 0
    np.minimum.at(from_s, every.of_job[mine], found.jobs.dispatched_s[mine])
    spaced = np.linspace(0, number - 1, most - 1).astype(np.int64)
    return np.unique(np.append(spaced, np.argmax(every.to_s - from_s)))


def _listed(found: Run, every: _All, kept: Ints) -> tuple[Ints, Ints, Ints]:
    """The places of the jobs that are listed, and each round's first one among them and number of others."""
    place = np.full(len(every.version) + 1, -1)
    place[kept] = np.arange(len(kept))
    of_job = place[every.of_job]
    jobs = np.flatnonzero(of_job >= 0)
    jobs = jobs[np.lexsort((-found.until_s[jobs], of_job[jobs]))]
    sizes = np.bincount(of_job[jobs], minlength=len(kept))
    starts = np.cumsum(sizes) - sizes
    nth = np.arange(len(jobs)) - np.repeat(starts, sizes)
    listed = np.minimum(sizes, _JOBS)
    return jobs[nth < _JOBS], np.cumsum(listed) - listed, sizes - listed


def _waited(found: Run, parts: Parts, versions: Ints) -> dict[str, list[Any]]:
    """The columns of whom merges waited for."""
    spent: dict[int, dict[int, Counter[int]]] = {}
    ends = np.searchsorted(found.merges.t_s, parts.to_s)
    version = found.merges.version[ends]
    rows = np.flatnonzero(np.isin(version, versions))
    client = np.append(found.jobs.client, -1)[parts.job]
    seconds = (parts.to_s - parts.from_s)[rows].tolist()
    of_rows = (column[rows].tolist() for column in (version, client, parts.phase))
    for merge, who, phase, spent_s in zip(*of_rows, seconds, strict=True):
        spent.setdefault(merge, {}).setdefault(who, Counter())[phase] += spent_s
    columns: dict[str, list[Any]] = {"waited_client": [], "waited_phase": [], "waited_s": []}
    for merge in versions.tolist():
        by_client = spent.get(merge, {-1: Counter()})
        who = max(by_client, key=lambda one: by_client[one].total())
        phases = by_client[who].most_common(1)
        columns["waited_client"].append(who)
        columns["waited_phase"].append(PHASES[phases[0][0]] if phases else "")
        columns["waited_s"].append(by_client[who].total())
    return columns


def _columns(found: Run, jobs: Ints) -> dict[str, list[Any]]:
    """The columns of some jobs."""
    took_s = found.until_s[jobs] - found.jobs.dispatched_s[jobs]
    typical_s = float(np.median(took_s)) if len(jobs) else 0.0
    decimals = _DIGITS - math.floor(math.log10(typical_s)) if typical_s > 0 else _DIGITS
    return {
        "client": found.jobs.client[jobs].tolist(),
        "device": found.clients.device[found.jobs.client[jobs]].tolist(),
        **{name: np.round(getattr(found.jobs, name)[jobs], decimals).tolist() for name in _STATIONS},
        **{f"{name}_away_s": np.round(away_s, decimals).tolist() for name, away_s in _away(found.jobs, jobs)},
        "ending": [str(ENDINGS[ending]) for ending in found.jobs.ending[jobs].tolist()],
    }


def _away(all_jobs: Any, jobs: Ints) -> Iterator[tuple[str, Floats]]:
    """Each stage's name, and the seconds of some jobs' stages in which they were not busy."""
    ended_s = all_jobs.ended_s[jobs]
    for name, start, end in zip(_STAGES, _STATIONS, _STATIONS[1:], strict=False):
        from_s, to_s = getattr(all_jobs, start)[jobs], getattr(all_jobs, end)[jobs]
        span_s = np.where(np.isnan(to_s), ended_s, to_s) - from_s
        away_s = np.nan_to_num(span_s - getattr(all_jobs, f"{name}_s")[jobs])
        yield name, np.where(away_s > _ROUNDING * ended_s, away_s, 0.0)
