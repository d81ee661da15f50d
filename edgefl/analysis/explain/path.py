"""The critical paths of a run's rounds.

A round lasts from the end of the round before (0 s for the first) to its last merge. Its critical path is the
longest chain of dependencies that ends in that merge, cut off where the round begins. The chain is found
backwards, from one cause to the one before it, so that its parts follow each other without a gap and sum to
the round's time:

- A merge on a server whose work takes time waited for that work first: "server". What it waited for before
  is found at the time at which the work began.
- A merge at the time at which one of its jobs arrived, or a job of its exchange was lost, waited for that
  job: for the last arrival of a synchronous round or of a buffer, for the n-th of ``overselect``. Of several
  it is the one that was dispatched last.
- Any other merge waited for a timer of the policy, such as a deadline or an interval. The timer began when
  the server last dispatched jobs or merged. A policy whose rounds last a fixed time (``lasts_s``) always
  waits for its timer.
- A job passes its download, its work and its upload, from its dispatch on; one that was lost, as far as it
  came.
- A dispatch at the time of an earlier merge of the round follows from that merge; else at the time at which
  a job arrived or was lost, from that job, whose place it takes: so the chain of an asynchronous merge goes
  on with the job that was done when its last one was dispatched.
- Any other dispatch waited for clients to become available, since the server last merged, or a job arrived
  or was lost.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from edgefl.analysis.run import Run
from edgefl.core.arrays import Bools, Floats, Ints
from edgefl.core.event import ENDINGS, Kind

STAGES = ("download", "compute", "upload")
"""Of a job."""
PHASES = (*STAGES, "waiting for clients", "timer", "server")
_CLIENTS, _TIMER, _SERVER = (PHASES.index(one) for one in ("waiting for clients", "timer", "server"))
# Of a time: what a sum of times may be rounded by.
_ROUNDING = 1e-12
_LOST = ENDINGS.index(Kind.LOST)
# The place of no job.
_NONE = -2
NOBODY = "nobody"
"""Who is waited for where a path waits for no job: for a timer, the server's work, or clients to come."""


class Rounds(NamedTuple):
    """A run's rounds, columns (n,), in order: the places of their merges, and from when to when.

    Numbers are from 0; -1 for what is before the first, the number of rounds for what is after the last.
    """

    number: Ints
    first: Ints
    last: Ints
    from_s: Floats
    to_s: Floats


class Parts(NamedTuple):
    """The parts of critical paths, columns (n,), by round and in order of time.

    Rounds, phases and jobs are places, -1 for no job. ``share`` is how much of a job's stage is in the round.
    """

    round: Ints
    phase: Ints
    job: Ints
    from_s: Floats
    to_s: Floats
    share: Floats


@dataclass(frozen=True)
class PathTime:
    """Virtual seconds of critical paths, and those of jobs by stage, with pauses in it."""

    seconds: float
    download_s: float
    compute_s: float
    upload_s: float


def path_times(found: Run) -> dict[str, PathTime]:
    """The critical paths of all rounds by the device that they waited for, or ``NOBODY``; most first."""
    parts, names = critical_paths(found), [*found.device_names, NOBODY]
    device = np.append(found.clients.device, -1)[np.append(found.jobs.client, -1)[parts.job]]
    device[device < 0] += len(names)
    seconds = np.zeros((len(names), len(PHASES)))
    np.add.at(seconds, (device, parts.phase), parts.to_s - parts.from_s)
    each = [PathTime(sum(row), *row[: len(STAGES)]) for row in seconds.tolist()]
    by_name = sorted(zip(names, each, strict=True), key=lambda pair: -pair[1].seconds)
    return {name: one for name, one in by_name if one.seconds > 0}


def rounds_of(found: Run) -> Rounds:
    """The rounds of a run that have a merge."""
    numbers = found.merges.round
    first = np.flatnonzero(np.diff(numbers, prepend=numbers[:1] - 1))
    last = np.append(first[1:], len(numbers))[: len(first)] - 1
    to_s = found.merges.t_s[last]
    return Rounds(numbers[first], first, last, np.append(0.0, to_s[:-1])[: len(to_s)], to_s)


@lru_cache(maxsize=1)
def critical_paths(found: Run) -> Parts:
    """The critical paths of a run's rounds, see ``rounds_of``; the last run's are kept for who asks again."""
    server, rounds = _Server(found), rounds_of(found)
    from_s, to_s = rounds.from_s, rounds.to_s
    job = server.direct(rounds)
    direct = np.flatnonzero(job >= 0)
    others = np.flatnonzero((job < 0) & (to_s > from_s))
    columns = (column[others].tolist() for column in (rounds.first, rounds.last, from_s))
    links = [
        (place, *link)
        for place, *row in zip(others.tolist(), *columns, strict=True)
        for link in server.chain(*row)
    ]
    chains = list(zip(*links, strict=True)) or [()] * 5
    whole = direct, np.zeros(len(direct), dtype=np.int64), job[direct], from_s[direct], to_s[direct]
    every = [np.append(one, np.array(more, dtype=one.dtype)) for one, more in zip(whole, chains, strict=True)]
    return _by_stage(found, Parts._make([*every, np.ones(len(every[0]))]))


