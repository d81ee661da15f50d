"""What max-min fair means, held against the solver and the exact oracle, for systems of any size."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from exact_sharing import Flow, Limits, exact, shares, system_of
from hypothesis import given
from hypothesis import strategies as st
from max_min import Uses, max_min

CLOSE = 1e-9
rates = st.just(0.0) | st.just(math.inf) | st.floats(1e-3, 1e9) | st.integers(1, 4).map(float)


@st.composite
def systems(draw):
    """(capacities, uses, caps, penalties, shared) of up to 12 flows and 5 resources, whoever uses what."""
    n, r = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    used = draw(st.lists(st.booleans(), min_size=n * r, max_size=n * r))
    flow, resource = np.nonzero(np.reshape(used, (n, r)))
    weight = draw(st.lists(st.sampled_from([0.5, 1.0, 1.0, 3.0]), min_size=len(flow), max_size=len(flow)))
    penalties = draw(st.lists(st.sampled_from([0.5, 1.0, 1.0, 2.0]), min_size=n, max_size=n))
    shared = draw(st.lists(st.booleans(), min_size=r, max_size=r))
    capacities, caps = (draw(st.lists(rates, min_size=size, max_size=size)) for size in (r, n))
    uses = Uses(flow, resource, np.array(weight))
    return np.array(capacities), uses, np.array(caps), np.array(penalties), np.array(shared)


@st.composite
def two_levels(draw):
    """(limits, flows) with cells or without, in exact numbers."""
    cells = draw(st.lists(rates, max_size=4))
    flows = draw(st.lists(st.tuples(rates, st.integers(-1, len(cells) - 1)), min_size=1, max_size=12))
    limits = Limits(exact(draw(rates)), tuple(map(exact, cells)))
    return limits, [Flow(exact(cap), cell) for cap, cell in flows]


def many(n, cells, spread, seed):
    """A random system of two levels whose server has less than its flows could take."""
    rng = np.random.default_rng(seed)
    caps = 10 ** rng.uniform(6, 6 + spread, n)
    cell = rng.integers(-1, cells, n) if cells else np.full(n, -1)
    each = caps.sum() / max(cells, 1) * 10 ** rng.uniform(-2, 0.5, cells)
    flows = [Flow(exact(cap), int(place)) for cap, place in zip(caps, cell, strict=True)]
    return Limits(exact(caps.sum() * rng.uniform(0.1, 0.6)), tuple(map(exact, each))), flows


MANY = [(10_000, 0, 0), (10_000, 40, 3), (10_000, 5_000, 1)]


def assert_fair(system, rate):
    """No resource gives more than it has, and nobody can get more without taking from one that has no more.

    That is: a flow below its cap is on a saturated resource where no flow's level is higher.
    """
    capacities, uses, caps, penalties, shared = system
    assert (rate >= 0).all()
    assert (rate <= caps).all()
    taken = uses.weight * rate[uses.flow]
    used, most = (np.zeros(len(capacities)) for _ in range(2))
    np.add.at(used, uses.resource, taken)
    np.maximum.at(most, uses.resource, taken)
    used = np.where(shared, used, most)
    assert (used <= capacities * (1 + CLOSE)).all()
    levels = rate * penalties
    highest = np.zeros(len(capacities))
    np.maximum.at(highest, uses.resource, levels[uses.flow])
    full = np.isfinite(capacities) & (used >= capacities * (1 - CLOSE))
    stopped = full[uses.resource] & (levels[uses.flow] >= highest[uses.resource] * (1 - CLOSE))
    assert ((rate == caps) | np.isin(np.arange(len(rate)), uses.flow[stopped])).all()


@given(systems())
def test_every_flow_is_at_its_cap_or_first_on_a_full_resource(system):
    """Whatever uses what, with weights, penalties and fat pipes."""
    assert_fair(system, max_min(*system))


@given(systems(), st.randoms(use_true_random=False))
def test_order_does_not_matter(system, random):
    """Flows, resources and uses in another order have the same shares."""
    capacities, uses, caps, penalties, shared = system
    flows, resources, rows = (list(range(len(each))) for each in (caps, capacities, uses.flow))
    for each in (flows, resources, rows):
        random.shuffle(each)
    place, where = np.argsort(flows), np.argsort(resources)
    mixed = Uses(place[uses.flow][rows], where[uses.resource][rows], uses.weight[rows])
    again = max_min(capacities[resources], mixed, caps[flows], penalties[flows], shared[resources])
    np.testing.assert_allclose(again, max_min(*system)[flows], rtol=CLOSE)


@given(two_levels())
def test_the_oracle_is_max_min_fair(system):
    """By the definition, in fractions: who is below its cap is on a full resource where nobody has more."""
    limits, flows = system
    found = shares(limits, flows)
    groups = [(limits.server, list(range(len(flows))))]
    for cell, capacity in enumerate(limits.cells):
        groups.append((capacity, [place for place, flow in enumerate(flows) if flow.cell == cell]))
    stopped = set()
    for capacity, group in groups:
        of_group = [found[place] for place in group]
        assert sum(of_group) <= capacity
        if sum(of_group) == capacity:
            stopped |= {place for place in group if found[place] == max(of_group)}
    for place, flow in enumerate(flows):
        assert 0 <= found[place] <= flow.cap
        assert found[place] == flow.cap or place in stopped


@given(two_levels())
def test_the_solver_agrees_with_the_oracle(system):
    """To 1e-9, from own caps to infinity."""
    expected = [float(each) for each in shares(*system)]
    np.testing.assert_allclose(max_min(*system_of(*system)), expected, rtol=CLOSE)


@pytest.mark.parametrize(("n", "cells", "spread"), MANY)
def test_ten_thousand_flows(n, cells, spread):
    """Fair by the definition, the oracle's shares to 1e-9, and the same shares in another order."""
    limits, flows = many(n, cells, spread, seed=n + cells)
    system = system_of(limits, flows)
    rate = max_min(*system)
    assert_fair(system, rate)
    np.testing.assert_allclose(rate, [float(each) for each in shares(limits, flows)], rtol=CLOSE)
    order = np.random.default_rng(1).permutation(n)
    again = max_min(*system_of(limits, [flows[place] for place in order]))
    np.testing.assert_allclose(again, rate[order], rtol=CLOSE)


