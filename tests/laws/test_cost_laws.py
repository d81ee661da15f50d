"""Laws of costs: multisets of kernels, and what a trace makes of them."""

from __future__ import annotations

import math
from functools import reduce
from operator import add

from hypothesis import given
from hypothesis import strategies as st
from plans import kernel

from edgefl.core.cost import OP_CLASSES, PhaseTrace, Trace, Work

kernels = st.builds(
    kernel,
    kind=st.sampled_from(OP_CLASSES),
    flops=st.integers(0, 9),
    size=st.integers(0, 9),
    op=st.sampled_from("ab"),
)
works = st.builds(Work.of, st.lists(kernels, max_size=6))


@given(works, works, works)
def test_works_are_multisets(one, two, three):
    """+ of works commutes, associates and has the empty work as its zero."""
    assert one + two == two + one
    assert (one + two) + three == one + (two + three)
    assert one + Work() == one == Work() + one


@given(works, works, st.integers(0, 5), st.integers(0, 5))
def test_times_is_repeated_addition(work, other, times, more):
    """A work n times is n of them added up, and distributes over both sums."""
    assert work * times == reduce(add, [work] * times, Work())
    assert work * (times + more) == work * times + work * more
    assert (work + other) * times == work * times + other * times


@given(works, works, st.integers(0, 5))
def test_totals_are_linear(work, other, times):
    """Operations, bytes, launches and backward passes of a sum are the sums of theirs."""
    both = work * times + other
    assert both.flops == times * work.flops + other.flops
    assert both.bytes == times * work.bytes + other.bytes
    assert both.launches == times * work.launches + other.launches
    assert both.backwards == times * work.backwards + other.backwards


@given(works, works)
def test_adding_changes_no_operand(one, two):
    """Costs are values: + leaves what it adds as it was."""
    before = dict(one.kernels), dict(two.kernels)
    _ = one + two
    assert (dict(one.kernels), dict(two.kernels)) == before


@given(works, works, works, st.integers(0, 7), st.integers(0, 7))
def test_a_job_is_its_start_its_steps_and_its_finish(start, step, short, many, few):
    """A trace gives start + every step of its batch size + finish, and the peak of the largest batches."""
    phase = PhaseTrace("train", {32: step, 6: short})
    peaks = {(32,): {"x": 9}, (6,): {"x": 2}, (0,): {"x": 1}}
    trace = Trace("train", {"w": 3}, {"w": 4}, start, (phase,), Work(), peaks, 5)
    steps = {size: count for size, count in ((32, many), (6, few)) if count}
    cost = trace.cost([steps])
    assert cost.work == start + step * many + short * few
    assert cost.peak_bytes == (9 if many else 2 if few else 1)
    assert (cost.down_bytes, cost.up_bytes, cost.resident) == (3, 4, 5)
    assert math.isclose(cost.work.flops, start.flops + many * step.flops + few * short.flops)
