"""Replays of runs: what the same learning costs on several fleets, and where it costs least."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rich.console import Group, RenderableType

from edgefl.core.documents import INLINE
from edgefl.core.units import show_bytes, show_joules, show_seconds, show_share
from edgefl.report.averages import Compared, seeds_together
from edgefl.report.comparison import Comparison
from edgefl.report.estimates import over_seeds
from edgefl.report.reached import Reached
from edgefl.report.rows import MODELS
from edgefl.report.summary import Summary
from edgefl.report.tables import MISSING, NOT_REACHED, UNKNOWN, Cell, Fitted, Line

LEAST = "*"


class Source(NamedTuple):
    """Where the learning of a replay comes from.

    Attributes:
        run_dir: the directory of the run that trained.
        name, run_id, event_hash: as that run has them.
    """

    run_dir: str
    name: str
    run_id: str
    event_hash: str | None


@dataclass(frozen=True)
class Replayed:
    """A replay's figures.

    Attributes:
        fleet: what it was replayed on: the run's own fleet where no other was named.
        source: where its learning comes from.
        summary: the figures.
    """

    fleet: str
    source: Source
    summary: Summary = field(metadata={INLINE: Summary})


@dataclass(frozen=True)
class NotReplayed:
    """A run that cannot be replayed on a fleet.

    Attributes:
        run_dir: its directory.
        fleet: the fleet; None for its own.
        reason: why: the first merge that would differ.
    """

    run_dir: str
    fleet: str | None
    reason: str


@dataclass(frozen=True)
class Replays:
    """The document that ``edgefl replay --json`` prints: that of ``edgefl run --json``, and more.

    Attributes:
        group_dir: where they are saved; None where they are not.
        comparison: of all replays.
        runs: every replay.
        refused: the runs that cannot be replayed, by fleet.
    """

    group_dir: str | None
    comparison: Comparison = field(metadata={INLINE: Comparison})
    # In the place of the comparison's own.
    runs: Sequence[Replayed]
    refused: Sequence[NotReplayed]


class _Line(NamedTuple):
    """A line of the table: a run on a fleet, or several that differ in nothing but their seeds."""

    fleet: str
    compared: Compared


@dataclass(frozen=True)
class _Cost:
    """A figure of which less is better.

    Attributes:
        of: a run's; None if it is unknown, or was not reached.
        show: how it is printed.
        missing: a run's text in its place.
    """

    of: Callable[[Summary], float | None]
    show: Callable[[float], str]
    missing: Callable[[Summary], str] = lambda _: UNKNOWN

    def least_of(self, line: _Line) -> float | None:
        """What may be the least of a fleet: a mean over seeds only if all of them have it."""
        known = line.compared.known(self.of)
        return statistics.fmean(known) if len(known) == len(line.compared.runs) else None

    def text(self, line: _Line) -> str:
        """A line's, with its interval over seeds."""
        return line.compared.show(self.show, self.of, line.compared.all(self.missing))


def replays_table(runs: Sequence[Replayed], given: Sequence[str] = ()) -> RenderableType:
    """A row for each run, or each average over seeds, on each fleet; each fleet's cheapest is marked.

    Args:
        runs: the replays.
        given: the settings that all of them have in place of their runs' own, in words.
    """
    lines, costs = _lines(runs), dict(_costs([run.summary for run in runs]))
    least = {head: _least(lines, cost) for head, cost in costs.items()}
    averaged = [line.compared for line in lines if len(line.compared.runs) > 1]
    columns: dict[str, Callable[[_Line], Cell]] = {
        "fleet": lambda line: line.fleet,
        "run": lambda line: line.compared.name,
    }
    if averaged:
        columns["seeds"] = lambda line: str(len(line.compared.runs))
    columns["accuracy"] = _accuracy
    for head, cost in costs.items():
        columns[head] = _marked(cost, least[head])
    # One run a fleet is the cheapest whatever it costs.
    notes = [f"all with {', '.join(given)}"] if given else []
    notes += [f"{LEAST} the least on its fleet"] if any(least.values()) else []
    notes += [over_seeds([len(one.runs) for one in averaged])] if averaged else []
    table = Fitted(lines, columns, left=("run",), wraps=("fleet", "run"), names=2)
    return Group(table, *(Line(note, "dim") for note in notes))


def _lines(runs: Sequence[Replayed]) -> list[_Line]:
    """Fleet by fleet; the runs by the names and directories of those that trained."""
    fleets: dict[str, list[Summary]] = {}
    for run in runs:
        trained = replace(run.summary, name=run.source.name, run_dir=run.source.run_dir)
        fleets.setdefault(run.fleet, []).append(trained)
    return [_Line(fleet, one) for fleet, found in fleets.items() for one in seeds_together(found)]


def _marked(cost: _Cost, least: Mapping[str, float]) -> Callable[[_Line], Cell]:
    def cell(line: _Line) -> Cell:
        value = cost.least_of(line)
        mark = LEAST if value is not None and least.get(line.fleet) == value else " "
        return f"{cost.text(line)} {mark}" if least and line.compared.known(cost.of) else cost.text(line)

    return cell


def _least(lines: Sequence[_Line], cost: _Cost) -> dict[str, float]:
    """By fleet, the least of a figure, where there is more than one line."""
    fleets: dict[str, list[float | None]] = {}
    for line in lines:
        fleets.setdefault(line.fleet, []).append(cost.least_of(line))
    known = {fleet: [one for one in values if one is not None] for fleet, values in fleets.items()}
    return {fleet: min(values) for fleet, values in known.items() if values and len(fleets[fleet]) > 1}


def _costs(runs: Sequence[Summary]) -> Iterator[tuple[str, _Cost]]:
    """The columns."""
    yield "virtual time", _Cost(lambda run: run.virtual_s, show_seconds)
    yield "bytes", _Cost(lambda run: run.down_bytes + run.up_bytes, show_bytes)
    yield "energy", _Cost(lambda run: run.energy.joules, show_joules)
    targets = {run.target.accuracy for run in runs if run.target}
    if not targets:
        return
    to = f"to {show_share(targets.pop(), 1)}".replace(".0%", "%") if len(targets) == 1 else "to target"
    yield f"{to}: time", _Cost(_until(lambda found: found.t_s), show_seconds, _not_reached)
    yield f"{to}: bytes", _Cost(_until(lambda found: found.bytes), show_bytes, _not_reached)
    yield f"{to}: energy", _Cost(_until(lambda found: found.energy.joules), show_joules, _not_reached)


def _reached(run: Summary) -> Reached | None:
    """Of the first model that was evaluated."""
    if run.target is None or (model := _model(run)) is None:
        return None
    return {"global": run.target.global_, "personal": run.target.personal}[model]


def _until(figure: Callable[[Reached], float | None]) -> Callable[[Summary], float | None]:
    def of(run: Summary) -> float | None:
        found = _reached(run)
        return None if found is None else figure(found)

    return of


def _not_reached(run: Summary) -> str:
    if run.target is None or _model(run) is None:
        return MISSING
    return NOT_REACHED if _reached(run) is None else UNKNOWN


def _model(run: Summary) -> str | None:
    return next((model for model in MODELS if model in run.accuracy), None)


def _accuracy(line: _Line) -> str:
    """Of the first model that was evaluated, which is said of personal models."""
    one = line.compared
    model = _model(one.first)
    if model is None:
        return MISSING
    text = one.show(_percent, lambda run: run.accuracy[model].value if model in run.accuracy else None)
    return text if model == MODELS[0] else f"{text} {model}"


def _percent(share: float) -> str:
    return show_share(share, 1)
