"""What a calibration measured, beside what its device file predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Group, RenderableType

from edgefl.core.units import show_seconds, show_share
from edgefl.show.table import Column, Table


@dataclass
class Prediction:
    """A network at one batch size: measured and predicted time of a step, or of a batch inferred.

    Attributes:
        use: "fit" or "held out".
        spread: the slowest process over the fastest, less 1.
        error: predicted over measured, less 1.
    """

    network: str
    use: str
    measured_s: float
    spread: float
    predicted_s: float
    error: float = field(init=False)

    def __post_init__(self) -> None:
        self.error = self.predicted_s / self.measured_s - 1


@dataclass
class MethodPrediction:
    """A step of a method, over FedAvg's training step on the same network and batch.

    Attributes:
        method: the method, and the exchange where it is not training.
        base_measured_s, base_predicted_s: of FedAvg's step.
        measured, predicted: the ratio.
        error: the predicted ratio over the measured one, less 1.
    """

    network: str
    method: str
    measured_s: float
    predicted_s: float
    base_measured_s: float
    base_predicted_s: float
    measured: float = field(init=False)
    predicted: float = field(init=False)
    error: float = field(init=False)

    def __post_init__(self) -> None:
        self.measured = self.measured_s / self.base_measured_s
        self.predicted = self.predicted_s / self.base_predicted_s
        self.error = self.predicted / self.measured - 1


def calibration(
    steps: Sequence[Prediction], inference: Sequence[Prediction], methods: Sequence[MethodPrediction]
) -> RenderableType:
    """A table of training steps and, where they were measured, of inference and of methods over FedAvg."""
    tables = [
        Table([Column("training step", "network"), *_STEP], steps, names=2),
        Table([Column("inference", "network"), *_STEP], inference, names=2),
        Table(_METHOD, methods, names=2),
    ]
    return Group(*(table for table in tables if table.rows))


_ERROR = Column("error", "error", "{:+.0%}".format)
_STEP = [
    Column("", "use"),
    Column("measured", "measured_s", show_seconds),
    Column("spread", "spread", show_share),
    Column("predicted", "predicted_s", show_seconds),
    _ERROR,
]
_METHOD = [
    Column("step over FedAvg's", "network"),
    Column("", "method"),
    Column("measured", "measured", "{:.2f}".format),
    Column("predicted", "predicted", "{:.2f}".format),
    _ERROR,
]
