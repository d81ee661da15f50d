"""The pool of one direction, by itself; ``test_network_laws`` holds it against the fluid model."""

import math

import numpy as np
import pytest
from exact_sharing import Flow as Share
from exact_sharing import Limits, exact, shares

from edgefl.world.pool import Flow, Pool

CLOSE = 1e-9


def test_two_thousand_flows():
    """Rates are max-min fair while 2,000 begin and break off at random times, and while they end."""
    cells, rng = 300, np.random.default_rng(300)
    limits = Limits(exact(2e9), tuple(map(exact, 10 ** rng.uniform(6, 8, cells))))
    caps, sizes = 10 ** rng.uniform(5, 7, 2_000), rng.exponential(1e7, 2_000)
    pool, flows = Pool(float(limits.server), [float(cell) for cell in limits.cells]), {}
    for place, now in enumerate(np.sort(rng.uniform(0, 1, 2_000)).tolist()):
        while pool.next_s <= now:
            for ended in pool.finish():
                del flows[ended.owner]
        flows[place] = Flow(place, float(caps[place]), int(rng.integers(-1, cells)))
        pool.start(flows[place], float(sizes[place]), now)
        if place % 10 == 0:
            pool.stop(flows.pop(next(iter(flows))), now)
        if place % 500 == 499:
            expected = shares(limits, [Share(exact(one.limit_bps), one.cell) for one in flows.values()])
            found = [pool.rate_bps(flow) for flow in flows.values()]
            np.testing.assert_allclose(found, [float(one) for one in expected], rtol=CLOSE)
    assert len(flows) > 1_000


@pytest.mark.parametrize(
    ("server", "cells", "flows", "ends"),
    [
        pytest.param(2, (), [(8, 9, -1)], [4], id="one flow"),
        pytest.param(4, (), [(8, 1, -1), (12, 9, -1)], [8, 4], id="one capped"),
        pytest.param(6, (2,), [(8, 9, 0), (8, 9, 0), (8, 9, -1)], [8, 8, 2], id="a cell"),
        pytest.param(math.inf, (2,), [(8, 9, 0), (2, 9, 0)], [5, 2], id="a cell alone"),
        pytest.param(1e308, (1e308,), [(1e308, 1e308, 0)] * 2, [2, 2], id="huge numbers"),
    ],
)
def test_closed_forms(server, cells, flows, ends):
    """All begin at once: (size, cap, cell) each, in bits and bits a second. Looking changes nothing."""
    pool, found = Pool(server, cells), {}
    started = [Flow(place, cap, cell) for place, (_, cap, cell) in enumerate(flows)]
    for flow, (size, *_) in zip(started, flows, strict=True):
        pool.start(flow, size, 0.0)
    while len(found) < len(flows):
        now = pool.next_s
        assert all(
            0 <= pool.left(one, now / 2) <= size for one, (size, *_) in zip(started, flows, strict=True)
        )
        found |= {flow.owner: now for flow in pool.finish()}
    assert [found[place] for place in range(len(flows))] == ends


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
