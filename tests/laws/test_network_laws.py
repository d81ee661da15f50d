"""The world on shared links: its rounds are those of the fluid model."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from exact_sharing import Client, Limits, arrivals, downloads, fluid, received, uploads
from hypothesis import given
from hypothesis import strategies as st
from plans import plan, prices, sourced, told, with_server

from edgefl.core.availability.intervals import Params as Intervals
from edgefl.core.fleet import Cell
from edgefl.core.link import Link
from edgefl.core.yamls import RESOLVED

CLOSE = 1e-9
MBIT, MBIT_BYTES = 1e6, 125_000
whole, from_zero = (st.integers(least, 9).map(Fraction) for least in (1, 0))


@st.composite
def rounds(draw):
    """(down, up, clients), in Mbit and Mbit/s."""
    of_cells = draw(st.lists(st.tuples(whole, whole), max_size=2))
    down, up = (Limits(draw(whole), tuple(each[way] for each in of_cells)) for way in (0, 1))
    cell = st.integers(-1, len(of_cells) - 1)
    client = st.builds(Client, from_zero, whole, from_zero, from_zero, whole, cell, from_zero)
    return down, up, draw(st.lists(client, min_size=1, max_size=5))


def networked(down, up, clients, **settings_):
    """A plan of such rounds."""

    def column(name, factor):
        return [float(getattr(one, name)) * factor for one in clients]

    table = prices(
        "train",
        len(clients),
        compute_s=column("work", 1),
        down_bytes=[int(each) for each in column("down", MBIT_BYTES)],
        up_bytes=[int(each) for each in column("up", MBIT_BYTES)],
        down_bps=column("down_cap", MBIT),
        up_bps=column("up_cap", MBIT),
        down_s=column("delay", 1),
        up_s=column("delay", 1),
    )
    bare = plan([table], **settings_)
    cells = {}
    for place, rates in enumerate(zip(down.cells, up.cells, strict=True)):
        ways = {way: sourced(float(rate) * MBIT) for way, rate in zip(("down", "up"), rates, strict=True)}
        cells[f"cell {place}"] = Cell.model_validate({**ways, "clients": len(clients)}, context=RESOLVED)
    members = replace(bare.clients, cell=np.array([one.cell for one in clients]), cells=tuple(cells))
    return with_server(
        replace(bare, clients=members, fleet=bare.fleet.model_copy(update={"cells": cells})),
        downlink=float(down.server) * MBIT,
        uplink=float(up.server) * MBIT,
    )


def by_client(rows, name):
    """A column, (rounds, clients); infinite where it has no number."""
    clients = int(rows["client"].max()) + 1
    ordered = rows[np.lexsort((rows["client"], rows["round"]))][name].reshape(-1, clients)
    return np.where(np.isnan(ordered), np.inf, ordered)


@given(rounds())
def test_rounds_are_those_of_the_fluid_model(system):
    """Every download and arrival, in a first round and in a second, which begins when the first ends."""
    down, up, clients = system
    rows = told(networked(down, up, clients, rounds=2))[2]
    for name, first in (("received_s", received(down, clients)), ("arrived_s", arrivals(down, up, clients))):
        end = max(arrivals(down, up, clients))
        expected = [[float(start + each) for each in first] for start in (0, end)]
        np.testing.assert_allclose(by_client(rows, name), expected, rtol=CLOSE)
    assert by_client(rows, "up_bytes").tolist() == [[int(one.up * MBIT_BYTES) for one in clients]] * 2


@pytest.mark.parametrize(
    ("downs", "up", "clients", "last_s"),
    [
        # The cell's member takes more of the server's downlink, and another, with long work to do, less.
        pytest.param(
            [(3, (1,)), (3, (2,))], (9, (9,)), [(4, 9, 0, 0, 1, 0), (4, 9, 10, 0, 1)], [12, 38 / 3], id="cell"
        ),
        # An upload begins before two others have ended, and all three share what two did not use up.
        pytest.param(
            [(3, ()), (4, ())],
            (2, ()),
            [(5, 1, 0, 10, 1), (5, 1, 0, 5, 1), (5, 2, 5, 5, 1)],
            [15, 65 / 4],
            id="downlink",
        ),
    ],
)
def test_more_capacity_can_make_the_last_arrival_later(downs, up, clients, last_s):
    """Of a larger cell, and of a wider downlink of the server."""
    given_ = [Client(*map(Fraction, one[:5]), (*one, -1)[5]) for one in clients]
    limits = [Limits(Fraction(server), tuple(map(Fraction, cells))) for server, cells in (*downs, up)]
    found = [told(networked(down, limits[-1], given_))[2]["arrived_s"].max() for down in limits[:-1]]
    assert found == pytest.approx(last_s)


@given(rounds(), st.fractions("1/2", 20, max_denominator=7))
def test_what_is_broken_off_has_moved_its_bytes(system, until):
    """At any time, whole bytes as of the fluid model."""
    down, up, clients = system
    rows = told(networked(down, up, clients, until={"time": float(until), "rounds": 1}))[2]
    first = by_client(rows, "down_bytes")[0], by_client(rows, "up_bytes")[0]
    moves = [replace(one, broken_off=until) for one in downloads(clients)]
    sent = [replace(one, broken_off=until) for one in uploads(clients, received(down, clients))]
    for moved, limits, each in zip(first, (down, up), (moves, sent), strict=True):
        expected = [float(one.amount) * MBIT_BYTES for one in fluid(limits, each)]
        np.testing.assert_allclose(moved, expected, rtol=0, atol=1)


@st.composite
def courses(draw):
    """(when, rate) from 0 on, in Mbit/s; some are 0, though not the first and the last."""
    times = sorted(draw(st.sets(st.integers(1, 15), max_size=3)))
    rates = [draw(st.integers(0, 9)) for _ in times[1:]]
    return list(zip([0, *times], [draw(st.integers(1, 9)), *rates, *([9] if times else [])], strict=True))


def without(course, gap):
    """The course of a client that is away from one time until another: as a transfer's cap and changes."""
    away, back = gap
    known = {when: rate for when, rate in course if not away <= when < back}
    at_back = next(rate for when, rate in reversed(course) if when <= back)
    caps = sorted({**known, back: at_back, away: 0}.items())
    return Fraction(caps[0][1]), tuple((Fraction(when), Fraction(rate)) for when, rate in caps[1:])


