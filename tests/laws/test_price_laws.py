"""Laws of prices: more is never less, slower is never cheaper, and unknown is never zero."""

import math
from itertools import pairwise

import pytest
from alone import priced
from hardware import array
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import cost, device, kernel, link, sourced
from random_work import SIDES
from random_work import works as mixed

from edgefl.core.cost import ELEMENTWISE, OP_CLASSES, Cost, Kernel, Product, Work
from edgefl.core.devices.roofline import Cache
from edgefl.core.devices.systolic import cycles, kept_words, operands
from edgefl.core.price import ENERGIES
from edgefl.planning.repricing import Pricer

SIZES = st.integers(0, 10**9)
WATTS = st.floats(0, 5)
kernels = st.builds(
    kernel, kind=st.sampled_from(OP_CLASSES), flops=SIZES, size=SIZES, backward=st.integers(0, 1)
)
works = st.builds(Work.of, st.lists(kernels, max_size=5))
rates = st.floats(1e3, 1e9)
factors = st.floats(1, 100)
radios = st.fixed_dictionaries(
    {
        "base": st.builds("{} W".format, WATTS),
        "tail": st.builds("{} W".format, WATTS),
        "tail_time": st.builds("{} s".format, st.floats(0.001, 5)),
    },
    optional={"up_w_per_mbps": WATTS, "down_w_per_mbps": WATTS},
)
SLACK = 1 + 1e-9


def _no_dearer(less, more):
    """Whether no phase of the first price exceeds the second's, but for rounding."""
    return all(one <= other * SLACK for one, other in zip(_phases(less), _phases(more), strict=True))


def _phases(price):
    return price.down_s, price.compute_s, price.up_s, *price.energy


OVERHEADS = ("launch", "backward")
POWERS = ("idle", "single_core", "active")
overheads = st.fixed_dictionaries(dict.fromkeys(OVERHEADS, st.floats(0, 1)))
powers = st.tuples(WATTS, WATTS, WATTS).map(lambda each: dict(zip(POWERS, sorted(each), strict=True)))


@given(works, overheads, powers)
def test_work_draws_between_one_core_and_all(work, seconds, watts):
    """Computing takes the energy of one busy core while overheads last, and of all cores otherwise."""
    price = priced(Pricer("board", device(**seconds, **watts)), cost(work), link())
    one_core, all_cores = (watts[key] - watts["idle"] for key in POWERS[1:])
    launch_s = price.bounds.launch_s
    joules = one_core * launch_s + all_cores * (price.compute_s - launch_s)
    assert math.isclose(price.energy.compute_j, joules, rel_tol=1e-9, abs_tol=1e-9)


def linked(trips, loss, **numbers):
    """A link with handshakes and lost packets."""
    base, data = link(**numbers), {"handshakes": sourced(trips), "loss": sourced(loss)}
    parts = {key: type(getattr(base, key)).model_validate(value) for key, value in data.items()}
    return base.model_copy(update=parts)


@given(SIZES, SIZES, rates, rates, factors, st.floats(0, 9), st.integers(0, 3), st.floats(0, 0.5), radios)
def test_a_slower_link_is_never_faster_or_cheaper(
    down, up, down_rate, up_rate, slower, delay, trips, loss, radio
):
    """Whatever the radio draws: of a lower rate, a longer or further round trip, more lost packets."""
    pricer = Pricer("board", device())
    near = linked(trips, loss, down=down_rate, up=up_rate, radio=radio)
    rates_ = {"down": down_rate / slower, "up": up_rate / slower}
    far = linked(trips + 1, loss * 1.5, **rates_, latency=0.5 + delay, radio=radio)
    assert _no_dearer(priced(pricer, cost(None, down, up), near), priced(pricer, cost(None, down, up), far))


