"""Laws of devices of every kind, and of links: more is never less, slower is never cheaper."""

from __future__ import annotations

from itertools import pairwise

import pytest
from alone import priced
from hardware import array
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import cost, device, link, sourced
from random_work import SIDES, works

from edgefl.core.cost import ELEMENTWISE, Cost, Kernel, Work
from edgefl.core.devices.roofline import Cache
from edgefl.core.devices.systolic import Gemm, cycles, dram_words, floor_words, kept_words, traffic
from edgefl.core.pricer import Pricer

MORE = st.integers(0, 300)
FLOWS = st.sampled_from(["os", "ws", "is"])
CELLS = st.integers(1, 64)
FACTORS = st.floats(1, 100)
STEPS = st.integers(0, 500)
SLACK = 1 + 1e-9


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


def no_dearer(less, more):
    """Whether no phase of the first price takes more time or energy than the second's, but for rounding."""
    times = all(
        getattr(less, name) <= getattr(more, name) * SLACK for name in ("down_s", "compute_s", "up_s")
    )
    return times and all(one <= two * SLACK for one, two in zip(less.energy, more.energy, strict=True))


@given(boards, works, works)
def test_more_work_never_takes_less(board, work, more):
    """Nor less energy in any phase."""
    pricer = Pricer("board", board)
    assert no_dearer(priced(pricer, cost(work), link()), priced(pricer, cost(work + more), link()))


@given(st.integers(0, 10**6), FACTORS, st.integers(0, 10**6))
def test_a_cache_is_never_slower_than_the_memory_behind_it(size, faster, moved):
    """Work whose operands fit streams at the cache's bandwidth, the rest at the memory's."""
    cache = Cache.model_validate({"size": sourced(f"{size} B"), "bandwidth": sourced(f"{1e9 * faster} B/s")})
    work = Work.of([Kernel("relu", ELEMENTWISE, "forward", "", 0, 0, 0, 1, 0, moved)])
    cached = bounds(device().model_copy(update={"cache": cache}), work)
    assert cached.seconds <= bounds(device(), work).seconds * SLACK


@given(boards, works, works, STEPS, STEPS)
def test_time_adds_up_over_steps(board, one, two, many, few):
    """A job of both works takes their times and compute energies together; each is linear in its steps."""
    pricer = Pricer("board", board)
    first, second = (priced(pricer, cost(work), link()) for work in (one, two))
    both = priced(pricer, Cost(steps=((one, many), (two, few))), link())
    for name in ("compute_s", "compute_j"):
        parts = [_figure(price, name) for price in (first, second, both)]
        assert parts[2] == pytest.approx(many * parts[0] + few * parts[1], rel=1e-9, abs=1e-15)
    for place in range(3):
        expected = many * first.bounds[place] + few * second.bounds[place]
        assert both.bounds[place] == pytest.approx(expected, rel=1e-9, abs=1e-15)


def _figure(price, name):
    return price.compute_s if name == "compute_s" else price.energy.compute_j


@settings(max_examples=100)
@given(FLOWS, CELLS, CELLS, SIDES, SIDES, SIDES, MORE, MORE, MORE)
def test_cycles_rise_with_every_side(dataflow, rows, columns, m, n, k, dm, dn, dk):
    """In each of m, n and k alone, and no array is faster than all its cells busy."""
    least = cycles(dataflow, rows, columns, Gemm(m, n, k))
    for larger in (Gemm(m + dm, n, k), Gemm(m, n + dn, k), Gemm(m, n, k + dk)):
        assert cycles(dataflow, rows, columns, larger) >= least
    assert least * rows * columns >= m * n * k


@settings(max_examples=100)
@given(FLOWS, CELLS, CELLS, SIDES, SIDES, SIDES, st.lists(st.integers(0, 200_000), min_size=2, max_size=6))
def test_memory_on_the_chip_never_adds_traffic(dataflow, rows, columns, m, n, k, rooms):
    """Between every operand once and nothing kept; the more room, the less traffic; the least with all."""
    gemm = Gemm(m, n, k)
    least, most = floor_words(gemm), dram_words(dataflow, rows, columns, gemm)
    found = [kept_words(dataflow, rows, columns, gemm, room) for room in sorted(rooms)]
    assert all(least <= words <= most for words in found)
    assert all(less <= more for more, less in pairwise(found))
    assert kept_words(dataflow, rows, columns, gemm, 0) == most
    assert kept_words(dataflow, rows, columns, gemm, floor_words(gemm)) == least
    assert all(words >= 0 for words in traffic(dataflow, rows, columns, gemm))


@settings(max_examples=100)
@given(FLOWS, CELLS, CELLS, SIDES, SIDES, SIDES, MORE, MORE, MORE, st.integers(0, 200_000))
def test_traffic_rises_with_every_side(dataflow, rows, columns, m, n, k, dm, dn, dk, room):
    """A larger product never moves fewer words through the same memory."""
    least = kept_words(dataflow, rows, columns, Gemm(m, n, k), room)
    for larger in (Gemm(m + dm, n, k), Gemm(m, n + dn, k), Gemm(m, n, k + dk)):
        assert kept_words(dataflow, rows, columns, larger, room) >= least
