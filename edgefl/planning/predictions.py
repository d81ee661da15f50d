"""Predictions of single measurements, and numbers of a board fitted to measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import BaseModel

from edgefl.core.benchmarks import Network, Quantity
from edgefl.core.cost import Cost, Work
from edgefl.core.devices import Board, Clock
from edgefl.core.devices.roofline import EfficiencyByClass
from edgefl.core.pricer import Pricer
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
    _pricers: dict[str, Pricer] = field(default_factory=dict, init=False)
    _clocks: dict[str, Clock] = field(default_factory=dict, init=False)

    def predict(self, sample: Sample) -> float | None:
        """Seconds or joules; None if a power is unknown."""
        return self._inferred(sample) if sample.inference else self._trained(sample)

    def _trained(self, sample: Sample) -> float | None:
        pricer = self._pricers.get(sample.dtype)
        if pricer is None:
            pricer = self._pricers[sample.dtype] = Pricer(self.name, self.board, sample.dtype)
        price = pricer.price(Cost(steps=((sample.work, 1),)), link(_LINK))
        if sample.quantity == "time":
            return price.compute_s
        return price.energy.compute_j if sample.above_idle else price.working_j(price.compute_s)

    def _inferred(self, sample: Sample) -> float | None:
        """As ``edgefl bench`` predicts it: the energy is the active power's."""
        clock = self._clocks.get(sample.dtype)
        if clock is None:
            clock = self.board.clock(self.name, sample.dtype, inference=True)
            self._clocks[sample.dtype] = clock
        seconds = clock.time(sample.work).seconds
        if sample.quantity == "time":
            return seconds
        active, idle = self.board.power.active.value, self.board.power.idle.value
        if active is None or (sample.above_idle and idle is None):
            return None
        return seconds * (active - (idle or 0.0) if sample.above_idle else active)


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
    # Where a share is 1 already, it can only fall.
    start = [min(0.0, limit - 1e-6) for limit in limits]
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