@given(works, SIZES, SIZES)
def test_a_price_is_the_sum_of_its_phases(work, down, up):
    """Seconds and joules are those of the phases together."""
    price = priced(Pricer("board", device()), cost(work, down, up), link())
    assert price.seconds == price.down_s + price.compute_s + price.up_s
    assert price.energy.joules == sum(price.energy)
    assert price.energy.idle_j == 2.0 * price.seconds


@given(works, st.integers(1, 10**9), st.integers(1, 10**9))
def test_unknown_energy_stays_unknown(work, down, up):
    """An unknown power or radio makes what needs it unknown, and the total with it; times stay known."""
    job = cost(work, down, up)
    known = priced(Pricer("board", device()), job, link())
    no_idle = priced(Pricer("board", device(idle=None)), job, link())
    no_active = priced(Pricer("board", device(active=None)), job, link())
    no_radio = priced(Pricer("board", device()), job, link(radio="unknown"))
    computes = known.compute_s > 0
    assert _unknown(no_idle) == {"idle_j", *(["compute_j"] if computes else [])}
    assert _unknown(no_active) == {*(["compute_j"] if computes else [])}
    assert _unknown(no_radio) == {"receive_j", "transmit_j", "tail_j"}
    for price in (no_idle, no_active, no_radio):
        assert (price.energy.joules is None) == bool(_unknown(price))
        assert price.seconds == known.seconds


@given(st.integers(1, 10**9))
def test_narrower_numbers_move_fewer_bytes(size):
    """In fp16, which has fp32's peak here, memory takes half the time."""
    board = device(launch=0)
    board = board.model_copy(update={"peak": {**board.peak, "fp16": board.peak["fp32"]}})
    job = cost(Work.of([kernel(size=2 * size)]))
    wide, narrow = (priced(Pricer("board", board, dtype), job, link()) for dtype in ("fp32", "fp16"))
    assert math.isclose(wide.compute_s, 2 * narrow.compute_s)
    assert math.isclose(narrow.compute_s, size / 1e9)


def _unknown(price):
    return {name for name in ENERGIES if getattr(price.energy, name) is None}


@given(rates, st.floats(0, 9))
def test_an_empty_payload_takes_nothing(rate, latency):
    """Nothing to send takes neither time nor energy, not even the round trip, and needs no known radio."""
    price = priced(
        Pricer("board", device(idle=None)), cost(), link(down=rate, latency=latency, radio="unknown")
    )
    assert price.seconds == 0
    assert price.energy == (0, 0, 0, 0, 0)


radios_with_tail = st.fixed_dictionaries(
    {"base": st.just("1 W"), "tail": st.just("2 W"), "tail_time": st.just("5 s")}
)


@given(radios_with_tail, st.floats(0, 20))
def test_a_tail_ends_when_the_next_transfer_begins(radio, launch):
    """The first tail lasts as long as computing does and 5 s at most, the last one 5 s, whichever it is."""
    work = Work.of([kernel()])
    price = priced(Pricer("board", device(launch=launch)), cost(work, 1, 1), link(radio=radio))
    assert math.isclose(price.energy.tail_j, 2 * (min(5, price.compute_s) + 5))
    last = priced(Pricer("board", device(launch=launch)), cost(work, 1, 0), link(radio=radio))
    assert math.isclose(last.energy.tail_j, 2 * 5)


MORE = st.integers(0, 300)
FLOWS = st.sampled_from(["os", "ws", "is"])
CELLS = st.integers(1, 64)
STEPS = st.integers(0, 500)


boards = st.one_of(
    st.just(device()),
    st.just(device(launch=0, dense=0.01, bandwidth=1e11)),
    st.builds(
        array,
        rows=CELLS,
        columns=CELLS,
        dataflow=FLOWS,
        on_chip=st.sampled_from(["0 B", "64 kB", "1 MB"]),
        depthwise=st.sampled_from(["array", "special_unit"]),
    ),
)


def bounds(board, work):
    """The work's time on a board, as bounds."""
    return board.clock("board", "fp32").time(work)


