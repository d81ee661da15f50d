"""Predicted times and energies beside those measured on boards: errors, and rank correlations.

No row is held against numbers that were fitted to its network. Where a file says which of its board's numbers
were fitted to which rows (``fitted``), all rows of such a network on that board are predicted with these
numbers fitted again, to the other networks' rows that they were fitted to: leave one network out. Where a
number was fitted to one network alone, that network's rows are shown and not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from edgefl.core import catalogue
from edgefl.core.benchmarks import QUANTITIES, Network, Quantity
from edgefl.core.devices import Board
from edgefl.core.errors import UserError
from edgefl.core.notes import note
from edgefl.core.yamls import text_of
from edgefl.planning.benchmarks import KIND, Progress, Source, Works, read
from edgefl.planning.predictions import Predictor, Sample, refitted
from edgefl.planning.scores import ALL, Compared, Comparison, Score, Total, Validation


def validation(
    names: Sequence[str] = (), boards: Sequence[str] = (), progress: Progress | None = None
) -> Validation:
    """Measurements beside predictions.

    Args:
        names: names or paths of files; by default all that the catalogue has, but for wrong ones and those
            whose board cannot be priced, which notes name.
        boards: only files about these devices; all by default.
        progress: is called with the network that comes next, how many rows are done, and of how many.

    Raises:
        UserError: a name is unknown, a file is wrong, or a board cannot be priced.
    """
    for board in boards:
        catalogue.find("devices", board, where="--device")
    strict, works = bool(names), Works(progress)
    found = _each(read, names or catalogue.entries(KIND), strict=strict)
    sources = [source for source in found if not boards or source.benchmark.board in boards]
    if not sources:
        raise UserError(
            f"there are no measurements on {', '.join(boards)}" if boards else "there are no measurements",
            where="--device" if boards else "",
            hint="`edgefl list validation` lists all; docs/validation.md says how to add your own",
        )
    others = list(_behind(sources))
    works.total = sum(len(source.benchmark.rows) for source in (*sources, *others))
    traced = _each(lambda source: _Traced(source, works.samples(source)), sources, strict=strict)
    behind = _each(lambda source: _Traced(source, works.samples(source)), others, strict=False)
    judges = _judges([*traced, *behind])
    compared = _each(
        lambda one: list(_comparisons(one, judges[one.source.benchmark.board])), traced, strict=strict
    )
    comparisons = tuple(comparison for group in compared for comparison in group)
    return Validation(comparisons, tuple(_totals(comparisons)))


def _behind(chosen: Sequence[Source]) -> Iterator[Source]:
    """The catalogue's other files that numbers of the chosen ones' boards were fitted to."""
    boards = {source.benchmark.board for source in chosen}
    known = {source.document.file for source in chosen}
    for name, entry in catalogue.entries(KIND).items():
        # Parsing a file takes a tenth of a second.
        if str(entry.path) in known or not any(board in text_of(entry.path) for board in boards):
            continue
        try:
            source = read(name)
        except UserError:  # asked for by name or with all others, it is told
            continue
        if source.benchmark.board in boards and any(row.fitted for row in source.benchmark.rows):
            yield source


def _judges(traced: Sequence[_Traced]) -> dict[str, _Judge]:
    """One for each board, with all samples on it."""
    found: dict[str, _Judge] = {}
    for one in traced:
        board = one.source.benchmark.board
        found.setdefault(board, _Judge(board, one.source.board, [])).samples.extend(one.samples)
    return found


Given = TypeVar("Given")
Made = TypeVar("Made")


def _each(make: Callable[[Given], Made], given: Iterable[Given], *, strict: bool) -> list[Made]:
    """What is made of each; where not ``strict``, a note names what a user's error leaves out."""
    made = []
    for one in given:
        try:
            made.append(make(one))
        except UserError as error:
            if strict:
                raise
            note(f"{getattr(one, 'name', one)} is left out: {error.what}; {error.where}".rstrip("; "))
    return made


class _Traced(NamedTuple):
    """A file with the samples of its rows."""

    source: Source
    samples: list[Sample]

    @property
    def name(self) -> str:
        return self.source.name


