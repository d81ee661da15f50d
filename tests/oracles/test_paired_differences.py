"""Intervals against published tables and Student's own example."""

import math

import pytest

from edgefl.analysis.values import difference, estimate, student

# Hours of sleep that ten patients gained by two drugs: Student, "The probable error of a mean", Biometrika 6
# (1908), 20; the data set `sleep` of R.
FIRST = (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
SECOND = (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262), (29, 2.045), (120, 1.980)],
)
def test_quantiles_are_those_of_the_table(freedom, quantile):
    """NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2: upper critical values, 0.975."""
    assert student(freedom) == pytest.approx(quantile, abs=5e-4)


def test_students_patients_slept_longer_by_the_second_drug():
    """t.test(paired = TRUE) of R: -1.58 hours, from -2.4598858 to -0.7001142, t = -4.0621, 9 degrees."""
    found = difference(dict(enumerate(FIRST)), dict(enumerate(SECOND)))
    assert found.mean == pytest.approx(-1.58)
    assert (found.mean - found.half, found.mean + found.half) == pytest.approx(
        (-2.4598858, -0.7001142), abs=1e-7
    )
    assert (found.pairs, found.of, found.paired, found.separable) == (10, 10, True, True)
    assert found.mean / (found.half / student(9)) == pytest.approx(-4.0621, abs=1e-4)


def test_as_other_patients_they_would_not_have():
    """t.test() of R, Welch's: from -3.3654832 to 0.2054832 on 17.776 degrees of freedom."""
    found = difference(dict(enumerate(FIRST)), dict(enumerate(SECOND, start=10)))
    assert (found.mean - found.half, found.mean + found.half) == pytest.approx(
        (-3.3654832, 0.2054832), abs=1e-7
    )
    assert (found.paired, found.separable) == (False, False)


def test_a_mean_has_the_interval_of_its_sample():
    """t.test() of R for the first drug: from -0.5297804 to 2.0297804 around 0.75."""
    found = estimate(FIRST)
    assert (found.mean - found.half, found.mean + found.half) == pytest.approx(
        (-0.5297804, 2.0297804), abs=1e-6
    )
    assert found.deviation_over_seeds == pytest.approx(1.78901, abs=1e-5)


@pytest.mark.parametrize("values", [[3.0], [3.0, 3.0, 3.0]])
def test_without_a_spread_there_is_none(values):
    """One value has no interval; equal ones have one without width."""
    assert estimate(values).half == (None if len(values) == 1 else 0.0)


def test_equal_runs_are_not_separable():
    """Nor are those that differ by rounding; a gain that is the same in all seeds is."""
    values = {1: 0.3, 2: 0.7, 3: 1.1}
    assert not difference(values, {seed: one * (1 + 2**-50) for seed, one in values.items()}).separable
    assert difference({seed: one + 0.1 for seed, one in values.items()}, values).separable


def test_what_is_not_finite_is_no_figure():
    """A run that diverged, among others and alone."""
    found = difference({1: math.nan, 2: 3.0, 3: 2.0}, {1: 1.0, 2: 1.0, 3: 1.0})
    assert (found.mean, found.half) == (1.5, pytest.approx(6.353, abs=1e-3))
    assert (found.pairs, found.of) == (2, 3)
    assert difference({1: math.inf, 2: math.nan}, {1: 1.0, 2: 1.0}) is None
    for values, mean in (([1.0, math.inf], math.inf), ([1.0, math.nan], math.nan)):
        found = estimate(values)
        assert found.mean == pytest.approx(mean, nan_ok=True)
        assert math.isnan(found.half)
