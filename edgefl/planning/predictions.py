"""Predictions of single measurements, and numbers of a board fitted to measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from edgefl.core.benchmarks import Network, Quantity
from edgefl.core.corners import Corner, at_corner, has_interval
from edgefl.core.cost import Work
from edgefl.core.devices import Board, Clock
from edgefl.core.devices.roofline import EfficiencyByClass
from edgefl.core.errors import UserError
from edgefl.core.ledger import known
from edgefl.core.price import Working, above_idle_between
from edgefl.core.sourced import replaced, sourced


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
        return _figure(self.working(sample), sample)

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
        if sample.quantity == "energy" and sample.above_idle:
            if low and high:
                return above_idle_between(low, high)
            return None, known(high.joules) if high else None
        return _figure(low, sample), _figure(high, sample)

    def working(self, sample: Sample) -> Working:
        """The time and the power of a sample's work."""
        key = sample.dtype, sample.inference
        if key not in self._clocks:
            self._clocks[key] = self.board.clock(self.name, sample.dtype, inference=sample.inference)
        return Working.of(self.board.power, self._clocks[key].time(sample.work))


def _bound(corner: Predictor, sample: Sample) -> Working | None:
    try:
        return corner.working(sample)
    except UserError:  # a number without a bound on this side
        return None


def _figure(working: Working | None, sample: Sample) -> float | None:
    """Its seconds or joules; None if they are unknown."""
    if working is None:
        return None
    if sample.quantity == "time":
        return working.seconds
    return known(working.above_idle_j if sample.above_idle else working.joules)


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

    def scaled(steps: Any) -> Board:
        own = dict(zip(numbers, (values * np.exp(steps)).tolist(), strict=True))
        return replaced(
            board, {key: present[key].model_copy(update={"value": value}) for key, value in own.items()}
        )

    def residuals(steps: Any) -> list[float]:
        predictor = Predictor(name, scaled(steps))
        return [_log_error(predictor.predict(sample), sample.measured) for sample in samples]

    # A share is the only number that has an upper limit.
    limits = [
        -math.log(value) if _is_share(number) else math.inf
        for number, value in zip(numbers, values, strict=True)
    ]
    start = [0.0] * len(numbers)
    return scaled(least_squares(residuals, start, bounds=(-math.inf, limits), diff_step=1e-3).x)


def _is_share(number: str) -> bool:
    return number.rsplit(".", maxsplit=1)[-1] in EfficiencyByClass.model_fields


def _log_error(predicted: float | None, measured: float) -> float:
    return 0.0 if predicted is None else math.log(predicted / measured)
