"""What transfers were bound by, in seconds that add up to the time that they took.

- "latency" is handshakes, "loss" what the packets that a link loses take of its rate, and "rate" the rest of
  what the transfer takes alone on its client's own link.
- "sharing" is what it took longer than that, where it shares the server's link or a cell with others. A link
  that changes is taken as it is from the transfer's beginning on, without pauses of its client.
- "repeats" are uploads that arrived with errors. Where a link is shared or changes, they take their share of
  the bytes of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from edgefl.analysis.explain.traced import alone_on
from edgefl.analysis.run import Bools, Floats, Ints, Run
from edgefl.core.link import Link
from edgefl.core.link_traces import Way
from edgefl.core.plan import Plan
from edgefl.planning.recorded import Recorded

# Of a stage's time: a difference below it is rounding.
_ROUNDING = 1e-9
_BUSY = {"down": "receive_s", "up": "transmit_s"}
_BEGINS = {"down": "dispatched_s", "up": "worked_s"}


class Transfers(NamedTuple):
    """The seconds of transfers by cause, (n,) each; see above."""

    rate: Floats
    latency: Floats
    loss: Floats
    sharing: Floats
    repeats: Floats


def transfers(found: Run, recorded: Recorded, jobs: Ints, way: Way) -> Transfers:
    """What some jobs' downloads or uploads were bound by.

    Args:
        found: the run's jobs.
        recorded: what it was planned of.
        jobs: the places of the jobs, (n,).
        way: "down" or "up".
    """
    plan, client, place = recorded.plan, found.jobs.client[jobs], found.jobs.exchange[jobs]
    kind = found.clients.kind[client]
    payload_bytes, delay_s, bps = (
        np.stack([getattr(one, f"{way}_{name}") for one in plan.prices])[place, kind]
        for name in ("bytes", "delay_s", "bps")
    )
    busy_s, moved_bytes = getattr(found.jobs, _BUSY[way])[jobs], getattr(found.jobs, f"{way}_bytes")[jobs]
    sent_bytes = np.minimum(moved_bytes, payload_bytes)
    alone_s = delay_s + 8 * sent_bytes / bps
    traced = np.zeros(len(jobs), dtype=np.bool_)
    for mine, link in _on_traces(recorded, client):
        begin_s = getattr(found.jobs, _BEGINS[way])[jobs[mine]]
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
    reached = np.minimum(_reached(recorded, way, client, bps), 1.0)
    flowing_s = own_s - latency_s
    return Transfers(flowing_s * reached, latency_s, flowing_s * (1 - reached), sharing_s, repeats_s)


def is_shared(plan: Plan, way: Way) -> Bools:
    """Whether clients share a capacity with others on the way, (clients,)."""
    server = plan.scenario.server
    limit = server.downlink if way == "down" else server.uplink
    found: Bools = (plan.clients.cell >= 0) | (limit is not None)
    return found


def _on_traces(recorded: Recorded, client: Ints) -> Iterator[tuple[Ints, Link]]:
    """The places of those of some clients whose links change, by link."""
    clients = recorded.plan.clients
    for number, name in enumerate(clients.links):
        link = recorded.links.get(name)
        if link is not None and link.trace is not None:
            yield np.flatnonzero(clients.link[client] == number), link


def _reached(recorded: Recorded, way: Way, client: Ints, bps: Floats) -> Floats:
    """The share of their links' rates that clients reach under losses."""
    clients = recorded.plan.clients
    links = [recorded.links.get(name) for name in clients.links]
    nominal = np.array([getattr(link, way).value if link else np.inf for link in links])[clients.link[client]]
    found: Floats = np.divide(bps, nominal, out=np.ones(len(bps)), where=np.isfinite(nominal))
    return found