class _Server:
    """What the server noted, to be looked up by time."""

    def __init__(self, found: Run) -> None:
        jobs, merges = found.jobs, found.merges
        self._jobs = jobs
        until_s = found.until_s
        noted = np.flatnonzero(~np.isnan(jobs.arrived_s) | (jobs.ending == _LOST))
        self._noted = noted[np.argsort(until_s[noted], kind="stable")]
        self._noted_s = until_s[self._noted]
        self._merges_s, self._server_s = merges.t_s.tolist(), merges.server_s.tolist()
        self._place, self._last = merges.exchange.tolist(), _last_jobs(found, until_s)
        self._acted_s = np.unique(np.concatenate([jobs.dispatched_s, merges.t_s]))
        self._seen_s = np.unique(np.concatenate([self._noted_s, merges.t_s]))
        # Of a policy whose rounds last a fixed time.
        self._timed = found.in_rounds & bool(found.reader.meta.get("timed"))
        self._merges = merges

    def direct(self, rounds: Rounds) -> Ints:
        """The job that was under way in all of a round, and is its path; -1 of other rounds, (rounds,)."""
        job, merges = self._last[rounds.last], self._merges
        known = (job >= 0) & (merges.server_s[rounds.last] == 0) & ~self._timed[merges.exchange[rounds.last]]
        known &= rounds.from_s < rounds.to_s
        known[known] = self._jobs.dispatched_s[job[known]] <= rounds.from_s[known]
        return np.where(known, job, -1)

    def chain(self, first: int, last: int, begin_s: float) -> Iterator[tuple[int, int, float, float]]:
        """The chain before a round's last merge, backwards: (phase, job, from, to); a job's phase is 0.

        ``first`` and ``last`` are the places of the round's merges.
        """
        merge, now_s = last, self._merges_s[last]
        merging = True
        while now_s > begin_s:
            if not merging and merge > first and self._merges_s[merge - 1] == now_s:
                merge, merging = merge - 1, True
            if merging and self._server_s[merge]:
                since_s = self._began(merge)
                yield _SERVER, -1, max(since_s, begin_s), now_s
                now_s = since_s
                if now_s <= begin_s:
                    return
                if merge > first and self._merges_s[merge - 1] == now_s:
                    merge -= 1
                    continue
            phase, job = self._cause(merge, now_s, merging=merging)
            if phase == _TIMER:
                since_s = _before(self._acted_s, now_s)
            elif phase == _CLIENTS:
                since_s = _before(self._seen_s, now_s)
            else:
                since_s = now_s if job < 0 else float(self._jobs.dispatched_s[job])
            if since_s < now_s:
                yield phase, job, max(since_s, begin_s), now_s
            now_s, merging = since_s, False

    def _began(self, merge: int) -> float:
        """When the server began to work on a merge: at what it noted or did then, if at anything."""
        now_s: float = self._merges_s[merge]
        began_s: float = now_s - self._server_s[merge]
        for known_s in (self._noted_s, self._acted_s):
            near = known_s[known_s.searchsorted(began_s - _ROUNDING * now_s) :][:1]
            if len(near) and near[0] <= began_s + _ROUNDING * now_s:
                return float(near[0])
        return float(began_s)

    def _cause(self, merge: int, now_s: float, *, merging: bool) -> tuple[int, int]:
        """What a merge, or a dispatch, at a time waited for: a phase, and a job.

        The phase is 0 for a job, which is -1 where it took no time: the cause lies before it, at the same
        time.
        """
        if merging and self._timed[self._place[merge]]:
            return _TIMER, -1
        if merging and self._last[merge] > _NONE:
            return 0, int(self._last[merge])
        noted_s = self._noted_s
        jobs = self._noted[noted_s.searchsorted(now_s) : noted_s.searchsorted(now_s, "right")]
        if merging:
            jobs = jobs[
                (self._jobs.ending[jobs] == _LOST) & (self._jobs.exchange[jobs] == self._place[merge])
            ]
            if not len(jobs):
                return _TIMER, -1
        lasting = jobs[self._jobs.dispatched_s[jobs] < now_s]
        if len(lasting):
            return 0, int(lasting.max())
        return (0 if merging else _CLIENTS), -1


def _last_jobs(found: Run, until_s: Floats) -> Ints:
    """Of each merge, the last of its jobs that arrived as it merged; -1 if they took no time.

    It is ``_NONE`` if none did.
    """
    jobs, merges = found.jobs, found.merges
    merged = np.flatnonzero(np.isin(jobs.into_version, merges.version))
    merge = np.searchsorted(merges.version, jobs.into_version[merged])
    in_time = until_s[merged] == merges.t_s[merge]
    merged, merge = merged[in_time], merge[in_time]
    last = np.full(len(merges), _NONE)
    np.maximum.at(last, merge, np.where(jobs.dispatched_s[merged] < until_s[merged], merged, -1))
    return last


def _before(times_s: Floats, now_s: float) -> float:
    """The last of some times before now; 0 for none."""
    place = int(times_s.searchsorted(now_s)) - 1
    return float(times_s[place]) if place >= 0 else 0.0


def _taken(parts: Parts, which: Ints | Bools) -> Parts:
    return Parts._make(column[which] for column in parts)


def _by_stage(found: Run, whole: Parts) -> Parts:
    """Paths whose jobs are divided into their stages."""
    is_job = whole.job >= 0
    jobs = whole.job[is_job]
    at_s = [found.over_s(name, jobs) for name in ("dispatched_s", "received_s", "worked_s", "arrived_s")]
    pieces = [_taken(whole, ~is_job)]
    for phase, (start_s, end_s) in enumerate(pairwise(at_s)):
        from_s, to_s = np.maximum(start_s, whole.from_s[is_job]), np.minimum(end_s, whole.to_s[is_job])
        lasts = to_s > from_s
        share = np.divide(to_s - from_s, end_s - start_s, out=np.ones(len(jobs)), where=lasts)
        stage = Parts(whole.round[is_job], np.full(len(jobs), phase), jobs, from_s, to_s, share)
        pieces.append(_taken(stage, lasts))
    every = Parts._make(map(np.concatenate, zip(*pieces, strict=True)))
    order = np.lexsort((every.from_s, every.round))
    return _taken(every, order)
