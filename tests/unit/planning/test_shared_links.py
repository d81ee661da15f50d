"""What exchanges cost the links that clients share, before anything runs: by hand."""

import pytest
from plans import link, plan, prices, sourced

from edgefl.core.fleet import Fleet
from edgefl.planning.costs import shared_links
from edgefl.world.policies import fedasync, overselect

MB = 10**6
CELLS = {"home": {"down": sourced("2 Mbit/s"), "up": sourced("2 Mbit/s"), "clients": 4}}


def works(*up, everyone=False):
    """An exchange that sends so many bytes, on as many models."""
    return [{"exchange": "train", "everyone": everyone, "down": {}, "up": {"net": size}} for size in up]


def shared(*, cells=None, clients=12, participants=None, payload=None, **server):
    """The shared links of clients with 4 Mbit/s up and 0.5 s of handshake, by capacity.

    Half of them are in ``cells``, where there are any.
    """
    own, inside = ({"device": "board", "link": "cable", "cell": cell} for cell in (None, "home"))
    fleet = Fleet.model_validate({"members": [own, inside] if cells else [own], "cells": cells or {}})
    fleet = fleet.model_copy(update={"links": {"cable": link()}})
    scenario = plan([prices("train", clients)], participants=participants).scenario
    scenario = scenario.model_copy(update={"server": scenario.server.model_copy(update=server)})
    found = shared_links(scenario, fleet, fleet.links, payload or works(MB))
    return None if found is None else {one.capacity: one for one in found}


def test_a_server_link_takes_all_bytes_over_its_rate():
    """12 MB over 8 Mbit/s are 12 s, alone 2.5 s; models of 1 and 3 MB count with their mean."""
    (found,) = shared(uplink=8e6).values()
    assert (found.capacity, found.exchange, found.clients) == ("server.uplink", "train", 12)
    assert (found.payload_bytes, found.at_least_s, found.alone_s) == (MB, 12, (2.5, 2.5))
    (found,) = shared(uplink=8e6, payload=works(MB, 3 * MB)).values()
    assert (found.payload_bytes, found.at_least_s, found.alone_s) == (2 * MB, 24, (2.5, 6.5))
    assert shared() is None


@pytest.mark.parametrize(
    ("settings", "clients"),
    [
        ({"participants": 5}, 5),
        ({"participants": 5, "policy": overselect.Params(factor=1.3)}, 6),
        ({"participants": 5, "policy": fedasync.Params(concurrency=9)}, 9),
        ({"participants": 5, "payload": works(MB, everyone=True)}, 12),
    ],
)
def test_those_share_a_link_who_are_asked_at_a_time(settings, clients):
    """Participants, those that overselect asks, those that a stream keeps at work, or everyone."""
    (found,) = shared(uplink=8e6, **settings).values()
    assert (found.clients, found.at_least_s) == (clients, pytest.approx(clients))


def test_a_cell_is_shared_by_its_own_clients():
    """Four at most, of 2 Mbit/s; with two clients, of which one is inside, 1 MB takes 4 s."""
    home = shared(uplink=21e6, cells=CELLS, clients=16)["cell home, up"]
    assert (home.clients, home.at_least_s, home.alone_s) == (4, 16, (2.5, 2.5))
    home = shared(cells=CELLS, clients=2)["cell home, up"]
    assert (home.clients, home.at_least_s) == (1, 4)
