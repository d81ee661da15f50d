"""What transfers were bound by, in seconds that add up to the time that they took.

- "latency" is handshakes, "loss" what the packets that a link loses take of its rate, and "rate" the rest of
  what the transfer takes alone on its client's own link.
- "sharing" is what it took longer than that, where it shares the server's link or a cell with others.
- "repeats" are uploads that arrived with errors. Where a link is shared, they take the share of the time that
  they have of the bytes.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from edgefl.core.plan import Plan
from edgefl.planning.recorded import Recorded
from edgefl.report.timeline import Bools, Floats, Ints, Timeline

# Of a stage's time: a difference below it is rounding.
_ROUNDING = 1e-9
_BUSY = {"down": "receive_s", "up": "transmit_s"}

Way = Literal["down", "up"]


class Transfers(NamedTuple):
    """The seconds of transfers by cause, (n,) each; see above."""

    rate: Floats
    latency: Floats
    loss: Floats
    sharing: Floats
    repeats: Floats


def transfers(found: Timeline, recorded: Recorded, jobs: Ints, way: Way) -> Transfers:
    """What some jobs' downloads or uploads were bound by.

    Args:
        found: the run's jobs.
        recorded: what it was planned of.
        jobs: the places of the jobs, (n,).
        way: "down" or "up".
    """
    plan, client, place = recorded.plan, found.jobs.client[jobs], found.jobs.place[jobs]
    kind = found.fleet.kind[client]
    payload_bytes, delay_s, bps = (
        np.stack([getattr(one, f"{way}_{name}") for one in plan.prices])[place, kind]
        for name in ("bytes", "delay_s", "bps")
    )
    busy_s, moved_bytes = getattr(found.jobs, _BUSY[way])[jobs], getattr(found.jobs, f"{way}_bytes")[jobs]
    shared = is_shared(plan, way)[client]
    of_bytes = np.ones(len(jobs))
    np.divide(payload_bytes, moved_bytes, out=of_bytes, where=moved_bytes > payload_bytes)
    once_s = np.where(shared, busy_s * of_bytes, np.minimum(busy_s, delay_s + 8 * payload_bytes / bps))
    repeats_s = np.where(busy_s > once_s * (1 + _ROUNDING), busy_s - once_s, 0.0)
    alone_s = delay_s + 8 * np.minimum(moved_bytes, payload_bytes) / bps
    first_s = busy_s - repeats_s
    sharing_s = np.where(shared & (first_s > alone_s * (1 + _ROUNDING)), first_s - alone_s, 0.0)
    own_s = first_s - sharing_s
    latency_s = np.minimum(delay_s, own_s)
    reached = np.minimum(_reached(recorded, way, client, bps), 1.0)
    flowing_s = own_s - latency_s
    return Transfers(flowing_s * reached, latency_s, flowing_s * (1 - reached), sharing_s, repeats_s)


def is_shared(plan: Plan, way: Way) -> Bools:
    """Whether clients share a capacity with others on the way, (clients,)."""
    server = plan.scenario.server
    limit = server.downlink if way == "down" else server.uplink
    found: Bools = (plan.clients.cell >= 0) | (limit is not None)
    return found


def _reached(recorded: Recorded, way: Way, client: Ints, bps: Floats) -> Floats:
    """The share of their links' rates that clients reach under losses."""
    clients = recorded.plan.clients
    links = [recorded.links.get(name) for name in clients.links]
    nominal = np.array([getattr(link, way).value if link else np.inf for link in links])[clients.link[client]]
    found: Floats = np.divide(bps, nominal, out=np.ones(len(bps)), where=np.isfinite(nominal))
    return found
