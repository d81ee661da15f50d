"""The median link of small fleets; golden/results has devices and work."""

from __future__ import annotations

import pytest

from edgefl.planning.fleets import devices_of
from edgefl.planning.learning import DataAccess
from edgefl.planning.medians import Medians
from edgefl.planning.plan import plan
from edgefl.planning.recorded import Recorded
from edgefl.runs.group import drafts


def found(links):
    """The plan of a fleet with a client behind each link, and its medians."""
    (draft,) = drafts(
        {
            "task": {"dataset": "digits", "clients": len(links), "partition": "iid"},
            "model": {"name": "mlp", "hidden": [16]},
            "method": "fedavg",
            "local": {"batch_size": 16, "steps": 3},
            "fleet": {"members": [{"device": "raspberry-pi-4b", "link": link} for link in links]},
            "server": {"rounds": 1},
        }
    )
    given = plan(draft, DataAccess(need="embedded")).plan
    return given, Medians(Recorded(given, devices_of(given.fleet, ""), dict(given.fleet.links)))


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
    plan_, medians = found(links)
    changes = medians.link()
    clients = plan_.clients
    whose = {
        clients.links[link] for link, kind in zip(clients.link, clients.kind, strict=True) if kind in changes
    }
    assert whose == ({"3g"} if to else set())
    (prices,) = plan_.prices
    for (one,) in changes.values():
        there = int(clients.kind[clients.link == clients.links.index(to)][0])
        names = ("down_delay_s", "up_delay_s", "down_bps", "up_bps")
        assert one == {name: getattr(prices, name)[there] for name in names}
