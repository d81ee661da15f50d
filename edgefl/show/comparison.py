"""Runs side by side, those that differ in nothing but their seeds as their average."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich.console import Group, RenderableType

from edgefl.analysis.estimates import over_seeds
from edgefl.analysis.sharing import SharedTime, Transfer
from edgefl.core.documents import OPTIONAL
from edgefl.core.errors import UserError, closest
from edgefl.core.nodes import short
from edgefl.core.units import show_bytes, show_seconds, show_share
from edgefl.planning.sensitivity import Sensitivity
from edgefl.show.averages import Average, Compared, Row, averages, seeds_together
from edgefl.show.batteries import show_charge, show_days
from edgefl.show.differing import differing
from edgefl.show.first_table import ABREAST, first_table, head, main_rows
from edgefl.show.intervals import LOWER_BOUND, between, texts
from edgefl.show.pairs import Pair, PairTexts, one_line, pair_texts, pairs
from edgefl.show.published import Beside, of_runs, tables
from edgefl.show.rows import IDLE, carbon_rows, energy_rows, rows, server_rows
from edgefl.show.settings import differences, setting_text
from edgefl.show.summary import DryRun, Summary
from edgefl.show.table import MISSING, UNKNOWN, Cell, Line, Table, apart
from edgefl.show.targets import emission_rows
from edgefl.show.texts import unfinished
from edgefl.show.turnout import mean_turnout
from edgefl.show.usage_rows import stopped, usage_rows

# Settings that a line names.
_SETTINGS = 4


@dataclass(frozen=True)
class Comparison:
    """The document that ``edgefl compare --json`` prints.

    Attributes:
        runs: every run.
        averages: of runs that differ in nothing but their seeds.
        pairs: what one of those is above another, seed by seed.
        published: what papers report of such runs, beside these.
        differences: the settings in which the runs differ, by dotted key: the runs' values in order.
        sensitivity: what their figures depend on, if requested.
    """

    runs: Sequence[Summary]
    averages: Sequence[Average] = field(init=False)
    pairs: Sequence[Pair] = field(init=False)
    published: Sequence[Beside] = field(init=False)
    differences: Mapping[str, Sequence[Any]] = field(init=False)
    sensitivity: Sensitivity | None = field(default=None, metadata=OPTIONAL)

    def __post_init__(self) -> None:
        compared = seeds_together(self.runs)
        object.__setattr__(self, "averages", averages(compared))
        object.__setattr__(self, "pairs", pairs(compared))
        object.__setattr__(self, "published", of_runs(compared))
        object.__setattr__(self, "differences", differences([run.settings or {} for run in self.runs]))


def comparison(
    runs: Sequence[Summary],
    *,
    every: bool = False,
    reasons: bool = True,
    names: str = "",
    one_unit: bool = False,
) -> RenderableType:
    """The figures by which runs are judged, and who is ahead; or every figure with its bounds.

    Args:
        runs: the runs.
        every: whether every figure is shown: a column for each run or average, a row for each figure.
        reasons: whether to say why a run failed, unless that was said before.
        names: of the figures that are shown, as ``chosen`` takes them.
        one_unit: as of ``intervals.texts``.

    Raises:
        UserError: a name is no figure's.
    """
    compared = seeds_together(runs)
    ends = [Line(f"scale: {words}", "dim") for words in scales(runs)]
    ends += [_unfinished(run, reasons) for run in runs if run.status != "done"]
    ends += [Line(text, "yellow") for text in few(compared)]
    found = chosen(compared, names) if names else []
    papers, orders = tables([] if names else of_runs(compared), one_unit=one_unit)
    if not every:
        table, notes = first_table(compared, found, one_unit=one_unit)
        return Group(*apart([table, *papers]), *notes, *_in_a_line(compared), *orders, *ends)
    against = pair_texts(compared, {row.key for row in found}, one_unit=one_unit)
    table = _table(compared, found or [*_differences(compared), *rows(compared)], one_unit=one_unit)
    made = [table, *_pair_tables(against), *papers]
    return Group(*apart(made), *signs(compared, against), *orders, *ends)


def chosen(compared: Sequence[Compared], names: str) -> list[Row]:
    """Rows by their labels or keys, with commas between them, of which a label may have some of its own.

    Raises:
        UserError: a name is no row's.
    """
    every = [*main_rows(compared), *rows(compared), *_differences(compared)]
    known: dict[str, Row] = {}
    for row in every:
        for key in filter(None, (row.label.strip(), row.key)):
            known.setdefault(key.casefold(), row)
    found, pieces = [], names.split(",")
    while pieces:
        starts = [",".join(pieces[:end]).strip().casefold() for end in range(len(pieces), 0, -1)]
        name = next((start for start in starts if start in known), None)
        if name is None:
            near = closest(starts[-1], known) or closest(starts[0], known)
            labels = "; ".join(dict.fromkeys(row.label.strip() for row in every))
            hint = f"did you mean {known[near].label.strip()!r}? " if near else ""
            what = f"no row is called {short(pieces[0].strip())!r}"
            raise UserError(what, where="--rows", hint=f"{hint}known: {labels}")
        found.append(known[name])
        del pieces[: name.count(",") + 1]
    return found


def scales(runs: Sequence[Summary]) -> list[str]:
    """The scales of their scenarios at which runs were made, in one line; none where none was chosen."""
    found = dict.fromkeys(run.scale for run in runs)
    return [", ".join(name or "as the scenario stands" for name in found)] if any(found) else []


def few(compared: Iterable[Compared]) -> list[str]:
    """A line for each run or average in whose rounds few of those asked for took part."""
    names: dict[str, list[str]] = {}
    for one in compared:
        found = [run.turnout for run in one.runs if run.turnout]
        if found and (line := mean_turnout(found).said()):
            names.setdefault(line, []).append(one_line(one))
    return [f"{', '.join(dict.fromkeys(found))}: {line}" for line, found in names.items()]


def _pair_tables(against: PairTexts) -> Iterator[Table]:
    """A column for each pair of groups."""
    if against.labels:
        # What is said of a figure stands below it, which keeps columns narrow.
        lines = [[text.replace(" (", "\n(") for text in texts] for texts in against.texts]
        cells = [[label, *texts] for label, texts in zip(against.labels, lines, strict=True)]
        yield Table(["", *against.heads], cells)


def _table(compared: Sequence[Compared], found: Sequence[Row], *, one_unit: bool = False) -> Table:
    """A column for each run."""
    cells = [texts(row, compared, bounds=True, one_unit=one_unit) for row in found]
    return Table(["", *map(head, compared)], cells)


def signs(compared: Sequence[Compared], against: PairTexts) -> Iterator[Line]:
    """What the signs in figures and in their differences mean, and what emissions count."""
    runs = [run for one in compared for run in one.runs]
    yield from _lower_bounds(runs)
    scores = [score for one in compared for score in one.first.accuracy.values()]
    if len(runs) > len(compared):
        yield Line(over_seeds([len(one.runs) for one in compared]), "dim")
    elif any(score.deviation_over_clients is not None for score in scores):
        yield Line("± standard deviation over clients, of all that were evaluated (n)", "dim")
    for text in against.notes:
        yield Line(text, "dim")
    if any(run.target for run in runs):
        yield Line("to a target: until the first evaluation at or above it", "dim")
    yield from _boundaries(runs)


def _boundaries(runs: Sequence[Summary]) -> Iterator[Line]:
    """What the runs' emissions count, each line once."""
    for line in dict.fromkeys(run.carbon.boundary for run in runs if run.carbon):
        yield Line(line, "dim")


