"""Laws of costs: a monoid, and a multiset underneath."""

from __future__ import annotations

import math
from functools import reduce
from operator import add

from hypothesis import example, given
from hypothesis import strategies as st
from plans import kernel

from edgefl.core.cost import OP_CLASSES, Cost, PhaseTrace, Trace, Work

kernels = st.builds(
    kernel,
    kind=st.sampled_from(OP_CLASSES),
    flops=st.integers(0, 9),
    size=st.integers(0, 9),
    op=st.sampled_from("ab"),
)
works = st.builds(Work.of, st.lists(kernels, max_size=6))
parts = st.dictionaries(st.sampled_from(["body", "head", "gram"]), st.integers(0, 5), max_size=3)
steps = st.lists(st.tuples(works, st.integers(1, 3)), max_size=3).map(tuple)
costs = st.builds(Cost, down=parts, up=parts, steps=steps, peak=parts, resident=st.integers(0, 5))


@given(costs, costs, costs)
@example(Cost(peak={"body": 0}), Cost(), Cost())
def test_costs_add_up_in_any_grouping(one, two, three):
    """The empty cost is neutral, not even which parts of size 0 are listed; equal peaks included."""
    assert Cost() + one == one == one + Cost()
    assert (one + two) + three == one + (two + three)


@given(costs, costs)
def test_the_order_of_costs_moves_no_total(one, two):
    """+ commutes in everything but the name of which of two equal peaks is kept."""
    forth, back = one + two, two + one
    assert (forth.down, forth.up, forth.work, forth.resident) == (
        back.down,
        back.up,
        back.work,
        back.resident,
    )
    assert forth.peak_bytes == back.peak_bytes == max(one.peak_bytes, two.peak_bytes)
    assert forth.down_bytes == one.down_bytes + two.down_bytes
    assert forth.up_bytes == one.up_bytes + two.up_bytes


@given(works, works, works, st.integers(0, 5))
def test_works_are_multisets(one, two, three, times):
    """+ commutes, associates and has a zero; n times is repeated addition, and totals are linear."""
    assert one + two == two + one
    assert (one + two) + three == one + (two + three)
    assert one + Work() == one
    assert one * times == reduce(add, [one] * times, Work())
    both = one * times + two
    for name in ("flops", "bytes", "launches", "backwards"):
        assert getattr(both, name) == times * getattr(one, name) + getattr(two, name)


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
