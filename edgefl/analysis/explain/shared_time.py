"""How much of a run's time is due to links that clients share."""

from __future__ import annotations

import numpy as np

from edgefl.analysis.explain.path import PHASES, critical_paths, rounds_of
from edgefl.analysis.explain.transfers import is_shared, transfers
from edgefl.analysis.sharing import SharedTime, Transfer
from edgefl.analysis.timeline import Timeline, timeline
from edgefl.core.catalogue import load
from edgefl.core.link_traces import Way
from edgefl.core.plan import Plan
from edgefl.planning.recorded import Recorded
from edgefl.store import Reader

_ENDS: dict[Way, str] = {"down": "received_s", "up": "arrived_s"}
_PHASES: dict[Way, int] = {"down": PHASES.index("download"), "up": PHASES.index("upload")}


def shared_time(reader: Reader, plan: Plan) -> SharedTime | None:
    """What sharing costs a run; None where clients share nothing, or nothing was merged.

    Raises:
        UserError: the run is damaged.
    """
    if not any(is_shared(plan, way).any() for way in _ENDS):
        return None
    found, recorded = timeline(reader), Recorded(plan, {}, dict(plan.fleet.links))
    rounds = rounds_of(found)
    whole_s = float(rounds.to_s[-1]) if len(rounds.to_s) else 0.0
    if not whole_s:
        return None
    policy = load("policies", plan.scenario.server.policy.name)
    parts = critical_paths(found, rounds, timed=hasattr(policy, "round_s"))
    shared_s = 0.0
    for way, phase in _PHASES.items():
        mine = parts.phase == phase
        seconds = transfers(found, recorded, parts.job[mine], way).sharing * parts.share[mine]
        shared_s += float(seconds.sum())
    return SharedTime(shared_s / whole_s, *(_transfer(found, recorded, way) for way in _ENDS))


def _transfer(found: Timeline, recorded: Recorded, way: Way) -> Transfer | None:
    moved = getattr(found.jobs, f"{way}_bytes") > 0
    jobs = np.flatnonzero(moved & ~np.isnan(getattr(found.jobs, _ENDS[way])))
    if not len(jobs):
        return None
    by_cause = transfers(found, recorded, jobs, way)
    alone_s = by_cause.rate + by_cause.latency + by_cause.loss
    return Transfer(float((alone_s + by_cause.sharing).mean()), float(alone_s.mean()))
