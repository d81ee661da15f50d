"""Predictions of single measurements, and numbers of a board fitted to measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel

from edgefl.core.benchmarks import Network, Quantity
from edgefl.core.corners import Corner, at_corner, has_interval
from edgefl.core.cost import Work
from edgefl.core.devices import Board, Clock
from edgefl.core.devices.roofline import EfficiencyByClass
from edgefl.core.errors import UserError
from edgefl.core.price import PowerDraw
from edgefl.core.sourced import Sourced, sourced
from edgefl.planning.fleets import link

# Nothing is sent over it.
_LINK = "ethernet"


@dataclass(frozen=True, eq=False)
class Sample:
    """One measured time or energy, and the work that was measured.

    Attributes:
        network: whose.
        row: its place in its file.
        work: the kernels.
        dtype: the number type of the prediction.
        inference: whether the runtime for inference is predicted.
        quantity: what was measured.
        measured: in seconds or joules.
        above_idle: whether an energy is what was drawn above idle power.
        fitted: the board's numbers that were fitted to it.
    """

    network: Network
    row: int
    work: Work
    dtype: str
    inference: bool
    quantity: Quantity
    measured: float
    above_idle: bool
    fitted: frozenset[str]


@dataclass
class Predictor:
    """Predicts what samples would take on a board; remembers its kernels' times.

    Raises:
        UserError: a number that timing needs is unknown, or the board does not support the type.
    """

    name: str
    board: Board
    _clocks: dict[tuple[str, bool], Clock] = field(default_factory=dict, init=False)

    def predict(self, sample: Sample) -> float | None:
        """Seconds or joules; None if a power is unknown."""
        spent = self.spent(sample)
        if sample.quantity == "time":
            return spent.seconds
        joules = spent.above_idle_j if sample.above_idle else spent.whole_j
        return _finite(joules)

    @cached_property
    def corners(self) -> tuple[Predictor, Predictor] | None:
        """Those of the board's cheap and costly corner; None if none of its numbers is an interval."""
        if not has_interval(self.board):
            return None
        cheap, costly = (Predictor(self.name, at_corner(self.board, corner)) for corner in Corner)
        return cheap, costly

    def between(self, sample: Sample) -> tuple[float | None, float | None]:
        """The least and the most that the board's numbers allow; None where nothing bounds it."""
        if self.corners is None:
            return None, None
        low, high = (_bound(corner, sample) for corner in self.corners)
        if low is None or high is None or sample.quantity == "time" or not sample.above_idle:
            return _of(low, sample), _of(high, sample)
        # Above idle is most where the idle power is least.
        least = low.whole_j - high.idle_w * low.seconds
        return _finite(max(0.0, least)), _finite(high.whole_j - low.idle_w * high.seconds)

    def spent(self, sample: Sample) -> Spent:
        """What a sample's work takes."""
        key = sample.dtype, sample.inference
        if key not in self._clocks:
            self._clocks[key] = self.board.clock(self.name, sample.dtype, inference=sample.inference)
        bounds = self._clocks[key].time(sample.work)
        draw = PowerDraw.of(self.board, link(_LINK), bounds)
        return Spent(bounds.seconds, float(draw.compute_w), float(draw.idle_w))


class Spent(NamedTuple):
    """The time of some work, and what it draws above idle and idle; NaN for an unknown power."""

    seconds: float
    compute_w: float
    idle_w: float

    @property
    def above_idle_j(self) -> float:
        """Joules above idle power."""
        return self.compute_w * self.seconds

    @property
    def whole_j(self) -> float:
        """Joules of the whole device."""
        return (self.compute_w + self.idle_w) * self.seconds


def _bound(corner: Predictor, sample: Sample) -> Spent | None:
    try:
        return corner.spent(sample)
    except UserError:  # a number without a bound on this side
        return None


def _of(spent: Spent | None, sample: Sample) -> float | None:
    if spent is None:
        return None
    return _finite(spent.seconds if sample.quantity == "time" else spent.whole_j)


def _finite(figure: float) -> float | None:
    return None if math.isnan(figure) else figure


def refitted(name: str, board: Board, numbers: Sequence[str], samples: Sequence[Sample]) -> Board:
    """A board with some of its numbers fitted to samples.

    By least squares of the logarithms of predicted over measured, from the present values on. A share stays
    at most 1.

    Args:
        name: the board's, for messages.
        board: with the numbers to start from.
        numbers: dotted names, as ``sourced`` gives them; all known and above 0.
        samples: at least one.
    """
    from scipy.optimize import least_squares

    present = dict(sourced(board))
    values = np.array([float(present[number].known) for number in numbers])

    def changed(steps: Any) -> Board:
        scaled = values * np.exp(steps)
        own = {key: float(value) for key, value in zip(numbers, scaled, strict=True)}
        found: Board = with_values(board, own)
        return found

    def residuals(steps: Any) -> list[float]:
        predictor = Predictor(name, changed(steps))
        return [_log_error(predictor.predict(sample), sample.measured) for sample in samples]

    # A share is the only number that has an upper limit.
    limits = [
        -math.log(value) if _is_share(number) else math.inf
        for number, value in zip(numbers, values, strict=True)
    ]
    start = [0.0] * len(numbers)
    return changed(least_squares(residuals, start, bounds=(-math.inf, limits), diff_step=1e-3).x)


def _is_share(number: str) -> bool:
    return number.rsplit(".", maxsplit=1)[-1] in EfficiencyByClass.model_fields


def _log_error(predicted: float | None, measured: float) -> float:
    return 0.0 if predicted is None else math.log(predicted / measured)


def with_values(record: Any, values: Mapping[str, float], above: str = "") -> Any:
    """A record with other values of some numbers.

    Args:
        record: of ``Sourced`` numbers.
        values: by dotted name.
        above: the record's own dotted name.
    """

    def inner(key: Any, value: Any) -> Any:
        return with_values(value, values, f"{above}.{key}" if above else str(key))

    if isinstance(record, Sourced):
        return record.model_copy(update={"value": values[above]}) if above in values else record
    if isinstance(record, BaseModel):
        return record.model_copy(
            update={key: inner(key, getattr(record, key)) for key in type(record).model_fields}
        )
    if isinstance(record, dict):
        return {key: inner(key, value) for key, value in record.items()}
    return record
