"""What more capacity does to when uploads arrive: laws of the fluid model in fractions, and their limits.

In one direction, let A be the flows in progress, each with its cap, in cells below the server's link. A
flow's rate is the least of its cap, its cell's level and the server's level, where a level is the x at
which what the members take, if each may have x at most, adds up to the capacity. For a part of A, or with
more at the server, members take no more at any x, so that no level falls, nor any rate. With a higher cap
or a larger cell they do.

*More at the server, from the same beginnings, makes no transfer end later.* Let every flow have moved no
less, up to some time, than with less capacity, as is so at first. Then those in progress are a part of
those that would be, their rates are no lower, and so it stays. The same goes for any change by which the
rates of no set of flows fall, such as all capacities and caps times one factor of 1 or more.

*Where no own link is narrower than the server's and there are no cells, no earlier beginning makes the last
transfer end later.* The server's link is then used up whenever anybody sends, and the last end is the
largest, over beginnings b, of b + (sizes of those that begin at b or later) / capacity.

So of a round of download, work and upload: more uplink at the server makes no arrival later. More downlink
makes no download later, and no arrival later where uploads share nothing; where they do, it makes the last
one no later if the uplink is no wider than any client's own, or if all downloads end together. If nothing
is shared, no arrival is later than it is with sharing. More cannot be said: the rounds at the end of this
file last longer with more capacity.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from exact_sharing import Client, Limits, Transfer, arrivals, fluid, received
from hypothesis import given, settings
from hypothesis import strategies as st

FEW = settings(max_examples=20)
FREE, FREE_CELL = Limits(), Limits(cells=(math.inf,))
amounts, works = (st.integers(least, 12).map(Fraction) for least in (1, 0))


@st.composite
def rounds(draw, cells=2):
    """(down, up, clients), with cells or without."""
    of_cells = draw(st.lists(st.tuples(amounts, amounts), max_size=cells))
    down, up = (Limits(draw(amounts), tuple(each[way] for each in of_cells)) for way in (0, 1))
    client = st.builds(Client, amounts, amounts, works, amounts, amounts, st.integers(-1, len(of_cells) - 1))
    return down, up, draw(st.lists(client, min_size=1, max_size=5))


def more(limits, bps):
    """The limits with so much more at the server."""
    return replace(limits, server=limits.server + bps)


def none_later(new, old):
    """Whether none is."""
    return all(one <= other for one, other in zip(new, old, strict=True))


@given(rounds(), amounts)
@FEW
def test_more_uplink_at_the_server_makes_no_arrival_later(system, bps):
    """Whatever the clients' links, cells, bytes and work."""
    down, up, clients = system
    assert none_later(arrivals(down, more(up, bps), clients), arrivals(down, up, clients))


@given(rounds(), st.fractions(1, 3, max_denominator=4))
@FEW
def test_all_rates_of_the_uploads_times_a_factor_make_no_arrival_later(system, factor):
    """Clients' links, cells and server together."""
    down, up, clients = system
    faster = Limits(up.server * factor, tuple(cell * factor for cell in up.cells))
    raised = [replace(one, up_cap=one.up_cap * factor) for one in clients]
    assert none_later(arrivals(down, faster, raised), arrivals(down, up, clients))


@given(rounds(), amounts)
@FEW
def test_more_downlink_at_the_server_makes_no_download_later(system, bps):
    """Nor any arrival, where uploads share nothing."""
    down, _, clients = system
    assert none_later(received(more(down, bps), clients), received(down, clients))
    apart = [replace(one, cell=-1) for one in clients]
    assert none_later(arrivals(more(down, bps), FREE, apart), arrivals(down, FREE, apart))


@given(rounds(cells=0), amounts)
@FEW
def test_more_downlink_before_a_narrow_uplink_makes_the_last_arrival_no_later(system, bps):
    """Narrow: no client's own link has less."""
    down, up, clients = system
    wide = [replace(one, up_cap=one.up_cap + up.server) for one in clients]
    assert max(arrivals(more(down, bps), up, wide)) <= max(arrivals(down, up, wide))


