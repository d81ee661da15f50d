"""Batches and steps."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.core.steps import Passes, batch_sizes, limited, step_count, step_sequence, step_sizes

LENGTHS = st.one_of(st.builds(Passes, epochs=st.integers(0, 4)), st.builds(Passes, steps=st.integers(0, 40)))


@pytest.mark.parametrize(
    ("samples", "batch_size", "expected"),
    [
        (0, 32, []),
        (1, 32, [1]),
        (2, 32, [2]),
        (32, 32, [32]),
        (33, 32, [33]),
        (34, 32, [32, 2]),
        (64, 32, [32, 32]),
        (65, 32, [32, 33]),
        (70, 32, [32, 32, 6]),
        (3, 2, [3]),
        (3, 1, [1, 1, 1]),
    ],
)
def test_a_rest_of_one_joins_the_batch_before(samples, batch_size, expected):
    """The last batch is short, but never of one sample unless there is only one or the batch size is 1."""
    assert batch_sizes(samples, batch_size) == expected


@given(st.integers(0, 500), st.integers(1, 60))
def test_batches_hold_every_sample_once(samples, batch_size):
    """Sizes sum to the samples, and no batch exceeds the batch size by more than one."""
    sizes = batch_sizes(samples, batch_size)
    assert sum(sizes) == samples
    assert all(0 < size <= batch_size + 1 for size in sizes)
    assert batch_size == 1 or 1 not in sizes or samples == 1


@given(st.integers(0, 200), st.integers(1, 40), LENGTHS)
def test_counted_steps_are_the_steps_taken(samples, batch_size, passes):
    """``step_sizes`` counts the steps of ``step_sequence``: prices and training agree."""
    walked = list(step_sequence(samples, batch_size, passes))
    assert step_count(samples, batch_size, passes) == len(walked)
    assert step_sizes(samples, batch_size, passes) == Counter(size for _, size in walked)
    assert all(count > 0 for count in step_sizes(samples, batch_size, passes).values())
    assert [one for one, _ in walked] == sorted(one for one, _ in walked)


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
    """Seven steps over batches of 4, 4 and 2 are two passes and one step of a third."""
    assert list(step_sequence(10, 4, Passes(steps=7))) == [
        (0, 4),
        (0, 4),
        (0, 2),
        (1, 4),
        (1, 4),
        (1, 2),
        (2, 4),
    ]
    assert step_sizes(10, 4, Passes(steps=7)) == {4: 5, 2: 2}


def test_steps_without_data_are_none():
    """A client without samples takes no steps, however many are requested."""
    assert list(step_sequence(0, 4, Passes(steps=7))) == []
    assert step_sizes(0, 4, Passes(epochs=7)) == {}


@pytest.mark.parametrize("passes", [Passes(epochs=2, samples=10), Passes(steps=5, samples=10)])
def test_a_phase_over_other_samples_takes_the_same_steps_for_every_client(passes):
    """Its steps are those of a client that has so many samples, and it is cut short like any other phase."""
    own = Passes(passes.epochs, passes.steps)
    for samples in (1, 7, 400):
        assert list(step_sequence(samples, 4, passes)) == list(step_sequence(10, 4, own))
        assert step_sizes(samples, 4, passes) == step_sizes(10, 4, own)
        assert step_count(samples, 4, passes) == step_count(10, 4, own)
        (short,) = limited(samples, 4, [passes], 4)
        assert short == Passes(steps=4, samples=10)


def test_a_million_steps_are_counted_at_once():
    """Counting does not iterate over the steps."""
    assert step_sizes(10, 4, Passes(steps=3 * 10**12 + 1)) == {4: 2 * 10**12 + 1, 2: 10**12}


@pytest.mark.parametrize(
    "lengths", [{}, {"epochs": 1, "steps": 1}, {"epochs": -1}, {"steps": -1}, {"epochs": 1, "samples": -1}]
)
def test_a_length_is_one_number(lengths):
    """Neither, both or a negative length is refused."""
    with pytest.raises(ValueError, match="a phase"):
        Passes(**lengths)
