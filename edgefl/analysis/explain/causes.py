"""What the parts of critical paths were bound by, in seconds that add up to each part's time.

- Of a transfer: "latency", "rate", "loss", "sharing" and "repeats"; see ``transfers``.
- Of work: "compute", "memory" and "launch" are its seconds at the device's full speed, by what bounds its
  kernels; "slowdown" is what the client's constant slowdown adds, "jitter" what chance adds, and "speed" what
  a changing speed adds, such as throttling. A client or a job that is faster than its device's full speed
  shortens the first three.
- "away" are the seconds of a stage in which the client was not busy with it: it was not available.
- "unavailable" is what the server waited for clients, "timer" for its policy's timer, "server" its own work.

A stage of which only the end is in the round counts in proportion.
"""

from __future__ import annotations

import numpy as np

from edgefl.analysis.explain.path import PHASES, Parts
from edgefl.analysis.explain.transfers import Transfers, transfers
from edgefl.analysis.run import Floats, Ints, Run
from edgefl.planning.medians import Medians
from edgefl.planning.recorded import Recorded
from edgefl.world.timeline import jitters

CAUSES = (
    "rate", "latency", "loss", "sharing", "repeats",
    "compute", "memory", "launch", "slowdown", "jitter", "speed",
    "away", "unavailable", "timer", "server",
)  # fmt: skip
_AT = {name: place for place, name in enumerate(CAUSES)}
_STAGES = ("receive_s", "work_s", "transmit_s")
# Of a stage's time: a difference below it is rounding.
_ROUNDING = 1e-9


def by_cause(found: Run, recorded: Recorded, medians: Medians, parts: Parts) -> Floats:
    """The seconds of each part by ``CAUSES``, (n, causes).

    Raises:
        UserError: a number that pricing needs is unknown for a device.
    """
    seconds, lasted_s = np.zeros((len(parts.job), len(CAUSES))), parts.to_s - parts.from_s
    for cause, waits in (("unavailable", "waiting for clients"), ("timer", "timer"), ("server", "server")):
        there = parts.phase == PHASES.index(waits)
        seconds[there, _AT[cause]] = lasted_s[there]
    jobs, at = np.unique(parts.job[parts.job >= 0], return_inverse=True)
    weights = _Weights(found, recorded, medians, jobs)
    down, up = (_transferred(transfers(found, recorded, jobs, way)) for way in ("down", "up"))
    stages = down, weights.worked(), up
    of_part = np.flatnonzero(parts.job >= 0)
    for phase, (stage, name) in enumerate(zip(stages, _STAGES, strict=True)):
        mine = parts.phase[of_part] == phase
        rows, job = of_part[mine], at[mine]
        busy_s = getattr(found.jobs, name)[jobs[job]] * parts.share[rows]
        away_s = lasted_s[rows] - busy_s
        away_s = np.where(away_s > _ROUNDING * parts.to_s[rows], away_s, 0.0)
        total = stage[job].sum(axis=1)
        scale = np.divide(lasted_s[rows] - away_s, total, out=np.zeros(len(rows)), where=total > 0)
        seconds[rows] = stage[job] * scale[:, None]
        seconds[rows, _AT["away"]] = away_s
    return seconds


def _transferred(found: Transfers) -> Floats:
    """The causes of transfers, (n, causes), in seconds."""
    weights = np.zeros((len(found.rate), len(CAUSES)))
    for cause, seconds in zip(found._fields, found, strict=True):
        weights[:, _AT[cause]] = seconds
    return weights


class _Weights:
    """The causes of some jobs' work, (n, causes), in seconds of the whole stage."""

    def __init__(self, found: Run, recorded: Recorded, medians: Medians, jobs: Ints) -> None:
        self._found, self._jobs, self._plan, self._medians = found, jobs, recorded.plan, medians
        self._client, self._place = found.jobs.client[jobs], found.jobs.exchange[jobs]
        self._kind = found.clients.kind[self._client]

    def worked(self) -> Floats:
        """Of work."""
        busy_s, slowdown = self._of("work_s"), self._found.clients.slowdown[self._client]
        done, planned_s = ~np.isnan(self._of("worked_s")), self._planned_s()
        # Nobody knows how far work came that was broken off: at its client's usual speed, it is assumed.
        full_s = np.where(done, planned_s, np.minimum(planned_s, busy_s / slowdown))
        usual_s = full_s * slowdown
        jittered_s = np.minimum(usual_s * self._jitter(), busy_s) if self._plan.fleet.speed else busy_s
        jittered_s = np.where(done, jittered_s, busy_s)
        slow = np.maximum(slowdown, 1.0)
        chance = np.divide(jittered_s, usual_s, out=np.ones(len(busy_s)), where=usual_s > 0)
        late = np.where(chance > 1 + _ROUNDING, chance, 1.0)
        base_s = jittered_s / (slow * late)
        weights = np.zeros((len(busy_s), len(CAUSES)))
        weights[:, _AT["compute"] : _AT["launch"] + 1] = base_s[:, None] * self._bound_by()
        weights[:, _AT["slowdown"]] = base_s * (slow - 1)
        weights[:, _AT["jitter"]] = base_s * slow * (late - 1)
        speed_s = busy_s - jittered_s
        weights[:, _AT["speed"]] = np.where(speed_s > _ROUNDING * busy_s, speed_s, 0.0)
        return weights

    def _of(self, name: str) -> Floats:
        column: Floats = getattr(self._found.jobs, name)[self._jobs]
        return column

    def _planned_s(self) -> Floats:
        """The seconds of whole work at full speed: the kinds' prices, by the steps that jobs took."""
        work_s, of_all = (
            np.stack([getattr(one, name) for one in self._plan.prices])[self._place, self._kind]
            for name in ("work_s", "steps")
        )
        found: Floats = work_s * np.divide(
            self._found.jobs.steps[self._jobs], of_all, out=np.ones(len(work_s)), where=of_all > 0
        )
        return found

    def _bound_by(self) -> Floats:
        """The shares of work at full speed that are bound by arithmetic, memory and launches, (n, 3)."""
        pairs, at = np.unique(np.stack([self._place, self._kind]), axis=1, return_inverse=True)
        shares = np.zeros((pairs.shape[1], 3))
        shares[:, 0] = 1.0
        for row, (place, kind) in enumerate(pairs.T.tolist()):
            bounds = self._medians.bounds(place, kind)
            if bounds is not None and bounds.seconds > 0:
                shares[row] = np.array(bounds) / bounds.seconds
        return shares[at.reshape(-1)]

    def _jitter(self) -> Floats:
        """What work took as many times as long by chance: drawn again."""
        plan, all_jobs, found = self._plan, self._found.jobs, np.ones(len(self._jobs))
        nth = np.zeros(len(all_jobs), dtype=np.int64)
        order = np.lexsort((all_jobs.client, all_jobs.exchange))
        same = np.stack([all_jobs.client[order], all_jobs.exchange[order]])
        begins = np.flatnonzero((np.diff(same, axis=1, prepend=-1) != 0).any(axis=0))
        nth[order] = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
        for place, prices in enumerate(plan.prices):
            mine = np.flatnonzero(self._place == place)
            drawn = self._client[mine], nth[self._jobs[mine]]
            found[mine] = jitters(plan.fleet, plan.scenario.seed, prices.exchange, *drawn)
        return found