def traced(plan_, ways, gaps):
    """The plan with a link of its own for each client, and with a time for which each is away."""

    def rows(course):
        return " ".join(f"{when},{rate * MBIT}" for when, rate in course)

    def link(down, up):
        trace = {"rows": [{"down": rows(down), "up": rows(up)}], "end": "hold"}
        silent = {"latency": sourced(0.0), "radio": sourced({"base": 0.0})}
        return Link.model_validate({"title": "", "trace": trace, **silent}, context=RESOLVED)

    there = " ".join(f"{place},0,{away} {place},{back},1000" for place, (away, back) in enumerate(gaps))
    held = {f"link {place}": link(*each) for place, each in enumerate(ways)}
    fleet = {"links": held, "availability": Intervals(rows=there), "on_leave": "pause"}
    clients = replace(plan_.clients, link=np.arange(len(ways)), links=tuple(held))
    return replace(plan_, clients=clients, fleet=plan_.fleet.model_copy(update=fleet))


@given(rounds(), st.data())
def test_traces_and_pauses_are_changes_of_a_flows_cap(system, data):
    """Transfers over links that change, of clients that are away for a while, end as in the fluid model."""
    down, up, clients = system
    clients = [replace(one, delay=Fraction(0), up=one.up + 1, down=one.down + 1) for one in clients]
    gap = st.tuples(st.integers(1, 15), st.integers(1, 9)).map(lambda each: (each[0], sum(each)))
    ways = [data.draw(st.tuples(courses(), courses())) for _ in clients]
    gaps = [data.draw(gap) for _ in clients]
    rows = told(traced(networked(down, up, clients), ways, gaps))[2]
    moves = []
    for one, way, away in zip(downloads(clients), ways, gaps, strict=True):
        cap, changes = without(way[0], away)
        moves.append(replace(one, cap=cap, changes=changes))
    received_at = [moved.end for moved in fluid(down, moves)]
    moves = []
    for place, one in enumerate(uploads(clients, received_at)):
        away, back = gaps[place]
        cap, changes = without(ways[place][1], gaps[place])
        late = back - away if received_at[place] <= away < one.begin else 0
        moves.append(replace(one, begin=one.begin + late, cap=cap, changes=changes))
    for name, ends in (("received_s", received_at), ("arrived_s", [moved.end for moved in fluid(up, moves)])):
        np.testing.assert_allclose(by_client(rows, name)[0], [float(end) for end in ends], rtol=CLOSE)


links = st.floats(1e5, 2e7)
