"""Means of repetitions and differences between them, with 95% intervals.

Student's t intervals with n - 1 degrees of freedom; differences of repetitions on the same seeds are paired.
Others are Welch's (Biometrika 34, 1947, 28-35), with Satterthwaite's degrees of freedom (Biometrics Bulletin
2, 1946, 110-114). Both assume that values, or differences, are about normal over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from statistics import fmean, stdev
from typing import NamedTuple

CONFIDENCE = 0.95
"""How often such an interval covers what it estimates."""
# Relative to two figures, a difference up to this is one of rounding.
ROUNDING = 1e-12
# A deviation needs two.
_TWO = 2
# Of so many seeds an interval is wide.
_FEW = 2


class Estimate(NamedTuple):
    """A mean with its interval.

    Attributes:
        mean: of the values.
        half: half the width of the 95% interval around it; None of one value.
        deviation: the standard deviation of a sample (n - 1); None of one value.
        values: how many there are.
    """

    mean: float
    half: float | None
    deviation: float | None
    values: int


class Difference(NamedTuple):
    """What one is above another in the mean.

    Attributes:
        mean: of the differences.
        half: half the width of the 95% interval around it; None of one pair alone.
        pairs: how many there are; of unpaired values, of the one that has fewer.
        of: how many there could be.
        paired: whether values of the same seeds were subtracted.
    """

    mean: float
    half: float | None
    pairs: int
    of: int
    paired: bool

    @property
    def separable(self) -> bool | None:
        """Whether the interval is without 0; None without an interval."""
        return None if self.half is None else abs(self.mean) > self.half


@cache
def student(freedom: float) -> float:
    """The quantile of Student's t distribution up to which half of ``CONFIDENCE`` lies above 0.

    Args:
        freedom: degrees of freedom, above 0; they need not be whole.
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def deviations(count: int) -> float:
    """Half the width of the interval of a mean, in standard deviations of the sample (n - 1).

    Args:
        count: of values, 2 or more.
    """
    return student(count - 1) / math.sqrt(count)


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of at least one value, and its interval."""
    finite, count = all(map(math.isfinite, values)), len(values)
    mean = fmean(values) if finite else sum(values) / count
    if count < _TWO:
        return Estimate(mean, None, None, count)
    deviation = stdev(values) if finite else math.nan
    return Estimate(mean, deviations(count) * deviation, deviation, count)


def over_seeds(counts: Sequence[int]) -> str:
    """What stands behind means over seeds, of how many each; of one there is no interval."""
    few = min(count for count in counts if count > 1)
    wide = f"; of {few} seeds it is {deviations(few):.2g} times the standard deviation" if few <= _FEW else ""
    return f"± 95% interval of the mean over seeds (Student's t, n - 1){wide}"


def difference(own: Mapping[int, float | None], other: Mapping[int, float | None]) -> Difference | None:
    """One's figures less another's: paired where they have two seeds in common or more, else unpaired.

    Args:
        own: by seed; None, or a number that is not finite, where there is no figure.
        other: likewise.

    Returns:
        None where there is nothing to subtract.
    """
    common, (ours, theirs) = own.keys() & other.keys(), (_known(own), _known(other))
    if len(common) >= _TWO:
        pairs = [_less(ours[seed], theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())]
        if not pairs:
            return None
        found = estimate(pairs)
        return Difference(found.mean, found.half, found.values, len(common), paired=True)
    if not ours or not theirs:
        return None
    mean, half = _unpaired(list(ours.values()), list(theirs.values()))
    count, of = min(len(ours), len(theirs)), min(len(own), len(other))
    return Difference(mean, half, count, of, paired=False)


def _known(figures: Mapping[int, float | None]) -> dict[int, float]:
    return {seed: value for seed, value in figures.items() if value is not None and math.isfinite(value)}


def _less(one: float, other: float) -> float:
    found = one - other
    return 0.0 if abs(found) <= ROUNDING * max(abs(one), abs(other)) else found


def _unpaired(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float | None]:
    """The difference of means, and half the width of its interval.

    Of a value alone, the deviation is taken to be that of the others; without any, there is no interval.
    """
    mean = _less(fmean(ours), fmean(theirs))
    spreads = [(stdev(values), len(values)) for values in (ours, theirs) if len(values) >= _TWO]
    if not spreads:
        return mean, None
    if len(spreads) < _TWO:
        ((deviation, count),) = spreads
        return mean, student(count - 1) * deviation * math.sqrt(1 + 1 / count)
    parts = [(deviation**2 / count, count - 1) for deviation, count in spreads]
    variance = math.fsum(part for part, _ in parts)
    if variance == 0:
        return mean, 0.0
    # Shares of the variance: its square may be too small for a float.
    freedom = 1 / math.fsum((part / variance) ** 2 / free for part, free in parts)
    return mean, student(freedom) * math.sqrt(variance)
