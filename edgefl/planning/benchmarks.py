"""Times and energies measured on a board, a file in ``validation/``, and predictions beside them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, SerializeAsAny, model_validator

from edgefl.core import catalogue, units
from edgefl.core.components import NameOf, OfKind
from edgefl.core.devices import Board, DType
from edgefl.core.errors import UnknownNameError, UserError, nearest
from edgefl.core.optimizers import Optimizer
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.params import Count, Strict
from edgefl.core.sourced import sourced
from edgefl.core.validation import validate
from edgefl.core.yamls import Document
from edgefl.planning.fleets import device

KIND = "validation"
LAST_LAYER, FORWARD, INFERENCE = "last-layer step", "forward pass", "inference"
# The total of all times.
ALL = "all"
# A power figure says nothing about times.
POWER = "power."
# Of fewer rows, an order says nothing.
_LEAST_RANKED = 3
# The default of what a row has from its file.
_IN_FILE: Any = None

Text = Annotated[str, Field(min_length=1)]
Status = Literal["measured", "derived"]
Library = Literal["torchvision", "edgefl", "published"]
Quantity = Literal["time", "energy"]
QUANTITIES: tuple[Quantity, ...] = ("time", "energy")


class BenchmarkRow(Strict):
    """One measurement; what is left out is as in the file.

    Attributes:
        network: its name in the library.
        settings: arguments of its definition, such as ``{width_mult: 0.5}``.
        label: its name at the source, for the tables; by default the network's.
        library, batch, image, classes, status, source: see ``Benchmark``.
        time: of one step, or of one batch.
        energy: of the same.
        fitted: the numbers in the board's file that were fitted to this row.
    """

    network: Text
    settings: dict[str, Any] = Field(default_factory=dict)
    label: Text | None = None
    library: Library = _IN_FILE
    batch: Count = _IN_FILE
    image: tuple[Count, Count, Count] = _IN_FILE
    classes: Count = _IN_FILE
    time: Annotated[units.Seconds, Field(gt=0)] | None = None
    energy: Annotated[units.Joules, Field(gt=0)] | None = None
    status: Status = _IN_FILE
    source: Text = _IN_FILE
    fitted: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _measured(self) -> "BenchmarkRow":
        if self.time is None and self.energy is None:
            raise ValueError("give a time, an energy, or both")
        return self

    @property
    def key(self) -> str:
        """What rows of one network at one size have in common."""
        return repr((self.library, self.network, self.settings, self.image, self.classes))

    def fitted_for(self, quantity: Quantity) -> frozenset[str]:
        """The fitted numbers that the prediction of a quantity depends on."""
        return frozenset(name for name in self.fitted if quantity == "energy" or not name.startswith(POWER))


class Benchmark(Strict):
    """Measurements of one kind on one board.

    Attributes:
        title: what they are, in a line.
        board: the device that they are held against.
        measures: a step that trains all layers, a step that trains the last one and freezes the others, a
            forward pass in the runtime of training, or inference in one of its own.
        source: where the figures were read.
        status: whether the source gives these very figures, or they are arithmetic on its figures.
        runtime: the software that was measured, for the tables.
        notes: how what was measured differs from what is predicted.
        dtype: the number type of the prediction.
        library: where the networks are defined.
        batch: samples a step.
        image: one sample's (channels, height, width).
        classes: the classifier's outputs.
        optimizer: of training steps; its state and updates are part of the work.
        energy_of: whether energies are the whole device's, or above its idle power.
        rows: the measurements.
    """

    title: Text
    board: Annotated[Text, NameOf("devices")]
    measures: Literal["training step", "last-layer step", "forward pass", "inference"]
    source: Text
    status: Status
    runtime: Text
    notes: str = ""
    dtype: DType = "fp32"
    library: Library = "torchvision"
    batch: Count | None = None
    image: tuple[Count, Count, Count] | None = None
    classes: Count | None = None
    optimizer: Annotated[SerializeAsAny[Optimizer], OfKind("optimizers", "sgd")] = Sgd(lr=0.01)
    energy_of: Literal["whole device", "above idle"] | None = None
    rows: Annotated[tuple[BenchmarkRow, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _completed(self) -> "Benchmark":
        """With the file's settings in its rows."""
        rows = []
        for number, row in enumerate(self.rows, 1):
            left_out = {"library", "batch", "image", "classes", "status", "source"} - row.model_fields_set
            found = {key: getattr(self, key) for key in left_out}
            if lacks := [key for key in ("batch", "image", "classes") if found.get(key, key) is None]:
                raise ValueError(f"row {number} has no {lacks[0]!r}: give it there, or for the whole file")
            rows.append(row.model_copy(update=found))
        if self.energy_of is None and any(row.energy is not None for row in rows):
            raise ValueError("rows have an energy: 'energy_of' must say whose it is")
        return self.model_copy(update={"rows": tuple(rows)})


class BenchmarkSource(NamedTuple):
    """A file that was read, and its board."""

    name: str
    benchmark: Benchmark
    document: Document
    board: Board


def read(name: str) -> BenchmarkSource:
    """A file by its path or its name; a ``UserError`` if there is none, or it or its board's is wrong."""
    path = Path(name)
    is_path = path.suffix == ".yaml" or len(path.parts) > 1
    try:
        document = Document.read(path if is_path else catalogue.find(KIND, name).path)
    except UnknownNameError as error:
        if name in catalogue.entries("devices"):
            error.hint = f"for all measurements on this device: --device {name}"
        raise
    benchmark = validate(Benchmark, document.data, document)
    board = device(benchmark.board, where=document.place(["board"]))
    numbers = {number for number, known in sourced(board) if known.value}
    for place, row in enumerate(benchmark.rows):
        for number in row.fitted:
            if number not in numbers:
                raise UserError(
                    f"{benchmark.board} has no known number {number!r}",
                    where=document.place(["rows", place, "fitted"]),
                    hint=nearest(number, numbers),
                )
    return BenchmarkSource(path.stem if is_path else name, benchmark, document, board)


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One configuration's measurement beside its prediction, in seconds or joules.

    Attributes:
        predicted: None where a number is unknown, or the board refuses the work.
        low, high: the least and the most that the board's numbers allow, where they are intervals; None for
            no bound, and for a prediction with numbers that were fitted again.
        error: predicted over measured, less 1.
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
    def of(cls, rows: Sequence[Compared]) -> "Score":
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
class BenchmarkComparison:
    """A file's measurements of one quantity beside their predictions; see ``Benchmark``."""

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
        boards, networks: how many boards have rows that count, and how many networks, counted by board.
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

    comparisons: tuple[BenchmarkComparison, ...]
    totals: tuple[Total, ...]
