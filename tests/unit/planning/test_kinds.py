"""Kinds of clients: they share what prices depend on, and a client's price is that of its kind."""

from __future__ import annotations

import numpy as np
from alone import priced

from edgefl.core.plan import COLUMNS
from edgefl.core.price import in_dtype
from edgefl.core.pricer import Pricer
from edgefl.planning.fleets import device, link
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.planning.pricing import phase_steps
from edgefl.runs.group import drafts

# The first cannot train, the phone's energy is unknown, and two boards are there twice: on another link, and
# in another number type.
MEMBERS = [
    {"device": "coral-edge-tpu", "link": "ethernet"},
    {"device": "phone-mid", "link": "4g"},
    {"device": "phone-mid", "link": "5g"},
    {"device": "jetson-tx2", "link": "wifi-pi5", "share": 2},
    {"device": "jetson-tx2", "link": "4g", "dtype": "fp16"},
]
SCENARIO = {
    "task": {"dataset": "digits", "clients": 80, "samples": {"name": "uniform", "low": 29.5, "high": 33}},
    "model": [{"name": "mlp", "hidden": [20]}, {"name": "mlp", "hidden": [40, 20]}],
    "method": "fedclassavg",
    "local": {"batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.1}},
    "fleet": {"members": MEMBERS},
}


def test_a_clients_price_is_what_its_own_work_costs():
    """Priced one by one, every client's row is the same; so is its peak, and who is refused for what."""
    found = plan(drafts(SCENARIO)[0], DataAccess(need="embedded"))
    clients, learning = found.plan.clients, found.learning
    assert len(found.plan.prices) >= 1
    assert len(found.plan.prices[0].work_s) == clients.kind.max() + 1 < len(clients)
    for exchange, prices in zip(learning.methods[0].exchanges, found.plan.prices, strict=True):
        assert all(len(getattr(prices, name)) == clients.kind.max() + 1 for name in COLUMNS)
        for client, kind in enumerate(clients.kind.tolist()):
            name, dtype = clients.devices[clients.device[client]], clients.dtypes[clients.dtype[client]]
            steps = phase_steps(exchange, int(clients.samples[client]), 32)
            cost = prices.traces[clients.model[client]].cost(steps)
            count = sum(map(sum, (each.values() for each in steps)))
            assert prices.peak_bytes[kind] == in_dtype(cost.peak_bytes, dtype)
            assert clients.admitted[client] == (name != "coral-edge-tpu")
            if not clients.admitted[client]:
                assert np.isnan(prices.work_s[kind])
                assert prices.down_bytes[kind] == sum(cost.down.values())
                continue
            route = link(clients.links[clients.link[client]])
            expected = priced(Pricer(name, device(name), dtype), cost, route, count).demand
            np.testing.assert_equal(prices.demand(kind), expected)
    refused = [refusal.client for refusal in found.plan.refusals]
    assert refused == np.flatnonzero(~clients.admitted).tolist()
    assert {refusal.device for refusal in found.plan.refusals} == {"coral-edge-tpu"}
