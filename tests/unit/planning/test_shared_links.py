"""What exchanges cost the links that clients share, before anything runs: by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from plans import link, plan, prices, sourced

from edgefl.core.corners import Interval
from edgefl.core.fleet import Fleet
from edgefl.planning.assumed import of_cells
from edgefl.planning.costs import shared_links

MB = 10**6
CELLS = {"home": {"down": sourced("2 Mbit/s"), "up": sourced("2 Mbit/s"), "clients": 4}}


def works(*up, everyone=False):
    """An exchange that sends so many bytes, on as many models."""
    return [{"exchange": "train", "everyone": everyone, "down": {}, "up": {"net": size}} for size in up]


def shared(*, policy=None, cells=None, clients=12, participants=None, payload=None, **server):
    """The shared links of clients with 4 Mbit/s up and 0.5 s of handshake, by capacity.

    Half of them are in ``cells``, where there are any.
    """
    own, inside = ({"device": "board", "link": "cable", "cell": cell} for cell in (None, "home"))
    fleet = Fleet.model_validate({"members": [own, inside] if cells else [own], "cells": cells or {}})
    fleet = fleet.model_copy(update={"links": {"cable": link()}})
    scenario = plan([prices("train", clients)], participants=participants).scenario
    scenario = scenario.model_copy(update={"server": scenario.server.model_copy(update=server)})
    found = shared_links(scenario, policy, fleet, fleet.links, payload or works(MB))
    return None if found is None else {one.capacity: one for one in found}


def test_nothing_is_said_where_nothing_is_shared():
    """Without server.uplink, server.downlink and cells."""
    assert shared() is None


def test_a_server_link_takes_all_bytes_over_its_rate():
    """12 MB over 8 Mbit/s are 12 s, one alone takes 2.5 s, and a twelfth is each client's share."""
    (found,) = shared(uplink=8e6).values()
    assert (found.capacity, found.exchange, found.clients, found.is_full) == (
        "server.uplink",
        "train",
        12,
        True,
    )
    assert (found.payload_bytes, found.at_least_s) == (MB, 12)
    assert found.alone_s == (2.5, 2.5)
    assert found.each_bps == pytest.approx((8e6 / 12, 8e6 / 12))


def test_clients_that_do_not_fill_a_link_have_their_own_rates():
    """12 clients with 4 Mbit/s each use 48 of 100 Mbit/s."""
    (found,) = shared(uplink=100e6).values()
    assert not found.is_full
    assert found.each_bps == pytest.approx((4e6, 4e6))


@pytest.mark.parametrize(
    ("settings", "clients"),
    [
        ({"participants": 5}, 5),
        ({"participants": 5, "policy": SimpleNamespace(factor=1.3)}, 6),
        ({"participants": 5, "policy": SimpleNamespace(concurrency=9)}, 9),
        ({"participants": 5, "payload": works(MB, everyone=True)}, 12),
    ],
)
def test_those_share_a_link_who_are_asked_at_a_time(settings, clients):
    """Participants, those that overselect asks, those that a stream keeps at work, or everyone."""
    (found,) = shared(uplink=8e6, **settings).values()
    assert (found.clients, found.at_least_s) == (clients, pytest.approx(clients))


def test_models_count_with_the_mean_of_their_payloads():
    """Of 1 and 3 MB, 24 MB in all; alone, 2.5 to 6.5 s."""
    payload = works(MB, 3 * MB)
    (found,) = shared(uplink=8e6, payload=payload).values()
    assert (found.payload_bytes, found.at_least_s, found.alone_s) == (2 * MB, 24, Interval(2.5, 6.5))


def test_cells_limit_their_clients_below_the_server():
    """4 clients have 2 Mbit/s, 0.5 each; of 21 Mbit/s, 8 in cells get that, and the other 8 share 17."""
    found = shared(uplink=21e6, cells=CELLS, clients=16)
    home, server = found["cell home, up"], found["server.uplink"]
    assert (home.clients, home.at_least_s, home.is_full) == (4, 16, True)
    assert home.each_bps == pytest.approx((0.5e6, 0.5e6))
    assert server.is_full
    assert server.each_bps == pytest.approx((0.5e6, 17e6 / 8))


def test_few_clients_do_not_fill_a_cell():
    """One alone has no more than its cell's 2 Mbit/s or its own 4; a cell of 4 with one client takes 1 MB."""
    found = shared(uplink=100e6, cells=CELLS, clients=16, participants=1)
    assert found["server.uplink"].each_bps == pytest.approx((2e6, 4e6))
    home = shared(cells=CELLS, clients=2)["cell home, up"]
    assert (home.clients, home.at_least_s) == (1, 4)


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ({"cell": "home"}, "assumed down, up"),
        ({}, "no member of the fleet names it, so it limits nobody"),
    ],
)
def test_assumptions_of_cells_are_told(cell, line):
    """As those of devices and links are; and cells that nobody is in, because their members do not say so."""
    member = {"device": "board", "link": "cable", **cell}
    fleet = Fleet.model_validate({"members": [member], "cells": CELLS})
    assert list(of_cells(fleet)) == [f"cell home: {line}"]
