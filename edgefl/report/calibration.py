"""What a calibration measured, beside what its device file predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Group, RenderableType

from edgefl.core.units import show_seconds, show_share
from edgefl.report.tables import MISSING, figures


@dataclass
class Prediction:
    """A network at one batch size: measured and predicted time.

    Attributes:
        network: its name and batch size.
        use: "fit" or "held out".
        measured_s: seconds of one step, or of one batch inferred.
        spread: the slowest process over the fastest, less 1.
        predicted_s: seconds; None where the file has nothing to predict it from.
        error: predicted over measured, less 1.
    """

    network: str
    use: str
    measured_s: float
    spread: float
    predicted_s: float | None
    error: float | None = field(init=False)

    def __post_init__(self) -> None:
        self.error = None if self.predicted_s is None else self.predicted_s / self.measured_s - 1


def calibration(steps: Sequence[Prediction], inference: Sequence[Prediction]) -> RenderableType:
    """A table of training steps and, where it was measured, one of inference."""
    tables = {"training step": steps, "inference": inference}
    heads = ("", "measured", "spread", "predicted", "error")
    return Group(
        *(figures((title, *heads), map(_cells, rows), left=2) for title, rows in tables.items() if rows)
    )


def _cells(row: Prediction) -> list[str]:
    return [
        row.network,
        row.use,
        show_seconds(row.measured_s),
        show_share(row.spread),
        MISSING if row.predicted_s is None else show_seconds(row.predicted_s),
        MISSING if row.error is None else f"{row.error:+.0%}",
    ]
