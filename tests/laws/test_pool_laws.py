"""The pool of one direction: whatever begins, ends and changes, it is the fluid model that fractions give."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from exact_sharing import Limits, Transfer, exact, fluid, shares
from hypothesis import given
from hypothesis import strategies as st
from pooled import Driver, pool_of, shares_of

from edgefl.world.pool import Flow, Pool

CLOSE = 1e-9
bps = st.integers(1, 8).map(lambda units: units * 1e6) | st.floats(1e5, 1e9)
seconds = st.integers(0, 20).map(float) | st.floats(0, 20)


@st.composite
def transfers(draw, cells=0):
    """A transfer in a cell or in none; its cap may change, also to 0, and it may be broken off."""
    begin, cap = draw(seconds), draw(bps)
    size = draw(st.just(0.0) | st.integers(1, 40).map(lambda units: units * 1e6) | st.floats(1, 1e9))
    changes = draw(st.lists(st.tuples(seconds, bps | st.just(0.0)), max_size=2 if size else 0))
    later = tuple((exact(begin + wait), exact(each)) for wait, each in sorted(changes))
    lasts = draw(st.just(math.inf) | st.floats(0.1, 20))
    cell = draw(st.integers(-1, cells - 1))
    return Transfer(exact(begin), exact(size), exact(cap), cell, later, exact(begin + lasts))


@st.composite
def systems(draw):
    """(limits, transfers) of two levels."""
    cells = draw(st.lists(bps, max_size=3))
    limits = Limits(exact(draw(bps | st.just(math.inf))), tuple(map(exact, cells)))
    return limits, draw(st.lists(transfers(len(cells)), min_size=1, max_size=8))


def assert_same(found, expected, sizes):
    """Ends, and the part that is left, to 1e-9."""
    np.testing.assert_allclose(
        [one.end_s for one in found], [float(one.end) for one in expected], rtol=CLOSE, atol=CLOSE
    )
    for one, other, size in zip(found, expected, sizes, strict=True):
        assert one.left == pytest.approx(float(size - other.amount), rel=CLOSE, abs=CLOSE * size)


@given(systems())
def test_it_is_the_fluid_model(system):
    """Every transfer ends, or is broken off with what is left of it, as in fractions."""
    limits, moves = system
    assert_same(Driver(limits, moves).moved(), fluid(limits, moves), [one.size for one in moves])


def assert_rates(pool, flows, limits):
    """What the pool's flows get is what the oracle says of them."""
    found, of_pool = [pool.rate_bps(flow) for flow in flows.values()], shares_of(flows)
    np.testing.assert_allclose(found, [float(one) for one in shares(limits, of_pool)], rtol=CLOSE)


def test_two_thousand_flows():
    """Rates are fair while 2,000 begin and break off at random times, and while they end."""
    cells = 300
    rng = np.random.default_rng(cells)
    limits = Limits(exact(2e9), tuple(map(exact, 10 ** rng.uniform(6, 8, cells))))
    caps, sizes = 10 ** rng.uniform(5, 7, 2_000), rng.exponential(1e7, 2_000)
    pool, flows = pool_of(limits), {}
    for place, now in enumerate(np.sort(rng.uniform(0, 1, 2_000)).tolist()):
        while pool.next_s <= now:
            for ended in pool.finish():
                del flows[ended.owner]
        flows[place] = Flow(place, float(caps[place]), int(rng.integers(-1, cells)))
        pool.start(flows[place], float(sizes[place]), now)
        if place % 10 == 0:
            pool.stop(flows.pop(next(iter(flows))), now)
        if place % 500 == 499:
            assert_rates(pool, flows, limits)
    assert len(flows) > 1_000


@given(systems())
def test_who_is_never_limited_ends_to_the_bit(system):
    """At begin + size / cap, whatever the others do and however often shares are solved anew."""
    limits, moves = system
    moves = [Transfer(one.begin, one.size, one.cap, one.cell) for one in moves]
    limited = set()

    def look(_pool, flows, _now):
        for (place, flow), share in zip(flows.items(), shares(limits, shares_of(flows)), strict=True):
            if share < exact(flow.limit_bps):
                limited.add(place)

    found = Driver(limits, moves, look).moved()
    for place in set(range(len(moves))) - limited:
        one = moves[place]
        assert found[place].end_s == float(one.begin) + float(one.size) / float(one.cap)


@pytest.mark.parametrize(
    ("server", "cells", "flows", "ends"),
    [
        pytest.param(2, (), [(8, 9, -1)], [4], id="one flow"),
        pytest.param(2, (), [(8, 9, -1)] * 4, [16] * 4, id="equal flows"),
        pytest.param(4, (), [(8, 1, -1), (12, 9, -1)], [8, 4], id="one capped"),
        pytest.param(6, (2,), [(8, 9, 0), (8, 9, 0), (8, 9, -1)], [8, 8, 2], id="a cell"),
        pytest.param(math.inf, (2,), [(8, 9, 0), (2, 9, 0)], [5, 2], id="a cell alone"),
        pytest.param(1e308, (1e308,), [(1e308, 1e308, 0)] * 2, [2, 2], id="huge numbers"),
    ],
)
def test_closed_forms(server, cells, flows, ends):
    """All begin at once: (size, cap, cell) each, in bits and bits a second."""
    moves = [Transfer(Fraction(0), Fraction(size), Fraction(cap), cell) for size, cap, cell in flows]
    assert [one.end_s for one in Driver(Limits(server, cells), moves).moved()] == ends


@pytest.mark.parametrize(("server", "cells"), [(1e15, ()), (math.inf, (1e15,))])
def test_what_was_moved_before_rounds_nothing(server, cells):
    """Once nobody shared the link, clocks begin anew: beside 10^18 bits, doubles do not tell 100."""
    pool, cell, now = Pool(server, cells), len(cells) - 1, 0.0
    for bits in (1e18, 100.0):
        flows = [Flow(place, 1e16, cell) for place in range(2)]
        for flow in flows:
            pool.start(flow, bits, now)
        assert [pool.left(flow, now) for flow in flows] == [bits, bits]
        while not math.isinf(pool.next_s):
            now = pool.next_s
            pool.finish()


def test_a_given_end_holds_until_somebody_limits_the_flow():
    """Its user may have reckoned otherwise: the end is kept to the bit, and reckoned anew once it is not.

    An end that rounding has put before the beginning is then.
    """
    given_s, ends = 1.0000000000000002, []
    for others in ([], [7.0], [7.0, 7.0]):
        pool, flow = Pool(10.0), Flow("first", 4.0, alone_s=given_s)
        pool.start(flow, 4.0, 0.0)
        for cap_bps in others:
            pool.start(Flow("other", cap_bps), 100.0, 0.5)
        ends.append(pool.next_s)
        assert pool.finish() == [flow]
        assert (flow.alone_s is None) == (len(others) == 2)
    pool = Pool()
    pool.start(Flow("late", 4.0, alone_s=given_s), 4.0, 2.0)
    assert (pool.next_s, len(pool.finish())) == (2.0, 1)
    assert ends[:2] == [given_s, given_s]
    assert ends[2] == pytest.approx(1.1)