@given(rounds(cells=0), amounts)
@FEW
def test_more_downlink_for_equal_downloads_makes_all_arrive_earlier_by_the_same(system, bps):
    """Equal bytes over equal links end at once, so that the uploads begin as they did, but earlier."""
    down, up, clients = system
    alike = [replace(one, down=clients[0].down, down_cap=clients[0].down_cap) for one in clients]
    earlier = received(down, alike)[0] - received(more(down, bps), alike)[0]
    assert earlier >= 0
    assert arrivals(more(down, bps), up, alike) == [end - earlier for end in arrivals(down, up, alike)]


@given(rounds())
@FEW
def test_sharing_makes_no_arrival_earlier(system):
    """Each client arrives at the sum of its own times at the soonest."""
    down, up, clients = system
    alone = [one.down / one.down_cap + one.work + one.up / one.up_cap for one in clients]
    assert arrivals(FREE, FREE, [replace(one, cell=-1) for one in clients]) == alone
    assert none_later(alone, arrivals(down, up, clients))


def client(down, down_cap, work, up, up_cap, cell=-1):
    """A client, in whole numbers."""
    return Client(*(Fraction(each) for each in (down, down_cap, work, up, up_cap)), cell)


def test_more_in_a_cell_can_make_the_last_arrival_later():
    """The cell's member takes more of the server's downlink, and another, with long work to do, less.

    Downlink 3: at first 1 for the cell and 2 for the other, then 3/2 each.
    """
    clients = [client(4, 9, 0, 0, 1, cell=0), client(4, 9, 10, 0, 1)]
    before = arrivals(Limits(Fraction(3), (Fraction(1),)), FREE_CELL, clients)
    after = arrivals(Limits(Fraction(3), (Fraction(2),)), FREE_CELL, clients)
    assert before == [4, 12]
    assert after == [Fraction(8, 3), Fraction(38, 3)]


def test_more_on_a_clients_own_link_can_make_the_last_arrival_later():
    """Nor must there be a second stage: two uploads over a link of 2, the second of which gets a cap of 1."""
    first = Transfer(Fraction(0), Fraction(15), Fraction(3, 2))
    second = Transfer(Fraction(0), Fraction(5, 2), Fraction(1, 2))
    moves = [[first, second], [first, replace(second, cap=Fraction(1))]]
    before, after = ([one.end for one in fluid(Limits(Fraction(2)), each)] for each in moves)
    assert before == [10, 5]
    assert after == [Fraction(65, 6), Fraction(5, 2)]


def test_more_downlink_can_make_the_last_arrival_later():
    """An upload begins before two others have ended, and all three share what two did not use up.

    Downlink of 3, then of 4, of which the third client alone can take more; uplink of 2, own uplinks of 1.
    """
    clients = [client(5, 1, 0, 10, 1), client(5, 1, 0, 5, 1), client(5, 2, 5, 5, 1)]
    up = Limits(Fraction(2))
    assert arrivals(Limits(Fraction(3)), up, clients) == [15, 10, 15]
    later = arrivals(Limits(Fraction(4)), up, clients)
    assert max(later) == later[0] == Fraction(65, 4)


@pytest.mark.parametrize(
    ("sizes", "begins", "ends"),
    [
        pytest.param([10, 5, 5], ([0, 0, 5], [0, 0, 0]), ("10", "25/2"), id="two sizes"),
        pytest.param([5] * 5, ([6, 8, 2, 2, 1], [6, 3, 2, 2, 1]), ("29/2", "59/4"), id="all equal"),
    ],
)
def test_an_earlier_upload_can_make_the_last_one_later(sizes, begins, ends):
    """Over a link of 2 and own links of 1: also where all sizes and links are equal."""
    for begun, end in zip(begins, ends, strict=True):
        moves = [Transfer(Fraction(b), Fraction(s), Fraction(1)) for b, s in zip(begun, sizes, strict=True)]
        assert max(one.end for one in fluid(Limits(Fraction(2)), moves)) == Fraction(end)
