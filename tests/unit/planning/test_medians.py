"""The median link, device and work of small fleets."""

from __future__ import annotations

import numpy as np
import pytest

from edgefl.core.errors import UserError
from edgefl.core.pricer import Pricer
from edgefl.planning.fleets import devices_of
from edgefl.planning.learning import DataAccess
from edgefl.planning.medians import Medians
from edgefl.planning.plan import plan
from edgefl.planning.recorded import Recorded
from edgefl.runs.group import drafts

MEMBER = {"device": "raspberry-pi-4b", "link": "wifi-pi4"}


def found(members, partition="iid", clients=None, **local):
    """The plan of a fleet with a client of each member, and its medians."""
    (draft,) = drafts(
        {
            "task": {"dataset": "digits", "clients": clients or len(members), "partition": partition},
            "model": {"name": "mlp", "hidden": [16]},
            "method": "fedavg",
            "local": {"batch_size": 16, **(local or {"steps": 3})},
            "fleet": {"members": [{**MEMBER, **one} for one in members]},
            "server": {"rounds": 1},
        }
    )
    given = plan(draft, DataAccess(need="embedded")).plan
    return given, Medians(Recorded(given, devices_of(given.fleet, ""), dict(given.fleet.links)))


def changed(plan_, changes, key):
    """The names of what those clients have now that get something else, each once."""
    clients = plan_.clients
    return {
        getattr(clients, f"{key}s")[place]
        for place, kind in zip(getattr(clients, key), clients.kind, strict=True)
        if kind in changes
    }


def kind_of(plan_, key, name):
    """A kind of client that has what the name says."""
    clients = plan_.clients
    return int(clients.kind[getattr(clients, key) == getattr(clients, f"{key}s").index(name)][0])


@pytest.mark.parametrize(
    ("links", "to"),
    [
        (["ethernet", "wifi-pi4", "3g"], "wifi-pi4"),
        (["ethernet", "3g"], "ethernet"),
        (["ethernet", "3g", "3g"], None),
        (["ethernet", "ethernet", "3g", "3g"], "ethernet"),
    ],
)
def test_the_link_in_the_middle(links, to):
    """Of an even number the quicker one; only who is slower gets it, and no other price changes."""
    plan_, medians = found([{"link": link} for link in links])
    changes = medians.link()
    assert changed(plan_, changes, "link") == ({"3g"} if to else set())
    (prices,) = plan_.prices
    for (one,) in changes.values():
        there, names = kind_of(plan_, "link", to), ("down_delay_s", "up_delay_s", "down_bps", "up_bps")
        assert one == {name: getattr(prices, name)[there] for name in names}


def test_the_device_in_the_middle():
    """The slow one's work takes as long as there, and nothing else changes."""
    members = [{"device": "laptop-cpu"}, {"device": "raspberry-pi-4b"}, {"device": "raspberry-pi-zero-2w"}]
    plan_, medians = found(members)
    own, other = (kind_of(plan_, "device", name) for name in ("raspberry-pi-zero-2w", "raspberry-pi-4b"))
    (prices,) = plan_.prices
    assert medians.device() == {own: [{"work_s": prices.work_s[other]}]}
    assert prices.work_s[other] < prices.work_s[own]


def test_the_work_in_the_middle():
    """Of five clients with unequal samples, the two with more than the third have as much as that one."""
    partition = {"name": "dirichlet", "alpha": 0.3, "min_samples": 20}
    plan_, medians = found([MEMBER], partition, clients=5, epochs=1)
    samples = plan_.clients.samples
    middle = int(np.sort(samples)[2])
    assert len(set(samples.tolist())) == 5
    (prices,), changes = plan_.prices, medians.work()
    assert changes
    for client, own in enumerate(samples.tolist()):
        kind = int(plan_.clients.kind[client])
        if kind in changes:
            assert own > middle
            middle_kind = plan_.clients.kind[samples == middle][0]
            assert changes[kind] == [{"work_s": pytest.approx(prices.work_s[middle_kind], rel=1e-12)}]


def test_what_bounds_work_sums_to_its_price():
    """In seconds, by arithmetic, memory and launches."""
    plan_, medians = found([MEMBER])
    assert medians.bounds(0, 0).seconds == pytest.approx(float(plan_.prices[0].work_s[0]), rel=1e-12)


def test_a_device_that_nobody_can_price_is_slower_than_all_others(monkeypatch):
    """Such as a measured one with work that was not measured: the median is the slower of the two others."""
    names = ["laptop-cpu", "raspberry-pi-4b", "raspberry-pi-zero-2w"]
    _, medians = found([{"device": name} for name in names])

    def priced(device, *of):
        if device == "laptop-cpu":
            raise UserError("not measured")
        return Pricer(device, *of)

    monkeypatch.setattr("edgefl.planning.repricing.Pricer", priced)
    assert medians.device() == {}
