"""What transfers were bound by, in seconds that add up to the time that they took.

- "latency" is handshakes, "loss" what the packets that a link loses take of its rate, and "rate" the rest of
  what the transfer takes alone on its client's own link.
- "sharing" is what it took longer than that, where it shares the server's link or a cell with others. A link
  that changes is taken as it is from the transfer's beginning on, without pauses of its client.
- "repeats" are uploads that arrived with errors. Where a link is shared or changes, they take their share of
  the bytes of the time.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edgefl.analysis.explain.path import PHASES, critical_paths
from edgefl.analysis.run import Run
from edgefl.core.arrays import Bools, Floats, Ints
from edgefl.core.link import Link
from edgefl.core.link_traces import Way
from edgefl.core.plan import Plan
from edgefl.store.reader import Reader

# Of a stage's time: a difference below it is rounding.
_ROUNDING = 1e-9
# Of each way: the columns of how long it took, when it began and when it ended, and its phase.
_STAGES: dict[Way, tuple[str, str, str, int]] = {
    "down": ("receive_s", "dispatched_s", "received_s", PHASES.index("download")),
    "up": ("transmit_s", "worked_s", "arrived_s", PHASES.index("upload")),
}


class Transfers(NamedTuple):
    """The seconds of transfers by cause, (n,) each; see above."""

    rate: Floats
    latency: Floats
    loss: Floats
    sharing: Floats
    repeats: Floats


def transfers(found: Run, plan: Plan, jobs: Ints, way: Way) -> Transfers:
    """What some jobs' downloads or uploads were bound by; jobs are places, (n,)."""
    client, place = found.jobs.client[jobs], found.jobs.exchange[jobs]
    kind = found.clients.kind[client]
    payload_bytes, delay_s, bps = (
        np.stack([getattr(one.demand, f"{way}_{name}") for one in plan.prices])[place, kind]
        for name in ("bytes", "delay_s", "bps")
    )
    busy, begins, *_ = _STAGES[way]
    busy_s, moved_bytes = (getattr(found.jobs, name)[jobs] for name in (busy, f"{way}_bytes"))
    sent_bytes = np.minimum(moved_bytes, payload_bytes)
    alone_s = delay_s + 8 * sent_bytes / bps
    traced = np.zeros(len(jobs), dtype=np.bool_)
    # What the links' rates are without losses.
    nominal = np.full(len(jobs), np.inf)
    for number, name in enumerate(plan.clients.links):
        if (link := plan.fleet.links.get(name)) is None:
            continue
        mine = np.flatnonzero(plan.clients.link[client] == number)
        nominal[mine] = getattr(link, way).value
        if link.trace is not None:
            begin_s = found.jobs[begins][jobs[mine]]
            alone = alone_on(link, way, plan.scenario.seed, client[mine], begin_s, 8 * sent_bytes[mine])
            (delay_s[mine], alone_s[mine]), traced[mine] = alone, True
    shared = is_shared(plan, way)[client]
    of_bytes = np.ones(len(jobs))
    np.divide(payload_bytes, moved_bytes, out=of_bytes, where=moved_bytes > payload_bytes)
    own_once_s = np.minimum(busy_s, delay_s + 8 * payload_bytes / bps)
    once_s = np.where(shared | traced, busy_s * of_bytes, own_once_s)
    repeats_s = np.where(busy_s > once_s * (1 + _ROUNDING), busy_s - once_s, 0.0)
    first_s = busy_s - repeats_s
    sharing_s = np.where(shared & (first_s > alone_s * (1 + _ROUNDING)), first_s - alone_s, 0.0)
    own_s = first_s - sharing_s
    latency_s = np.minimum(delay_s, own_s)
    reached = np.minimum(np.divide(bps, nominal, out=np.ones(len(bps)), where=np.isfinite(nominal)), 1.0)
    flowing_s = own_s - latency_s
    return Transfers(flowing_s * reached, latency_s, flowing_s * (1 - reached), sharing_s, repeats_s)


def is_shared(plan: Plan, way: Way) -> Bools:
    """Whether clients share a capacity with others on the way, (clients,)."""
    server = plan.scenario.server
    limit = server.downlink if way == "down" else server.uplink
    found: Bools = (plan.clients.cell >= 0) | (limit is not None)
    return found


def alone_on(
    link: Link, way: Way, root: int, clients: Ints, begin_s: Floats, bits: Floats
) -> tuple[Floats, Floats]:
    """The handshakes of transfers alone on a link with a trace, and these with the bytes, (n,) each.

    Args:
        root: the run's seed.
        clients: whose transfers, (n,).
        begin_s: when they begin; NaN for those that did not, (n,).
        bits: what they move, (n,).
    """
    which, offset_s = link.followed.dealt(root, clients)
    delay_s, flowing_s = np.zeros(len(clients)), np.zeros(len(clients))
    for one in np.unique(which[~np.isnan(begin_s)]).tolist():
        mine = np.flatnonzero((which == one) & ~np.isnan(begin_s))
        rates, at_s = link.rates(one, way), begin_s[mine] + offset_s[mine]
        delay_s[mine] = rates.delay_s.at(at_s)
        flows_s = at_s + delay_s[mine]
        flowing_s[mine] = rates.bps.when(rates.bps.integral(flows_s) + bits[mine]) - flows_s
    return delay_s, delay_s + np.where(bits > 0, flowing_s, 0.0)


class Transfer(NamedTuple):
    """What a run's transfers one way take in the mean, sent once; and what they would on their own links."""

    seconds: float
    alone_s: float


@dataclass(frozen=True)
class SharedTime:
    """What sharing costs a run; ways without transfers are None.

    ``share`` is that of its rounds' time in which critical paths wait for others' transfers.
    """

    share: float
    download: Transfer | None
    upload: Transfer | None


def shared_time(reader: Reader, plan: Plan) -> SharedTime | None:
    """What sharing costs a run; None where clients share nothing, or nothing was merged."""
    if not any(is_shared(plan, way).any() for way in _STAGES):
        return None
    found = Run(reader)
    whole_s = float(found.merges.t_s.max(initial=0.0))
    if not whole_s:
        return None
    parts, shared_s = critical_paths(found), 0.0
    for way, (*_, phase) in _STAGES.items():
        mine = parts.phase == phase
        seconds = transfers(found, plan, parts.job[mine], way).sharing * parts.share[mine]
        shared_s += float(seconds.sum())
    return SharedTime(shared_s / whole_s, *(_transfer(found, plan, way) for way in _STAGES))


def _transfer(found: Run, plan: Plan, way: Way) -> Transfer | None:
    moved, ends = found.jobs[f"{way}_bytes"] > 0, _STAGES[way][2]
    jobs = np.flatnonzero(moved & ~np.isnan(found.jobs[ends]))
    if not len(jobs):
        return None
    by_cause = transfers(found, plan, jobs, way)
    alone_s = by_cause.rate + by_cause.latency + by_cause.loss
    return Transfer(float((alone_s + by_cause.sharing).mean()), float(alone_s.mean()))
