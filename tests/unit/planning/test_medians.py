"""The median link, device and work of small fleets."""

from __future__ import annotations

import numpy as np
import pytest

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


def kind_of(plan_, key, name):
    """A kind of client that has what the name says."""
    clients = plan_.clients
    return int(clients.kind[getattr(clients, key) == getattr(clients, f"{key}s").index(name)][0])


@pytest.mark.parametrize(
    ("links", "to"),
    [
        (["ethernet", "wifi-pi4", "3g"], "wifi-pi4"),
        (["ethernet", "3g", "3g"], None),
        (["ethernet", "ethernet", "3g", "3g"], "ethernet"),
    ],
)
def test_the_link_in_the_middle(links, to):
    """Of an even number the quicker one; only who is slower gets it, and no other price changes."""
    plan_, medians = found([{"link": link} for link in links])
    changes = medians.link()
    clients = plan_.clients
    whose = {
        clients.links[link] for link, kind in zip(clients.link, clients.kind, strict=True) if kind in changes
    }
    assert whose == ({"3g"} if to else set())
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
    assert medians.bounds(0, 0).seconds == pytest.approx(float(prices.work_s[0]), rel=1e-12)
    for client, own in enumerate(samples.tolist()):
        kind = int(plan_.clients.kind[client])
        if kind in changes:
            assert own > middle
            middle_kind = plan_.clients.kind[samples == middle][0]
            assert changes[kind] == [{"work_s": pytest.approx(prices.work_s[middle_kind], rel=1e-12)}]
