"""Files of measurements: read, and the work of their rows traced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from edgefl.compute.steps import forward_pass, training_step
from edgefl.core import catalogue
from edgefl.core.benchmarks import (
    FORWARD,
    INFERENCE,
    LAST_LAYER,
    QUANTITIES,
    Benchmark,
    Network,
    Quantity,
    Row,
)
from edgefl.core.cost import Work
from edgefl.core.devices import Board
from edgefl.core.errors import UnknownNameError, UserError, in_one_line, nearest
from edgefl.core.sourced import sourced
from edgefl.core.validation import validate
from edgefl.core.yamls import Document
from edgefl.planning.fleets import device
from edgefl.planning.networks import maker

KIND = "validation"

Known: TypeAlias = dict[tuple[str, ...], Work]


class Source(NamedTuple):
    """A file that was read, and its board."""

    name: str
    benchmark: Benchmark
    document: Document
    board: Board


@dataclass(frozen=True, eq=False)
class Sample:
    """One measured time or energy, in seconds or joules, and the work that was measured."""

    file: Benchmark
    row: Row
    network: Network
    work: Work
    quantity: Quantity
    measured: float

    @property
    def inference(self) -> bool:
        """Whether the runtime for inference is predicted."""
        return self.file.measures == INFERENCE

    @property
    def fitted(self) -> frozenset[str]:
        """The board's numbers that were fitted to it."""
        return self.row.fitted_for(self.quantity)


def read(name: str) -> Source:
    """A file by its path or its name.

    Raises:
        UserError: no file has the name, or the file or its board's is wrong.
    """
    path = Path(name)
    is_path = path.suffix == ".yaml" or len(path.parts) > 1
    try:
        document = Document.read(path if is_path else catalogue.find(KIND, name).path)
    except UnknownNameError as error:
        if name in catalogue.entries("devices"):
            error.hint = f"for all measurements on this device: --device {name}"
        raise
    benchmark = validate(Benchmark, document.data, document)
    board = device(benchmark.board, where=str(document.place(["board"])))
    numbers = {number for number, known in sourced(board) if known.value}
    for place, row in enumerate(benchmark.rows):
        for number in row.fitted:
            if number not in numbers:
                raise UserError(
                    f"{benchmark.board} has no known number {number!r}",
                    where=str(document.place(["rows", place, "fitted"])),
                    hint=nearest(number, numbers),
                )
    return Source(path.stem if is_path else name, benchmark, document, board)


def samples(source: Source, known: Known) -> Iterator[Sample]:
    """The samples of a file's rows.

    Args:
        source: the file.
        known: the work that was traced before, to which this is added.

    Raises:
        UserError: a network is unknown, or cannot be traced.
    """
    benchmark = source.benchmark
    for place, row in enumerate(benchmark.rows):
        network, batch = benchmark.network(row), benchmark.batch_of(row)
        key = (repr(network), str(batch), benchmark.measures, repr(benchmark.optimizer))
        if key not in known:
            known[key] = _traced(source, place, network, batch)
        for quantity, measured in zip(QUANTITIES, (row.time, row.energy), strict=True):
            if measured is not None:
                yield Sample(benchmark, row, network, known[key], quantity, measured)


def _traced(source: Source, place: int, network: Network, batch: int) -> Work:
    """The work of a row's network.

    Raises:
        UserError: there is no such network, or it does not run on this image; placed at the row.
    """
    measures, make = source.benchmark.measures, maker(network, source.document, place)
    where = str(source.document.place(["rows", place]))
    try:
        if measures in {FORWARD, INFERENCE}:
            return forward_pass(make, batch, network.image, fused=measures == INFERENCE)
        last = measures == LAST_LAYER
        return training_step(make, batch, network.image, source.benchmark.optimizer, last_layer=last)
    except UserError as error:
        error.where = where
        raise
    except (RuntimeError, ValueError, NotImplementedError) as error:
        size = "x".join(map(str, network.image))
        what = f"{network.name} cannot be traced on {size}: {in_one_line(error)}"
        raise UserError(what, where=where) from error
