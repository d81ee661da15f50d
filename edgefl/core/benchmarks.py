"""Times and energies measured on a board: a file in ``validation/``, which predictions are held against."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, SerializeAsAny, model_validator

from edgefl.core import units
from edgefl.core.devices import DType
from edgefl.core.named import ByName
from edgefl.core.optimizers import Optimizer
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.params import NameOf, Strict

Count = Annotated[int, Field(gt=0)]
Text = Annotated[str, Field(min_length=1)]
Status = Literal["measured", "derived"]
Library = Literal["torchvision", "edgefl", "published"]
Quantity = Literal["time", "energy"]
QUANTITIES: tuple[Quantity, ...] = ("time", "energy")

LAST_LAYER = "last-layer step"
FORWARD = "forward pass"
INFERENCE = "inference"

# A power figure says nothing about times.
POWER = "power."


class Network(NamedTuple):
    """A network at one size.

    Attributes:
        library: where it is defined.
        name: its name there.
        settings: the arguments of its definition, as pairs.
        image: one sample's (channels, height, width).
        classes: the classifier's outputs.
    """

    library: str
    name: str
    settings: tuple[tuple[str, Any], ...]
    image: tuple[int, int, int]
    classes: int


class Row(Strict):
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
    library: Library | None = None
    batch: Count | None = None
    image: tuple[Count, Count, Count] | None = None
    classes: Count | None = None
    time: Annotated[units.Seconds, Field(gt=0)] | None = None
    energy: Annotated[units.Joules, Field(gt=0)] | None = None
    status: Status | None = None
    source: Text | None = None
    fitted: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _measured(self) -> Row:
        if self.time is None and self.energy is None:
            raise ValueError("give a time, an energy, or both")
        return self

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
    optimizer: Annotated[SerializeAsAny[Optimizer], ByName("optimizers", "sgd")] = Sgd(lr=0.01)
    energy_of: Literal["whole device", "above idle"] | None = None
    rows: Annotated[tuple[Row, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _every_row_is_complete(self) -> Benchmark:
        for number, row in enumerate(self.rows, 1):
            for key in ("batch", "image", "classes"):
                if getattr(row, key) is None and getattr(self, key) is None:
                    raise ValueError(f"row {number} has no {key!r}: give it there, or for the whole file")
        if self.energy_of is None and any(row.energy is not None for row in self.rows):
            raise ValueError("rows have an energy: 'energy_of' must say whose it is")
        return self

    def network(self, row: Row) -> Network:
        """A row's network."""
        settings = tuple(row.settings.items())
        image, classes = row.image or self.image, row.classes or self.classes
        if image is None or classes is None:
            raise AssertionError("every row was checked to be complete")
        return Network(row.library or self.library, row.network, settings, image, classes)

    def batch_of(self, row: Row) -> int:
        """A row's batch size."""
        size = row.batch or self.batch
        if size is None:
            raise AssertionError("every row was checked to be complete")
        return size
