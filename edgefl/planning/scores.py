"""Predictions beside measurements, and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from edgefl.core.benchmarks import Quantity

# Of fewer rows, an order says nothing.
_LEAST_RANKED = 3
# The total of all times.
ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One configuration's measurement beside its prediction.

    Attributes:
        network: its name for people.
        batch: samples.
        measured: seconds or joules.
        predicted: the same; None where a number is unknown, or the board refuses the work.
        low, high: the least and the most that the board's numbers allow, where they are intervals; None for
            no bound, and for a prediction with numbers that were fitted again.
        error: predicted over measured, less 1; None without a prediction.
        status: whether the source gives the measurement, or it is arithmetic on the source's figures.
        source: where it was read.
        counted: whether it counts in the score.
        remark: why it does not; "refitted" if its numbers were fitted again without its network.
    """

    network: str
    batch: int
    measured: float
    predicted: float | None = None
    low: float | None = None
    high: float | None = None
    error: float | None = field(init=False)
    status: str
    source: str
    counted: bool = False
    remark: str = ""

    def __post_init__(self) -> None:
        error = None if self.predicted is None else self.predicted / self.measured - 1
        object.__setattr__(self, "error", error)


@dataclass(frozen=True)
class Score:
    """How far predictions are from measurements, and whether both are in the same order.

    Attributes:
        rows, left_out: how many count, and how many do not.
        median_error: the median absolute error, relative to what was measured; None without rows.
        inside, bounded: how many rows were measured between both bounds of their prediction, of how many
            that have both.
        spearman, kendall: rank correlations (Kendall's tau-b); None for fewer than three rows, or where all
            predictions or all measurements are equal.
    """

    rows: int
    left_out: int
    median_error: float | None
    inside: int
    bounded: int
    spearman: float | None
    kendall: float | None

    @classmethod
    def of(cls, rows: Sequence[Compared]) -> Score:
        """The score of rows."""
        from scipy.stats import kendalltau, spearmanr

        counted = [row for row in rows if row.counted and row.predicted is not None]
        measured, predicted = [row.measured for row in counted], [row.predicted for row in counted]
        errors = [abs(row.error) for row in counted if row.error is not None]
        between = [
            row.low <= row.measured <= row.high
            for row in counted
            if row.low is not None and row.high is not None
        ]
        ranks: list[float | None] = [None, None]
        if len(counted) >= _LEAST_RANKED and min(len(set(measured)), len(set(predicted))) > 1:
            ranks = [float(rank(measured, predicted).statistic) for rank in (spearmanr, kendalltau)]
        middle = median(errors) if errors else None
        return cls(len(counted), len(rows) - len(counted), middle, sum(between), len(between), *ranks)


@dataclass(frozen=True)
class Comparison:
    """A file's measurements of one quantity beside their predictions.

    Attributes:
        name: the file's.
        board: the device's name.
        title, measures, runtime, source, notes: see ``edgefl.core.benchmarks.Benchmark``.
        quantity: "time" in seconds, or "energy" in joules.
        rows: in the file's order.
        score: of the rows that count.
    """

    name: str
    board: str
    title: str
    measures: str
    quantity: Quantity
    runtime: str
    source: str
    notes: str
    rows: tuple[Compared, ...]
    score: Score


@dataclass(frozen=True)
class Total:
    """The score of several files of one kind together.

    Attributes:
        measures: see ``Benchmark``.
        quantity: "time" or "energy".
        files: how many there are.
        boards, networks: how many boards have rows that count, and how many networks, counted by board.
        score: of all rows.
    """

    measures: str
    quantity: Quantity
    files: int
    boards: int
    networks: int
    score: Score


@dataclass(frozen=True)
class Validation:
    """All comparisons, and their totals by what was measured."""

    comparisons: tuple[Comparison, ...]
    totals: tuple[Total, ...]