@given(boards, mixed, mixed)
def test_more_work_never_takes_less(board, work, more):
    """Nor less energy in any phase."""
    pricer = Pricer("board", board)
    both = Cost(steps=((work, 1), (more, 1)))
    assert _no_dearer(priced(pricer, cost(work), link()), priced(pricer, both, link()))


@given(st.integers(0, 10**6), factors, st.integers(0, 10**6))
def test_a_cache_is_never_slower_than_the_memory_behind_it(size, faster, moved):
    """Work whose operands fit streams at the cache's bandwidth, the rest at the memory's."""
    cache = Cache.model_validate({"size": sourced(f"{size} B"), "bandwidth": sourced(f"{1e9 * faster} B/s")})
    work = Work.of([Kernel("relu", ELEMENTWISE, "forward", "", 0, 0, 0, 1, 0, moved)])
    cached = bounds(device().model_copy(update={"cache": cache}), work)
    assert cached.seconds <= bounds(device(), work).seconds * SLACK


@given(boards, mixed, mixed, STEPS, STEPS)
def test_time_adds_up_over_steps(board, one, two, many, few):
    """A job of both works takes their times and compute energies together; each is linear in its steps."""
    pricer = Pricer("board", board)
    first, second = (priced(pricer, cost(work), link()) for work in (one, two))
    both = priced(pricer, Cost(steps=((one, many), (two, few))), link())
    for figure in (lambda one: one.compute_s, lambda one: one.energy.compute_j):
        expected = many * figure(first) + few * figure(second)
        assert figure(both) == pytest.approx(expected, rel=1e-9, abs=1e-15)
    for place in range(3):
        expected = many * first.bounds[place] + few * second.bounds[place]
        assert both.bounds[place] == pytest.approx(expected, rel=1e-9, abs=1e-15)


@settings(max_examples=100)
@given(FLOWS, CELLS, CELLS, SIDES, SIDES, SIDES, MORE, MORE, MORE)
def test_cycles_rise_with_every_side(dataflow, rows, columns, m, n, k, dm, dn, dk):
    """In each of m, n and k alone, and no array is faster than all its cells busy."""
    least = cycles(dataflow, rows, columns, Product(m, n, k))
    for larger in (Product(m + dm, n, k), Product(m, n + dn, k), Product(m, n, k + dk)):
        assert cycles(dataflow, rows, columns, larger) >= least
    assert least * rows * columns >= m * n * k


@settings(max_examples=100)
@given(FLOWS, CELLS, CELLS, SIDES, SIDES, SIDES, st.lists(st.integers(0, 200_000), min_size=2, max_size=6))
def test_memory_on_the_chip_never_adds_traffic(dataflow, rows, columns, m, n, k, rooms):
    """Between every operand once and nothing kept; the more room, the less traffic; the least with all."""
    gemm = Product(m, n, k)
    every = operands(dataflow, rows, columns, gemm)
    least, most = sum(one.words for one in every), sum(one.words * one.times for one in every)
    found = [kept_words(dataflow, rows, columns, gemm, room) for room in sorted(rooms)]
    assert all(least <= words <= most for words in found)
    assert all(less <= more for more, less in pairwise(found))
    assert kept_words(dataflow, rows, columns, gemm, 0) == most
    assert kept_words(dataflow, rows, columns, gemm, least) == least
    assert all(one.words >= 0 and one.times > 0 for one in every)


@settings(max_examples=100)
@given(FLOWS, CELLS, CELLS, SIDES, SIDES, SIDES, MORE, MORE, MORE, st.integers(0, 200_000))
def test_traffic_rises_with_every_side(dataflow, rows, columns, m, n, k, dm, dn, dk, room):
    """A larger product never moves fewer words through the same memory."""
    least = kept_words(dataflow, rows, columns, Product(m, n, k), room)
    for larger in (Product(m + dm, n, k), Product(m, n + dn, k), Product(m, n, k + dk)):
        assert kept_words(dataflow, rows, columns, larger, room) >= least
