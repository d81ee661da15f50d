"""Batches and steps."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.core.steps import Passes, batch_sizes, limited, step_count, step_sequence, step_sizes

SAMPLES = st.none() | st.integers(0, 60)
LENGTHS = st.one_of(
    st.builds(Passes, epochs=st.integers(0, 4), samples=SAMPLES),
    st.builds(Passes, steps=st.integers(0, 40), samples=SAMPLES),
)


def test_a_rest_of_one_joins_the_batch_before():
    """The last batch is short, but never of one sample unless there is only one or the batch size is 1."""
    found = {samples: batch_sizes(samples, 32) for samples in (0, 1, 2, 32, 33, 34, 64, 65, 70)}
    large = {33: [33], 34: [32, 2], 64: [32, 32], 65: [32, 33], 70: [32, 32, 6]}
    assert found == {0: [], 1: [1], 2: [2], 32: [32], **large}
    assert batch_sizes(3, 1) == [1, 1, 1]


@given(st.integers(0, 200), st.integers(1, 40), LENGTHS)
def test_counted_steps_are_the_steps_taken(samples, batch_size, passes):
    """Of the client's samples or of the phase's own; prices and training agree."""
    own = samples if passes.samples is None else passes.samples
    walked = list(step_sequence(samples, batch_size, passes))
    assert walked == list(step_sequence(own, batch_size, Passes(passes.epochs, passes.steps)))
    assert step_count(samples, batch_size, passes) == len(walked)
    assert step_sizes(samples, batch_size, passes) == Counter(size for _, size in walked)
    assert all(count > 0 for count in step_sizes(samples, batch_size, passes).values())
    assert [one for one, _ in walked] == sorted(one for one, _ in walked)
    if passes.epochs:
        assert sum(size for _, size in walked) == passes.epochs * own


@given(st.integers(0, 60), st.integers(1, 20), st.lists(LENGTHS, min_size=1, max_size=3), st.integers(0, 150))
def test_a_limited_job_is_the_beginning_of_the_full_one(samples, batch_size, phases, steps):
    """Its steps are the full job's first, phase after phase; phases that need no cut stay as they are."""

    def walked(lengths):
        each = (step_sequence(samples, batch_size, passes) for passes in lengths)
        return [(place, *step) for place, phase in enumerate(each) for step in phase]

    found = limited(samples, batch_size, phases, steps)
    assert walked(found) == walked(phases)[:steps]
    if steps >= len(walked(phases)):
        assert found == phases


def test_steps_may_end_within_a_pass():
    """Seven steps over batches of 4, 4 and 2 are two passes and one step of a third; none without data."""
    once = [4, 4, 2]
    walked = [(nth, size) for nth in (0, 1) for size in once]
    assert list(step_sequence(10, 4, Passes(steps=7))) == [*walked, (2, 4)]
    assert list(step_sequence(0, 4, Passes(steps=7))) == []
    # Counting does not iterate over the steps.
    assert step_sizes(10, 4, Passes(steps=3 * 10**12 + 1)) == {4: 2 * 10**12 + 1, 2: 10**12}


@pytest.mark.parametrize(
    "lengths", [{}, {"epochs": 1, "steps": 1}, {"epochs": -1}, {"epochs": 1, "samples": -1}]
)
def test_a_length_is_one_number(lengths):
    with pytest.raises(ValueError, match="a phase"):
        Passes(**lengths)