def _lower_bounds(runs: Iterable[Summary]) -> Iterator[Line]:
    """What the sign before times means, where some have it."""
    if any(run.virtual_s_between is not None and run.virtual_s_between.high is None for run in runs):
        yield Line(LOWER_BOUND, "dim")


def _unfinished(run: Summary, reasons: bool) -> Line:  # noqa: FBT001 - as ``comparison`` has it
    words = unfinished(run.name, run.status, run.reason if reasons else "")
    return Line(words, "red" if run.status == "failed" else "yellow")


def _differences(compared: Sequence[Compared]) -> Iterator[Row]:
    """The settings in which the runs differ, unless their names say it, or only their components' do."""
    names = [one.name for one in compared]
    for key, values in differing(compared).items():
        texts = [setting_text(value, key) for value in values]
        if texts != names:
            # By place, since runs may be equal.
            by_run = {id(one): short(text) for one, text in zip(compared, texts, strict=True)}
            yield Row(key, lambda one, by_run=by_run: by_run[id(one)])  # type: ignore[misc]


def _in_a_line(compared: Sequence[Compared]) -> Iterator[Line]:
    """The settings in which runs differ; of few runs with their values."""
    told = [
        f"{row.label} ({', '.join(map(row.cell, compared))})" if len(compared) <= ABREAST else row.label
        for row in _differences(compared)
        if row.label != "seed"
    ]
    if told:
        more = f" and {len(told) - _SETTINGS} more" if len(told) > _SETTINGS else ""
        yield Line(f"they differ in {', '.join(told[:_SETTINGS])}{more}", "dim")


