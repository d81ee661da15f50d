"""A figure of a run, or of several that differ in nothing but their seeds: what is known of it, as numbers.

Intervals over seeds are Student's t with n - 1 degrees of freedom; differences of runs on the same seeds are
paired. Others are Welch's (Biometrika 34, 1947, 28-35), with Satterthwaite's degrees of freedom (Biometrics
Bulletin 2, 1946, 110-114). Both assume that values, or differences, are about normal over seeds.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean, stdev
from typing import NamedTuple

from edgefl.core.corners import Interval, together

CONFIDENCE = 0.95
"""How often such an interval covers what it estimates."""
# Relative to two figures, a difference up to this is one of rounding.
ROUNDING = 1e-12
# A deviation needs two.
_TWO = 2


@dataclass(frozen=True, slots=True)
class Value:
    """A figure in base units, and what is known of it.

    Attributes:
        mean: the figure; of several runs, the mean of those that have it. None where it is unknown.
        between: its bounds over all that devices' and links' numbers may be; of several runs, the means of
            all. None where there are none.
        half: half of the 95% interval of the mean over seeds; None of one run alone.
        runs, of: how many runs have it, of how many.
        reached: whether there is such a figure: False of what a target took that no run reached.
        part: of a sum over clients that is not known of all, what is known; None where nothing is.
        known, clients: of how many clients that is, of how many that took part; (least, most) over runs.
        whole: what it is a share of; None for nothing.
        name: of what it is, where that is part of the figure, such as the slowest device.
    """

    mean: float | None
    between: Interval | None = None
    half: float | None = None
    runs: int = 1
    of: int = 1
    reached: bool = True
    part: float | None = None
    known: tuple[int, int] = (0, 0)
    clients: tuple[int, int] = (0, 0)
    whole: float | None = None
    name: str = ""

    @property
    def interval_95(self) -> Interval | None:
        """The 95% interval of the mean over seeds; None of one run alone."""
        return None if self.mean is None else around(self.mean, self.half)

    @classmethod
    def over_clients(
        cls, amount: float | None, known: int, clients: int, between: Interval | None = None
    ) -> "Value | None":
        """A sum over clients, which is unknown where some client's is; None where nobody took part."""
        if known == clients:
            return cls(amount, between) if clients else None
        return cls(None, between, part=amount, known=(known, known), clients=(clients, clients))


NOT_REACHED = Value(None, reached=False)
"""What a target took that was not reached."""


def over_seeds(values: Sequence[Value | None]) -> Value | None:
    """The mean over runs; None where none has such a figure."""
    there = [value for value in values if value is not None]
    if len(values) == 1 or not there:
        return there[0] if there else None
    means = [value.mean for value in there if value.mean is not None]
    found = estimate(means) if means else None
    bounds, between = [value.between for value in there if value.between], None
    if len(bounds) == len(values):
        low, high = together(bounds)
        between = Interval(low / len(bounds), None if high is None else high / len(bounds))
    some = [value for value in there if value.clients[1]]
    parts = [value.part for value in some if value.part is not None]
    wholes = [value.whole for value in there if value.whole is not None]
    return replace(
        there[0],
        mean=found.mean if found else None,
        between=between,
        half=found.half if found else None,
        runs=len(means),
        of=len(values),
        reached=any(value.reached for value in there),
        part=fmean(parts) if parts else None,
        known=_ends([value.known for value in some]),
        clients=_ends([value.clients for value in some]),
        whole=fmean(wholes) if wholes else None,
    )


def _ends(counts: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return (min(low for low, _ in counts), max(high for _, high in counts)) if counts else (0, 0)


class Estimate(NamedTuple):
    """The mean of ``runs`` values; its deviation, of a sample (n - 1), and interval are None of one value."""

    mean: float
    deviation_over_seeds: float | None
    runs: int
    interval_95: Interval | None

    @property
    def half(self) -> float | None:
        """Half the width of the interval."""
        deviation = self.deviation_over_seeds
        return None if deviation is None else deviations(self.runs) * deviation


class Difference(NamedTuple):
    """What one is above another in the mean.

    Attributes:
        mean: of the differences over seeds.
        interval_95: of the mean; None of one pair alone.
        pairs: of how many seeds; of unpaired values, of the one that has fewer.
        of: how many seeds there are.
        paired: whether values of the same seeds were subtracted; otherwise the interval is Welch's.
        separable: whether the interval is without 0; None without an interval.
    """

    mean: float
    interval_95: Interval | None
    pairs: int
    of: int
    paired: bool
    separable: bool | None

    @classmethod
    def within(cls, mean: float, half: float | None, pairs: int, of: int, *, paired: bool) -> "Difference":
        """One that is known to ``half`` the width of its interval."""
        separable = None if half is None else abs(mean) > half
        return cls(mean, around(mean, half), pairs, of, paired, separable)

    @property
    def half(self) -> float | None:
        """Half the width of the interval."""
        return None if self.interval_95 is None else (self.interval_95.high or 0.0) - self.mean


def around(mean: float, half: float | None) -> Interval | None:
    """The interval of a mean, given half its width."""
    return None if half is None else Interval(mean - half, mean + half)


@cache
def student(freedom: float) -> float:
    """The quantile of Student's t distribution up to which half of ``CONFIDENCE`` lies above 0."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def deviations(count: int) -> float:
    """Half the width of the interval of a mean of 2 or more, in their standard deviations (n - 1)."""
    return student(count - 1) / math.sqrt(count)


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of at least one value, and its interval."""
    finite, count = all(map(math.isfinite, values)), len(values)
    mean = fmean(values) if finite else sum(values) / count
    if count < _TWO:
        return Estimate(mean, None, count, None)
    deviation = stdev(values) if finite else math.nan
    return Estimate(mean, deviation, count, around(mean, deviations(count) * deviation))


def difference(own: Mapping[int, float | None], other: Mapping[int, float | None]) -> Difference | None:
    """One's figures by seed less another's, None where there is nothing to subtract.

    They are paired where they have two seeds in common or more. A seed has no figure where it is None or not
    finite.
    """
    common, (ours, theirs) = own.keys() & other.keys(), (_known(own), _known(other))
    if len(common) >= _TWO:
        pairs = [_less(ours[seed], theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())]
        if not pairs:
            return None
        found = estimate(pairs)
        return Difference.within(found.mean, found.half, found.runs, len(common), paired=True)
    if not ours or not theirs:
        return None
    mean, half = _unpaired(list(ours.values()), list(theirs.values()))
    count, of = min(len(ours), len(theirs)), min(len(own), len(other))
    return Difference.within(mean, half, count, of, paired=False)


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
