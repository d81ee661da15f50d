"""Files of measurements: read, and their work traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from edgefl.compute.steps import forward_pass, training_step
from edgefl.core import catalogue
from edgefl.core.benchmarks import FORWARD, INFERENCE, LAST_LAYER, QUANTITIES, Benchmark
from edgefl.core.cost import Work
from edgefl.core.devices import Board
from edgefl.core.errors import UnknownNameError, UserError, in_one_line, nearest
from edgefl.core.sourced import sourced
from edgefl.core.validation import validate
from edgefl.core.yamls import Document
from edgefl.planning.fleets import device
from edgefl.planning.networks import maker
from edgefl.planning.predictions import Sample

KIND = "validation"

Progress = Callable[[str, int, int], None]


class Source(NamedTuple):
    """A file that was read, and its board."""

    name: str
    benchmark: Benchmark
    document: Document
    board: Board


def read(name: str) -> Source:
    """A file by its path or its name.

    Raises:
        UserError: no file has the name, or the file or its board's is wrong.
    """
    path = Path(name)
    is_path = path.suffix == ".yaml" or len(path.parts) > 1
    document = Document.read(path if is_path else _found(name))
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


def _found(name: str) -> Path:
    """The file of a name.

    Raises:
        UnknownNameError: no file has it; of a device, the option is suggested that takes its files.
    """
    try:
        return catalogue.find(KIND, name).path
    except UnknownNameError as error:
        if name in catalogue.entries("devices"):
            error.hint = f"for all measurements on this device: --device {name}"
        raise


@dataclass
class Works:
    """Traces the work of rows, each kind of work once."""

    progress: Progress | None
    total: int = 0
    _done: int = 0
    _known: dict[tuple[str, ...], Work] = field(default_factory=dict)

    def samples(self, source: Source) -> list[Sample]:
        """The samples of a file's rows."""
        return [
            sample for place in range(len(source.benchmark.rows)) for sample in self._samples(source, place)
        ]

    def _samples(self, source: Source, place: int) -> Iterator[Sample]:
        benchmark, row = source.benchmark, source.benchmark.rows[place]
        if self.progress:
            self.progress(f"{source.name}: {row.label or row.network}", self._done, self.total)
        self._done += 1
        work = self._work(source, place)
        for quantity, measured in zip(QUANTITIES, (row.time, row.energy), strict=True):
            if measured is not None:
                yield Sample(
                    network=benchmark.network(row),
                    row=place,
                    work=work,
                    dtype=benchmark.dtype,
                    inference=benchmark.measures == INFERENCE,
                    quantity=quantity,
                    measured=measured,
                    above_idle=benchmark.energy_of == "above idle",
                    fitted=row.fitted_for(quantity),
                )

    def _work(self, source: Source, place: int) -> Work:
        benchmark, row = source.benchmark, source.benchmark.rows[place]
        network, batch = benchmark.network(row), benchmark.batch_of(row)
        key = (repr(network), str(batch), benchmark.measures, repr(benchmark.optimizer))
        if key not in self._known:
            make = maker(network, source.document, place)
            with _placed(source, place):
                if benchmark.measures in {FORWARD, INFERENCE}:
                    fused = benchmark.measures == INFERENCE
                    self._known[key] = forward_pass(make, batch, network.image, fused=fused)
                else:
                    last = benchmark.measures == LAST_LAYER
                    self._known[key] = training_step(
                        make, batch, network.image, benchmark.optimizer, last_layer=last
                    )
        return self._known[key]


@contextmanager
def _placed(source: Source, place: int) -> Iterator[None]:
    """Places errors of a network's own code, or of torch in it, at the row.

    Raises:
        UserError: what the block raised, or that the network does not run on this image.
    """
    where = str(source.document.place(["rows", place]))
    try:
        yield
    except UserError as error:
        error.where = where
        raise
    except (RuntimeError, ValueError, NotImplementedError) as error:
        network = source.benchmark.network(source.benchmark.rows[place])
        size = "x".join(map(str, network.image))
        what = f"{network.name} cannot be traced on {size}: {in_one_line(error)}"
        raise UserError(what, where=where) from error
