"""How much of a run's time is due to links that clients share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edgefl.analysis.explain.path import PHASES, critical_paths
from edgefl.analysis.explain.transfers import is_shared, transfers
from edgefl.analysis.run import Run
from edgefl.core.link_traces import Way
from edgefl.core.plan import Plan
from edgefl.planning.recorded import Recorded
from edgefl.store import Reader

_ENDS: dict[Way, str] = {"down": "received_s", "up": "arrived_s"}
_PHASES: dict[Way, int] = {"down": PHASES.index("download"), "up": PHASES.index("upload")}


class Transfer(NamedTuple):
    """What a run's transfers one way take in the mean.

    Attributes:
        seconds: each, sent once.
        alone_s: on their clients' own links.
    """

    seconds: float
    alone_s: float


@dataclass(frozen=True)
class SharedTime:
    """What sharing costs a run.

    Attributes:
        share: the share of its rounds' time in which critical paths wait for others' transfers.
        download, upload: what transfers take; None without any.
    """

    share: float
    download: Transfer | None
    upload: Transfer | None


def shared_time(reader: Reader, plan: Plan) -> SharedTime | None:
    """What sharing costs a run; None where clients share nothing, or nothing was merged.

    Raises:
        UserError: the run is damaged.
    """
    if not any(is_shared(plan, way).any() for way in _ENDS):
        return None
    found, recorded = Run(reader), Recorded(plan, {}, dict(plan.fleet.links))
    whole_s = float(found.merges.t_s.max(initial=0.0))
    if not whole_s:
        return None
    parts, shared_s = critical_paths(found), 0.0
    for way, phase in _PHASES.items():
        mine = parts.phase == phase
        seconds = transfers(found, recorded, parts.job[mine], way).sharing * parts.share[mine]
        shared_s += float(seconds.sum())
    return SharedTime(shared_s / whole_s, *(_transfer(found, recorded, way) for way in _ENDS))


def _transfer(found: Run, recorded: Recorded, way: Way) -> Transfer | None:
    moved = getattr(found.jobs, f"{way}_bytes") > 0
    jobs = np.flatnonzero(moved & ~np.isnan(getattr(found.jobs, _ENDS[way])))
    if not len(jobs):
        return None
    by_cause = transfers(found, recorded, jobs, way)
    alone_s = by_cause.rate + by_cause.latency + by_cause.loss
    return Transfer(float((alone_s + by_cause.sharing).mean()), float(alone_s.mean()))
