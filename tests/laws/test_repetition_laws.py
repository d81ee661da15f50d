"""Laws of 95% intervals over seeds, and of differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.analysis.values import difference, estimate

VALUES = st.floats(-1e6, 1e6, allow_nan=False)
FIGURES = st.dictionaries(st.integers(0, 6), st.none() | VALUES, max_size=6)


@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
def test_an_interval_covers_the_mean_in_19_of_20_cases(seeds):
    """Of 4,000 groups of normal values, 95% within four standard errors (1.4%)."""
    draws = np.random.default_rng(seeds).normal(3.0, 2.0, (4000, seeds))
    found = [estimate(row) for row in draws.tolist()]
    covered = np.mean([abs(one.mean - 3.0) <= one.half for one in found])
    assert covered == pytest.approx(0.95, abs=0.014)


@pytest.mark.parametrize(("apart", "counts"), [(0, (5, 5)), (0, (2, 2)), (100, (5, 5)), (100, (3, 8))])
def test_methods_that_are_alike_seem_to_differ_in_one_of_20_cases(apart, counts):
    """Seeds that both have add to both alike; groups without a seed in common may differ in their spread."""
    rng = np.random.default_rng(7)
    found = []
    for _ in range(4000):
        lucky = rng.normal(0, 5, 200)
        # Welch's interval is close for unlike spreads, and not exact.
        noise = rng.normal(0, 1, counts[0]), rng.normal(0, 1 + bool(apart), counts[1])
        ours = {seed: lucky[seed] * (not apart) + one for seed, one in enumerate(noise[0])}
        theirs = {seed + apart: lucky[seed] * (not apart) + one for seed, one in enumerate(noise[1])}
        found.append(difference(ours, theirs).separable)
    assert np.mean(found) == pytest.approx(0.05, abs=0.014)


@given(FIGURES, FIGURES, st.randoms())
def test_the_order_of_runs_does_not_matter(own, other, order):
    """To the bit, of means and of differences."""

    def shuffled(figures):
        items = list(figures.items())
        order.shuffle(items)
        return dict(items)

    assert difference(shuffled(own), shuffled(other)) == difference(own, other)
    values = [value for value in own.values() if value is not None]
    if values:
        assert estimate(order.sample(values, len(values))) == estimate(values)


@given(FIGURES)
def test_equal_runs_are_never_separable(figures):
    """Neither seed by seed, nor where they differ by rounding."""
    for other in (figures, {seed: one and one * (1 + 2**-50) for seed, one in figures.items()}):
        found = difference(figures, other)
        assert found is None or not found.separable


def test_what_is_not_finite_is_no_figure():
    """A run that diverged, among others and alone."""
    found = difference({1: math.nan, 2: 3.0, 3: 2.0}, {1: 1.0, 2: 1.0, 3: 1.0})
    assert (found.mean, found.half) == (1.5, pytest.approx(6.353, abs=1e-3))
    assert (found.pairs, found.of) == (2, 3)
    assert difference({1: math.inf, 2: math.nan}, {1: 1.0, 2: 1.0}) is None
    for values, mean in (
        ([1.0, math.inf], math.inf),
        ([math.inf, -math.inf], math.nan),
        ([1.0, math.nan], math.nan),
    ):
        found = estimate(values)
        assert found.mean == pytest.approx(mean, nan_ok=True)
        assert math.isnan(found.half)