class _Verdict(NamedTuple):
    """What is predicted for a sample; see ``Compared``."""

    predicted: float | None = None
    low: float | None = None
    high: float | None = None
    counted: bool = False
    remark: str = ""


@dataclass
class _Judge:
    """Predicts the samples of a board, each with numbers that were not fitted to its network."""

    name: str
    board: Board
    samples: list[Sample]
    _predictors: dict[str, Predictor] = field(default_factory=dict)

    def verdict(self, sample: Sample) -> _Verdict:
        """What is predicted for a sample, and whether it counts."""
        refusal = self.board.refusal(sample.work, sample.dtype)
        if refusal:
            return _Verdict(remark=refusal)
        numbers = self._fitted_to(sample)
        others = [one for one in self.samples if one.network != sample.network and one.fitted & numbers]
        counted = numbers <= frozenset().union(*(one.fitted for one in others))
        again = numbers if counted else frozenset()
        predictor = self._predictor(again, others, sample.network)
        predicted, (low, high) = (
            predictor.predict(sample),
            (None, None) if again else predictor.between(sample),
        )
        if predicted is None:
            bounded = low is not None or high is not None
            return _Verdict(
                None, low, high, remark="a power is only bounded" if bounded else "a power is unknown"
            )
        if not counted:
            return _Verdict(
                predicted, low, high, remark=f"not counted: {', '.join(sorted(numbers))} fitted to it"
            )
        return _Verdict(predicted, low, high, counted=True, remark="refitted" if again else "")

    def _fitted_to(self, sample: Sample) -> frozenset[str]:
        """The numbers behind a sample's prediction that were fitted to its network."""
        same = (one for one in self.samples if one.network == sample.network)
        fitted = (one.fitted for one in same if sample.quantity in {one.quantity, "energy"})
        return frozenset(
            number
            for number in frozenset().union(*fitted)
            if number.startswith("power.")
            or self.board.reads(number, sample.dtype, inference=sample.inference)
        )

    def _predictor(self, numbers: frozenset[str], others: Sequence[Sample], network: Network) -> Predictor:
        """A predictor whose numbers are fitted to the others' samples; the shipped ones where none are."""
        key = repr((network, sorted(numbers))) if numbers else ""
        if key not in self._predictors:
            board = refitted(self.name, self.board, sorted(numbers), others) if numbers else self.board
            self._predictors[key] = Predictor(self.name, board)
        return self._predictors[key]


def _comparisons(traced: _Traced, judge: _Judge) -> Iterator[Comparison]:
    """A file's comparison of times, and the one of energies."""
    source, benchmark = traced.source, traced.source.benchmark
    for quantity in QUANTITIES:
        rows = []
        for sample in traced.samples:
            if sample.quantity == quantity:
                row = benchmark.rows[sample.row]
                found = judge.verdict(sample)
                rows.append(
                    Compared(
                        row.label or row.network,
                        benchmark.batch_of(row),
                        sample.measured,
                        found.predicted,
                        found.low,
                        found.high,
                        row.status or benchmark.status,
                        row.source or benchmark.source,
                        found.counted,
                        found.remark,
                    )
                )
        if rows:
            yield Comparison(
                source.name,
                benchmark.board,
                benchmark.title,
                benchmark.measures,
                quantity,
                benchmark.runtime,
                benchmark.source,
                benchmark.notes,
                tuple(rows),
            )


def _totals(comparisons: Sequence[Comparison]) -> Iterator[Total]:
    """One for each kind of measurement, and one for all times."""
    groups: dict[tuple[str, Quantity], list[Comparison]] = {}
    for one in comparisons:
        groups.setdefault((one.measures, one.quantity), []).append(one)
    if len({measures for measures, quantity in groups if quantity == "time"}) > 1:
        groups[ALL, "time"] = [one for one in comparisons if one.quantity == "time"]
    for (measures, quantity), group in groups.items():
        rows = [row for one in group for row in one.rows]
        networks = {(one.board, row.network) for one in group for row in one.rows if row.counted}
        boards = len({board for board, _ in networks})
        yield Total(measures, quantity, len(group), boards, len(networks), Score.of(rows))
