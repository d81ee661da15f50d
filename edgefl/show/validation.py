"""Predictions beside measurements as tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from rich.console import Group, RenderableType

from edgefl.core.corners import Interval
from edgefl.core.units import show_joules, show_seconds, show_share
from edgefl.planning.benchmarks import ALL, BenchmarkComparison, Compared, Quantity, Score, Total, Validation
from edgefl.show.table import MISSING, UNKNOWN, Column, Line, Table
from edgefl.show.values import between


def validation(found: Validation) -> RenderableType:
    """A table for each file and quantity, and one of their scores."""
    tables = (block for comparison in found.comparisons for block in _comparison(comparison))
    return Group(*tables, scores(found.comparisons, found.totals))


def _comparison(found: BenchmarkComparison) -> Iterator[RenderableType]:
    yield Line(f"{_figure_of(found.name, found.quantity)}: {found.title}", "bold")
    yield Line(f"{found.board}; {found.measures}; {found.runtime}", "dim")
    show = show_seconds if found.quantity == "time" else show_joules
    columns = [
        Column("network", "network"),
        Column("batch", "batch"),
        Column("measured", "measured", show),
        Column("predicted", "predicted", show, missing=UNKNOWN),
        Column("error", "error", "{:+.0%}".format),
    ]
    if any(row.low is not None or row.high is not None for row in found.rows):
        columns.append(Column("bounds", partial(_bounds_text, "s" if found.quantity == "time" else "J")))
    if any(row.remark for row in found.rows):
        columns.append(Column("remark", "remark", left=True))
    yield Table(columns, found.rows)
    yield Line()


def _bounds_text(unit: str, row: Compared) -> str:
    bounds = None if row.low is None and row.high is None else Interval.of(row.low, row.high)
    return between(None, bounds, unit, MISSING)


def scores(comparisons: Sequence[BenchmarkComparison], totals: Sequence[Total]) -> RenderableType:
    """A row for each comparison, and one for each total of several."""
    rows = [(_figure_of(one.name, one.quantity), *_score(one.score)) for one in comparisons]
    for total in (one for one in totals if one.files > 1):
        boards = "1 board" if total.boards == 1 else f"{total.boards} boards"
        label = ALL if total.measures == ALL else f"{ALL}, {total.measures}"
        rows.append((f"{_figure_of(label, total.quantity)} ({boards})", *_score(total.score)))
    return Table(("", "rows", "median error", "in bounds", "Spearman", "Kendall"), rows)


def _figure_of(label: str, quantity: Quantity) -> str:
    return label if quantity == "time" else f"{label}, {quantity}"


def _score(found: Score) -> Iterator[str]:
    yield f"{found.rows} of {found.rows + found.left_out}"
    yield MISSING if found.median_error is None else show_share(found.median_error)
    yield f"{found.inside} of {found.bounded}" if found.bounded else MISSING
    for rank in (found.spearman, found.kendall):
        yield MISSING if rank is None else f"{rank:.2f}"


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
