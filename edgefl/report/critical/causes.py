"""What the parts of critical paths were bound by, in seconds that add up to each part's time.

- Of a transfer: "latency" is its handshakes, "loss" what the packets that its link loses take of its rate,
  "sharing" what it took longer than alone on its client's own link, "repeats" uploads that arrived with
  errors, and "rate" the rest. On links that are shared or change, repeats take their share of the bytes.
- Of work: "compute", "memory" and "launch" are its seconds at the device's full speed, by what bounds its
  kernels; "slowdown" is what the client's constant slowdown adds, "jitter" what chance adds, and "speed" what
  a changing speed adds, such as throttling. A client or a job that is faster than its device's full speed
  shortens the first three.
- "away" are the seconds of a stage in which the client was not busy with it: it was not available.
- "unavailable" is what the server waited for clients, "timer" for its policy's timer.

A stage of which only the end is in the round counts in proportion.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgefl.planning.medians import Medians
from edgefl.planning.recorded import Recorded
from edgefl.report.critical.path import PHASES, Parts
from edgefl.report.full_speed import done_s, planned_s
from edgefl.report.timeline import Bools, Floats, Ints, Timeline
from edgefl.store import Reader
from edgefl.world.timeline import jitters

CAUSES = (
    "rate", "latency", "loss", "sharing", "repeats",
    "compute", "memory", "launch", "slowdown", "jitter", "speed",
    "away", "unavailable", "timer",
)  # fmt: skip
_AT = {name: place for place, name in enumerate(CAUSES)}
_STAGES = ("receive_s", "work_s", "transmit_s")
# Of a stage's time: a difference below it is rounding.
_ROUNDING = 1e-9


def by_cause(reader: Reader, found: Timeline, recorded: Recorded, medians: Medians, parts: Parts) -> Floats:
    """The seconds of each part by ``CAUSES``, (n, causes).

    Raises:
        UserError: a number that pricing needs is unknown for a device.
    """
    seconds, lasted_s = np.zeros((len(parts.job), len(CAUSES))), parts.to_s - parts.from_s
    for cause, waits in (("unavailable", "waiting for clients"), ("timer", "timer")):
        there = parts.phase == PHASES.index(waits)
        seconds[there, _AT[cause]] = lasted_s[there]
    jobs, at = np.unique(parts.job[parts.job >= 0], return_inverse=True)
    weights = _Weights(reader, found, recorded, medians, jobs)
    stages = weights.received(), weights.worked(), weights.transmitted()
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


class _Weights:
    """The causes of some jobs' stages, (n, causes), in seconds of the whole stage."""

    def __init__(
        self, reader: Reader, found: Timeline, recorded: Recorded, medians: Medians, jobs: Ints
    ) -> None:
        self._found, self._jobs, self._plan, self._medians = found, jobs, recorded.plan, medians
        self._client, self._place = found.jobs.client[jobs], found.jobs.place[jobs]
        self._kind = found.fleet.kind[self._client]
        self._links = [recorded.links.get(name) for name in self._plan.clients.links]
        own = self._place, self._kind, found.jobs.steps[jobs]
        self._planned_s = planned_s(reader, *own)

    def received(self) -> Floats:
        """Of downloads."""
        return self._transfer("down", self._of("receive_s"), self._of("down_bytes"))

    def transmitted(self) -> Floats:
        """Of uploads."""
        busy_s, sent_bytes, payload_bytes = (
            self._of("transmit_s"),
            self._of("up_bytes"),
            self._asked("up_bytes"),
        )
        once_s = self._asked("up_delay_s") + 8 * payload_bytes / self._asked("up_bps")
        repeated = np.divide(
            payload_bytes, sent_bytes, out=np.ones(len(busy_s)), where=sent_bytes > payload_bytes
        )
        first_s = np.where(self._is_own("up"), np.minimum(busy_s, once_s), busy_s * repeated)
        repeats_s = np.where(busy_s > first_s * (1 + _ROUNDING), busy_s - first_s, 0.0)
        weights = self._transfer("up", busy_s - repeats_s, np.minimum(sent_bytes, payload_bytes))
        weights[:, _AT["repeats"]] = repeats_s
        return weights

    def worked(self) -> Floats:
        """Of work."""
        busy_s, slowdown = self._of("work_s"), self._found.fleet.slowdown[self._client]
        done = ~np.isnan(self._of("worked_s"))
        full_s = done_s(self._planned_s, busy_s, slowdown, worked=done)
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

    def _is_own(self, way: str) -> Bools:
        """Whether clients have their link in a direction to themselves."""
        server = self._plan.scenario.server
        limit = server.downlink if way == "down" else server.uplink
        found: Bools = (self._plan.clients.cell[self._client] < 0) & (limit is None)
        return found

    def _of(self, name: str) -> Floats:
        column: Floats = getattr(self._found.jobs, name)[self._jobs]
        return column

    def _asked(self, name: str) -> Any:
        """A column of the jobs' prices."""
        return np.stack([getattr(one, name) for one in self._plan.prices])[self._place, self._kind]

    def _transfer(self, way: str, busy_s: Floats, moved_bytes: Floats) -> Floats:
        """Of transfers that were sent once, or as far as they came."""
        alone_s = self._asked(f"{way}_delay_s") + 8 * moved_bytes / self._asked(f"{way}_bps")
        shared = ~self._is_own(way) & (busy_s > alone_s * (1 + _ROUNDING))
        sharing_s = np.where(shared, busy_s - alone_s, 0.0)
        own_s = busy_s - sharing_s
        latency_s = np.minimum(self._asked(f"{way}_delay_s"), own_s)
        nominal = [getattr(link, way).value if link else np.inf for link in self._links]
        bps = np.array(nominal)[self._plan.clients.link[self._client]]
        reached = np.divide(self._asked(f"{way}_bps"), bps, out=np.ones(len(bps)), where=np.isfinite(bps))
        weights = np.zeros((len(busy_s), len(CAUSES)))
        weights[:, _AT["sharing"]] = sharing_s
        weights[:, _AT["latency"]] = latency_s
        weights[:, _AT["rate"]] = (own_s - latency_s) * np.minimum(reached, 1.0)
        weights[:, _AT["loss"]] = (own_s - latency_s) * (1 - np.minimum(reached, 1.0))
        return weights

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
        order = np.lexsort((all_jobs.client, all_jobs.place))
        same = np.stack([all_jobs.client[order], all_jobs.place[order]])
        begins = np.flatnonzero((np.diff(same, axis=1, prepend=-1) != 0).any(axis=0))
        nth[order] = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
        for place, prices in enumerate(plan.prices):
            mine = np.flatnonzero(self._place == place)
            drawn = self._client[mine], nth[self._jobs[mine]]
            found[mine] = jitters(plan.fleet, plan.scenario.seed, prices.exchange, *drawn)
        return found