@given(two_levels(), st.data())
def test_more_capacity_never_lowers_the_sorted_shares(system, data):
    """With more anywhere, own caps included, the least share is no less or, if it is the same, the next."""
    limits, flows = system
    more = st.fractions(0, 10**6, max_denominator=100)
    place = data.draw(st.integers(0, len(limits.cells) + len(flows)))
    server, cells = limits.server, list(limits.cells)
    raised = list(flows)
    if place == 0:
        server += data.draw(more)
    elif place <= len(cells):
        cells[place - 1] += data.draw(more)
    else:
        chosen = flows[place - len(cells) - 1]
        raised[place - len(cells) - 1] = Flow(chosen.cap + data.draw(more), chosen.cell)
    assert sorted(shares(Limits(server, tuple(cells)), raised)) >= sorted(shares(limits, flows))


@given(two_levels(), st.fractions(0, 10**6, max_denominator=100))
def test_with_more_at_the_server_nobody_gets_less(system, more):
    """Nor where another flow ends; both carry the law of arrivals (``test_arrival_laws``)."""
    limits, flows = system
    before = shares(limits, flows)
    raised = shares(Limits(limits.server + more, limits.cells), flows)
    assert all(new >= old for new, old in zip(raised, before, strict=True))
    assert all(new >= old for new, old in zip(shares(limits, flows[1:]), before[1:], strict=True))


def test_the_oracle_in_numbers():
    """Two in a cell of 4 and one outside, below a server link of 12 that is enough, or of 5 that is not."""
    flows = [Flow(Fraction(9)), Flow(Fraction(9), 0), Flow(Fraction(9), 0)]
    assert shares(Limits(Fraction(12), (Fraction(4),)), flows) == [8, 2, 2]
    assert shares(Limits(Fraction(5), (Fraction(4),)), flows) == [Fraction(5, 3)] * 3
