"""Laws of costs: multisets of kernels, and what a trace makes of them."""

from collections import Counter

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


@given(works, works, works, st.integers(0, 7), st.integers(0, 7))
def test_a_job_is_its_start_its_steps_and_its_finish(start, step, short, many, few):
    """A trace gives start + every step of its batch size + finish, and the peak of the largest batches."""
    phase = PhaseTrace("train", {32: step, 6: short})
    peaks = {(32,): {"x": 9}, (6,): {"x": 2}, (0,): {"x": 1}}
    trace = Trace("train", {"w": 3}, {"w": 4}, start, (phase,), Work(), peaks)
    steps = {size: count for size, count in ((32, many), (6, few)) if count}
    cost = trace.cost([steps])
    done = [start, *[step] * many, *[short] * few]
    assert cost.work.kernels == sum((Counter(one.kernels) for one in done), Counter())
    for name in ("flops", "bytes", "launches", "backwards"):
        assert getattr(cost.work, name) == sum(getattr(one, name) for one in done)
    assert cost.peak_bytes == (9 if many else 2 if few else 1)
    assert (cost.down, cost.up) == ({"w": 3}, {"w": 4})
