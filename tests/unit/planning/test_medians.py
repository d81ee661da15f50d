"""The median link, device and work of small fleets."""

from __future__ import annotations

import numpy as np
import pytest

from edgefl.core.errors import UserError
from edgefl.planning.fleets import devices_of
from edgefl.planning.learning import DataAccess
from edgefl.planning.medians import Medians
from edgefl.planning.plan import plan
from edgefl.planning.recorded import Recorded
from edgefl.planning.repricing import Pricers
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


def given_to(plan_, median, key):
    """What clients have instead, by what they have now."""
    clients = plan_.clients
    names = getattr(clients, f"{key}s")
    return {
        names[getattr(clients, key)[client]]: median.of[clients.kind[client]]
        for client in range(len(clients))
    }


@pytest.mark.parametrize(
    ("links", "to"),
    [
        (["ethernet", "wifi-pi4", "3g"], {"ethernet": "", "wifi-pi4": "", "3g": "wifi-pi4"}),
        (["ethernet", "3g"], {"ethernet": "", "3g": "ethernet"}),
        (["ethernet", "3g", "3g"], {"ethernet": "", "3g": ""}),
        (["ethernet", "ethernet", "3g", "3g"], {"ethernet": "", "3g": "ethernet"}),
    ],
)
def test_the_link_in_the_middle(links, to):
    """Of an even number the quicker one; only who is slower gets it, and no other price changes."""
    plan_, medians = found([{"link": link} for link in links])
    median = medians.link()
    assert given_to(plan_, median, "link") == to
    (before,), (after,) = plan_.prices, median.prices
    kinds = plan_.clients.kind
    slow = np.array([bool(median.of[kind]) for kind in kinds])
    assert (after.down_bps[kinds[slow]] > before.down_bps[kinds[slow]]).all()
    assert after.down_bps[kinds[~slow]].tolist() == before.down_bps[kinds[~slow]].tolist()
    assert after.work_s.tolist() == before.work_s.tolist()


def test_the_device_in_the_middle():
    """With its number type, where they differ; the slow one's work takes as long as there."""
    members = [{"device": "laptop-cpu"}, {"device": "raspberry-pi-4b"}, {"device": "raspberry-pi-zero-2w"}]
    plan_, medians = found(members)
    median = medians.device()
    assert given_to(plan_, median, "device") == {
        "laptop-cpu": "",
        "raspberry-pi-4b": "",
        "raspberry-pi-zero-2w": "raspberry-pi-4b",
    }
    (before,), (after,) = plan_.prices, median.prices
    kinds = {
        plan_.clients.devices[one]: kind
        for one, kind in zip(plan_.clients.device, plan_.clients.kind, strict=True)
    }
    own, other = kinds["raspberry-pi-zero-2w"], kinds["raspberry-pi-4b"]
    assert after.work_s[own] == before.work_s[other] < before.work_s[own]


def test_the_work_in_the_middle():
    """Of five clients with unequal samples, the two with more than the third have as many as that one."""
    partition = {"name": "dirichlet", "alpha": 0.3, "min_samples": 20}
    plan_, medians = found([MEMBER], partition, clients=5, epochs=1)
    samples = plan_.clients.samples
    middle = int(np.sort(samples)[2])
    assert len(set(samples.tolist())) == 5
    median = medians.work()
    for client, own in enumerate(samples.tolist()):
        to = median.of[plan_.clients.kind[client]]
        assert to in ({f"{middle} samples", ""} if own > middle else {""})
    assert any(median.of)


def test_what_bounds_work_sums_to_its_price():
    """In seconds, by arithmetic, memory and launches."""
    plan_, medians = found([MEMBER])
    assert medians.bounds(0, 0).seconds == pytest.approx(float(plan_.prices[0].work_s[0]), rel=1e-12)


def test_a_device_that_nobody_can_price_is_slower_than_all_others(monkeypatch):
    """Such as a measured one with work that was not measured: the median is the slower of the two others."""
    names = ["laptop-cpu", "raspberry-pi-4b", "raspberry-pi-zero-2w"]
    plan_, medians = found([{"device": name} for name in names])
    timed = Pricers.of

    def of(pricers, device, dtype):
        if device == "laptop-cpu":
            raise UserError("not measured")
        return timed(pricers, device, dtype)

    monkeypatch.setattr(Pricers, "of", of)
    assert set(given_to(plan_, medians.device(), "device").values()) == {""}
