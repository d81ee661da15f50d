"""Laws of intervals: the two corners bound whatever lies between, of any device and any link."""

import pytest
from alone import priced
from hardware import array
from hypothesis import given
from hypothesis import strategies as st
from plans import cost, device, link, sourced
from random_work import works

from edgefl.core.corners import corners
from edgefl.core.sourced import Costs, changed
from edgefl.core.sourced import sourced as numbers_of
from edgefl.core.yamls import RESOLVED
from edgefl.planning.repricing import Pricer
from edgefl.planning.sensitivity import scaled

SLACK = 1 + 1e-9
payloads = st.integers(0, 10**6)


def roofline():
    """A roofline with every number that its kind can have."""
    data = device().model_dump(mode="json")
    data["cache"] = {"size": sourced(64_000.0), "bandwidth": sourced(4e9)}
    data |= {
        "half_side": sourced(8.0),
        "backward_overhead": sourced(2e-3),
        "battery": {"capacity": sourced(1e4)},
    }
    data["power"]["single_core"] = sourced(3.0)
    return type(device()).model_validate(data, context=RESOLVED)


BOARDS = {
    "roofline": roofline(),
    "systolic": array(on_chip="64 kB", launch_overhead=sourced("20 us")),
}
NET = link(radio={"base": "0.5 W", "tail": "1 W", "tail_time": "5 s", "up_w_per_mbps": 0.4})


def phases(price):
    """All that a price bounds, from the least to the whole."""
    return price.down_s, price.compute_s, price.up_s, price.seconds, price.energy.joules


@st.composite
def uncertain(draw, record):
    """A record with intervals around some of its numbers, and two points inside them.

    Of the two, the first one is no dearer in any number.
    """
    wide, points = {}, ({}, {})
    for name, number in numbers_of(record):
        if number.costs() is None or not draw(st.booleans()):
            continue
        low, high = (scaled(number, number.value, draw(factor)) for factor in (BELOW, ABOVE))
        given_ = {"low": low, "high": high} | ({} if draw(st.booleans()) else {"value": None})
        wide[name] = number.model_copy(update=given_)
        ends = sorted(draw(st.tuples(BELOW, ABOVE)))
        within = [scaled(number, number.value, one) for one in ends]
        cheaper = within if number.costs() is Costs.MORE else within[::-1]
        for point, value in zip(points, cheaper, strict=True):
            inside = _clipped(value, low, high)
            point[name] = number.model_copy(update={"value": inside})
    return [changed(record, numbers.get) for numbers in (wide, *points)]


BELOW, ABOVE = st.floats(0.05, 1), st.floats(1, 20)


def _clipped(value, low, high):
    """A value between two others; of a record, number by number."""
    if not hasattr(value, "model_fields_set"):
        return min(max(value, low), high)
    names = type(value).model_fields
    return value.model_copy(
        update={one: _clipped(getattr(value, one), getattr(low, one), getattr(high, one)) for one in names}
    )


@pytest.mark.parametrize("kind", BOARDS)
@given(st.data(), works, payloads, payloads)
def test_whatever_lies_inside_the_intervals_is_inside_the_corners(kind, data, work, down, up):
    """Any choice takes no less than the cheap corner and no more than the costly one; dearer ones no less."""
    board, inside, dearer = data.draw(uncertain(BOARDS[kind]))
    way, within, farther = data.draw(uncertain(NET))
    job = cost(work, down, up)
    ends = [
        priced(Pricer("board", end), job, far)
        for end, far in zip(corners(board) or (board, board), corners(way) or (way, way), strict=True)
    ]
    found = phases(priced(Pricer("board", inside), job, within))
    assert all(low <= one * SLACK for low, one in zip(phases(ends[0]), found, strict=True))
    more = phases(priced(Pricer("board", dearer), job, farther))
    assert all(one <= two * SLACK for one, two in zip(found, more, strict=True))
    assert all(two <= high * SLACK for two, high in zip(more, phases(ends[1]), strict=True))


@pytest.mark.parametrize("kind", BOARDS)
@given(st.data(), works, payloads, payloads)
def test_a_price_lies_between_its_bounds(kind, data, work, down, up):
    """So does each phase's energy, that of computing above an idle power that is an interval too."""
    numbers = {
        name: number.model_copy(
            update={
                "low": scaled(number, number.value, data.draw(BELOW)),
                "high": scaled(number, number.value, data.draw(ABOVE)),
            }
        )
        for name, number in numbers_of(BOARDS[kind])
        if number.costs() is not None and data.draw(st.booleans())
    }
    board = changed(BOARDS[kind], numbers.get)
    price = priced(Pricer("board", board), cost(work, down, up), NET)
    for figure in (lambda one: one.compute_s, lambda one: one.energy.joules):
        low, high = price.between(figure)
        assert figure(price) is None or low <= figure(price) * SLACK <= high * SLACK**2
    for name, (low, high) in price.energy_between().items():
        assert 0 <= low <= getattr(price.energy, name) * SLACK + 1e-12
        assert getattr(price.energy, name) <= high * SLACK + 1e-12


@given(works, payloads, payloads)
def test_unknown_powers_are_bounded_by_what_is_known(work, down, up):
    """No power is below 0, and none idle above the active one: so much is known of any total."""
    job = cost(work, down, up)
    known = priced(Pricer("board", device()), job, link())
    no_idle = priced(Pricer("board", device(idle=None)), job, link())
    no_active = priced(Pricer("board", device(active=None)), job, link())
    assert no_idle.energy.joules is None
    low, high = no_idle.between(lambda one: one.energy.joules)
    assert low <= known.energy.joules * SLACK
    assert known.energy.joules <= high * SLACK == pytest.approx(4.0 * known.seconds)
    low, high = no_active.between(lambda one: one.energy.joules)
    assert low == pytest.approx(2.0 * known.seconds)
    assert high is None or not known.compute_s
    idle = priced(Pricer("board", device(active=None)), cost(None, down, up), link())
    assert idle.energy_between()["compute_j"] == (0, 0)


@given(works, st.integers(1, 10**6))
def test_an_unknown_radio_draws_at_least_nothing(work, down):
    """What the device draws without it is a lower bound of the energy; nothing bounds it from above."""
    job = cost(work, down, down)
    silent = priced(Pricer("board", device()), job, link())
    price = priced(Pricer("board", device()), job, link(radio="unknown"))
    assert price.between(lambda one: one.energy.joules) == (silent.energy.joules, None)


@given(works)
def test_no_launch_overhead_is_a_lower_bound(work):
    """Times without it have no upper bound, nor have energies; with a bound of the overhead they do."""
    job, board = cost(work), device(launch=0)
    price = priced(Pricer("board", board), job, link())
    assert price.between(lambda one: one.compute_s) == (price.compute_s, None)
    assert price.between(lambda one: one.energy.joules) == (price.energy.joules, None)
    idle = priced(Pricer("board", board), cost(None, 1, 1), link())
    assert idle.between(lambda one: one.compute_s) == (0, 0)
    at_most = board.launch_overhead.model_copy(update={"high": 1e-3})
    bounded = priced(Pricer("board", board.model_copy(update={"launch_overhead": at_most})), job, link())
    longest = priced(Pricer("board", device(launch=1e-3)), job, link())
    assert bounded.between(lambda one: one.compute_s) == (price.compute_s, longest.compute_s)