def dry_runs(runs: Sequence[DryRun]) -> RenderableType:
    """A row for each dry run; below, what shared links cost and batteries gave, waste, ends and emissions."""
    wasteful = [run for run in runs if run.summary.wasted.jobs or stopped(run.summary)]
    emitting = [run for run in runs if run.summary.carbon]
    found = [run.summary for run in runs]
    columns = {
        **_DRY,
        **_columns(energy_rows(found)),
        **_columns([IDLE]),
        **_columns(emission_rows("CO2e", "total", found) if emitting else ()),
    }
    return Group(
        Table(columns.items(), runs, names=2),
        *_lower_bounds(found),
        *_shared(runs),
        *_drained(runs),
        *_noted(wasteful, usage_rows),
        *_noted([run for run in runs if run.summary.server], server_rows),
        *_noted(emitting, carbon_rows),
        *_boundaries([run.summary for run in emitting]),
        *(Line(text, "yellow") for text in few(Compared(run.name, (run,)) for run in found)),
    )


def _columns(found: Iterable[Row]) -> dict[str, Callable[[DryRun], Cell]]:
    """Rows of a comparison as columns."""
    return {
        row.label.strip(): lambda run, row=row: row.cell(Compared("", (run.summary,)))  # type: ignore[misc]
        for row in found
    }


def _shared(runs: Sequence[DryRun]) -> Iterator[RenderableType]:
    """What links that clients share cost, a row for each run that has any."""
    shared = [(run, run.sharing) for run in runs if run.sharing is not None]
    if shared:
        yield Line()
        yield Table(_SHARED.items(), shared, names=2)
        yield Line(_ABOUT_SHARED, "dim")


def _drained(runs: Sequence[DryRun]) -> Iterator[RenderableType]:
    """What jobs take from batteries, a row for each device that has one."""
    drained = [Drained(run, device) for run in runs for device in run.summary.batteries]
    if drained:
        yield Line()
        yield Table(_DRAINED.items(), drained, names=3)


def _noted(
    runs: Sequence[DryRun], figures_of: Callable[[Sequence[Summary]], Iterator[Row]]
) -> Iterator[RenderableType]:
    """More figures of some of the runs."""
    if not runs:
        return
    compared = [
        Compared(run.summary.name if run.scenario == run.summary.name else _titled(run), (run.summary,))
        for run in runs
    ]
    found = list(figures_of([run.summary for run in runs]))
    yield Line()
    yield _table(compared, found)


def _titled(run: DryRun) -> str:
    """A run's name behind its scenario's."""
    return f"{run.scenario}, {run.summary.name}"


class Drained(NamedTuple):
    """A dry run's device that has a battery."""

    run: DryRun
    device: str

    def shown(self, show: Callable[[Any], str], of: str) -> str:
        """A figure of ``BatteryUse``."""
        use = self.run.summary.batteries[self.device]
        bounds = use.per_round_between if of == "per_round" else None
        return between(show, getattr(use, of), bounds, UNKNOWN if use.joules is None else MISSING)


_ABOUT_SHARED = (
    "sharing: of the rounds' time; a download, an upload: in the mean, and alone on their clients' own links"
)


def _transfer(one: Transfer | None) -> str:
    return MISSING if one is None else f"{show_seconds(one.seconds)}, {show_seconds(one.alone_s)} alone"


_SHARED: dict[str, Callable[[tuple[DryRun, SharedTime]], Cell]] = {
    "scenario": lambda row: row[0].scenario,
    "run": lambda row: row[0].summary.name,
    "sharing": lambda row: show_share(row[1].share),
    "a download": lambda row: _transfer(row[1].download),
    "an upload": lambda row: _transfer(row[1].upload),
}
_DRAINED: dict[str, Callable[[Drained], Cell]] = {
    "scenario": lambda row: row.run.scenario,
    "run": lambda row: row.run.summary.name,
    "battery of": lambda row: row.device,
    "a round": lambda row: row.shown(show_charge, "per_round"),
    "a day": lambda row: row.shown(show_charge, "per_day"),
    "one charge lasts": lambda row: row.shown(show_days, "days"),
}
_DRY: dict[str, Callable[[DryRun], Cell]] = {
    "scenario": lambda run: run.scenario,
    "run": lambda run: run.summary.name,
    "clients": lambda run: f"{run.summary.clients:,}",
    "refused": lambda run: f"{run.summary.refused:,}",
    "rounds": lambda run: MISSING if run.summary.rounds is None else f"{run.summary.rounds:,}",
    "virtual time": lambda run: between(show_seconds, run.summary.virtual_s, run.summary.virtual_s_between),
    "bytes": lambda run: show_bytes(run.summary.down_bytes + run.summary.up_bytes),
}
