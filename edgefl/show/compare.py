"""Runs side by side: the figures by which they are judged, or all of them, and who is ahead."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from rich.console import Group as Rendered
from rich.console import RenderableType

from edgefl.analysis.groups import (
    Average,
    Judged,
    Pair,
    SeedGroup,
    apart,
    averages,
    baselines,
    judged,
    pairs,
    runs_of,
    seeds_together,
)
from edgefl.analysis.metrics import Metric, main_model, metrics, percent, target_name
from edgefl.analysis.published import Beside, beside_runs
from edgefl.analysis.settings import differences, differing
from edgefl.analysis.summary import Summary
from edgefl.analysis.sums import mean_turnout
from edgefl.analysis.values import Value, deviations, over_seeds
from edgefl.core.documents import INLINE, OPTIONAL
from edgefl.core.errors import UserError, closest, short
from edgefl.planning.sensitivity import Sensitivity
from edgefl.show.answers import Shown
from edgefl.show.published import tables
from edgefl.show.table import MISSING, Line, Table, listed, unfinished
from edgefl.show.table import set_apart as spaced
from edgefl.show.values import (
    LOWER_BOUND,
    alike,
    between,
    cell,
    difference_text,
    is_open,
    of_clients,
    setting_text,
)

ABREAST = 3
"""Groups that stand side by side; more have a row each."""
# Rows where groups stand side by side; columns, with the name, where they do not.
_ROWS, _COLUMNS = 16, 9
_BEST, _CLOSE, _NEITHER = "*", "~", " "
_QUANTITIES = {"s": "time", "B": "bytes", "J": "energy", "g": "CO2e"}
_KINDS = {"s": "times", "J": "energies", "g": "emissions"}
# Settings that a line names.
_SETTINGS = 4
# Of so many seeds an interval is wide.
_FEW_SEEDS = 2
# Below this share of the clients that a round asks for, a note says so.
_FEW = 0.5


@dataclass
class Comparison:
    """The document that ``edgefl compare --json`` prints.

    Attributes:
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
        groups = seeds_together(self.runs)
        self.averages, self.pairs, self.published = averages(groups), pairs(groups), beside_runs(groups)
        self.differences = differences([run.settings or {} for run in self.runs])


class Summaries(list[Summary], Shown):
    """Summaries of several runs."""

    def __rich__(self) -> RenderableType:
        return comparison(self)


class Fact(NamedTuple):
    """What runs are, in words: each group's text; label and key as of ``Metric``."""

    label: str
    key: str
    texts: Sequence[str]


def comparison(
    runs: Sequence[Summary],
    *,
    every: bool = False,
    reasons: bool = True,
    names: str = "",
    one_unit: bool = False,
) -> RenderableType:
    """The figures by which runs are judged, and who is ahead; or every figure with its bounds.

    With ``every`` figure, each run or average has a column and each figure a row; those that ``names`` name
    are shown alone, see ``chosen``. ``reasons`` says why runs failed, unless that was said before. A row has
    ``one_unit``, which its label names, or each cell its own.

    Raises:
        UserError: a name is no figure's.
    """
    groups = seeds_together(runs)
    ends = [Line(f"scale: {words}", "dim") for words in scales(runs)]
    for run in runs:
        if run.status != "done":
            words = unfinished(run.name, run.status, run.reason if reasons else "")
            ends.append(Line(words, "red" if run.status == "failed" else "yellow"))
    ends += [Line(text, "yellow") for text in few(groups)]
    found = chosen(groups, names) if names else []
    papers, orders = tables([] if names else beside_runs(groups), one_unit=one_unit)
    if not every:
        table, notes = _first_table(groups, found, one_unit=one_unit)
        return Rendered(*spaced([table, *papers]), *notes, *_in_a_line(groups), *orders, *ends)
    rows = found or every_row(groups)
    over = pair_table(groups, rows, one_unit=one_unit)
    cells = [texts(row, groups, one_unit=one_unit) for row in rows]
    made = [Table(["", *map(head, groups)], cells), *([over.table] if over else []), *papers]
    return Rendered(*spaced(made), *signs(groups, over), *orders, *ends)


def every_row(groups: Sequence[SeedGroup]) -> list[Metric | Fact]:
    """All that is known of runs: in what they differ, and their figures."""
    runs, facts = runs_of(groups), []
    targets = {run.target.accuracy for run in runs if run.target}
    if len(targets) > 1:
        asked = [
            joined_once(percent(run.target.accuracy) if run.target else "" for run in one.runs)
            for one in groups
        ]
        facts.append(Fact("target", "target.accuracy", asked))
    if any(map(stopped, runs)):
        why = [joined_once(stopped(run) or "rounds" for run in one.runs) for one in groups]
        facts.append(Fact("stopped by", "stopped", why))
    return [*_settings(groups), *facts, *metrics(runs)]


def joined_once(words: Iterable[str]) -> str:
    """Each text once."""
    return "; ".join(dict.fromkeys(filter(None, words))) or MISSING


def stopped(run: Summary) -> str:
    """What stopped the run before its last round, if anything did."""
    return run.stopped if run.stopped and run.stopped != "rounds" else ""


def chosen(groups: Sequence[SeedGroup], names: str) -> list[Metric | Fact]:
    """Rows by their labels or keys, with commas between them, of which a label may have some of its own.

    Raises:
        UserError: a name is no row's.
    """
    every = every_row(groups)
    known: dict[str, Metric | Fact] = {}
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


def texts(
    row: Metric | Fact, groups: Sequence[SeedGroup], *, bounds: bool = True, one_unit: bool = False
) -> list[str]:
    """A row's label and its cells, with bounds or without, in one unit or each in its own."""
    if isinstance(row, Fact):
        return [row.label, *row.texts]
    values = [row.value(one.runs) for one in groups]
    there = [value for value in values if value]
    means = [value.mean for value in there if value.mean is not None]
    ends = [end for value in there for end in value.between or () if end is not None]
    label, write = alike(row.label, row.unit, means or ends) if one_unit else (row.label, None)
    return [label, *(cell(value, row.unit, bounds=bounds, write=write) for value in values)]


def energy_of(one: SeedGroup) -> str:
    """Of how many clients energies are, and what all clients' are at least or at most; empty where of all."""
    values = [Value.over_clients(*run.energy, run.joules_between) for run in one.runs]
    found = over_seeds(values)
    if found is None or all(value is None or not value.clients[1] for value in values):
        return ""
    return f"{of_clients(found)}, all {between(None, found.between, 'J')}"


def head(one: SeedGroup) -> str:
    """A column's heading."""
    return one.name if len(one.runs) == 1 else f"{one.name}\n{len(one.runs)} seeds"


def _first_table(
    groups: Sequence[SeedGroup], asked: Sequence[Metric | Fact], *, one_unit: bool
) -> tuple[Table, list[Line]]:
    """The table of the main figures, or of those that were asked for, and what stands below it."""
    runs, shown = runs_of(groups), list(asked or _main(groups))
    verdicts = [judged(row, groups) if isinstance(row, Metric) else None for row in shown]
    cells = [texts(row, groups, bounds=False, one_unit=one_unit) for row in shown]
    if len(groups) > ABREAST:
        table = by_run(groups, cells, verdicts, seeds=len(runs) > len(groups))
        notes = [*marks(verdicts, "best of its column"), *([] if asked else ["every figure with --all"])]
    else:
        table, notes = Table(["", *map(head, groups)], cells), list(_ahead(groups, verdicts))
    notes += _bounds(groups, shown)
    notes += about_seeds(groups)
    if any(".target." in f".{row.key}" for row in shown):
        whose = "" if asked else f"{main_model(runs)} model's "
        notes.append(f"to a target: until the {whose}first evaluation at or above it")
    if any(row.key.startswith("costs.") for row in shown):
        notes += boundaries(runs)
    return table, [Line(text, "dim") for text in notes]


def _main(groups: Sequence[SeedGroup]) -> list[Metric]:
    """The main figures, as many as fit."""
    runs = runs_of(groups)
    found = [metric for metric in metrics(runs) if metric.main]
    if len(found) > _ROWS or len(groups) > ABREAST:
        # No room for what is known of a part of the clients: the bounds of all stay.
        found = [metric for metric in found if not metric.is_known_part]
    if len(groups) <= ABREAST:
        return found[:_ROWS]
    averaged, main = len(runs) > len(groups), f"accuracy.{main_model(runs)}.value"

    def rank(metric: Metric) -> int:
        """The main model's accuracy, what the target and all took, wasted energy, the rest in their order."""
        if metric.key == main:
            return 0
        wasted = "wasted" in metric.key
        took = metric.judged and not wasted and metric.unit in _QUANTITIES
        return 1 if took else 2 if wasted and metric.unit == "J" else 3

    return sorted(found, key=rank)[: _COLUMNS - 1 - averaged]


def by_run(
    groups: Sequence[SeedGroup],
    columns: Sequence[Sequence[str]],
    verdicts: Sequence[Judged | None],
    *,
    seeds: bool,
) -> Table:
    """A row for each group, with its seeds' number or not; a column is a heading and each one's text."""
    shown = [
        [label.strip(), *(_marked(text, one, place) for place, text in enumerate(cells))]
        for (label, *cells), one in zip(columns, verdicts, strict=True)
    ]
    counts = [["seeds", *(str(len(one.runs)) for one in groups)]] if seeds else []
    heads, *rows = zip(["run", *(one.name for one in groups)], *counts, *shown, strict=True)
    return Table(heads, rows, drops=True)


def _marked(text: str, one: Judged | None, place: int) -> str:
    """A group's figure, with a mark where it is the best of those that are judged."""
    if one is None or not one.ranges or not (value := one.values[place]) or value.mean is None:
        return text
    return f"{text} {_mark(one) if place == one.winner or place in one.tied else _NEITHER}"


def _mark(one: Judged) -> str:
    return _BEST if one.close_seeds is None else _CLOSE


def marks(verdicts: Sequence[Judged | None], best: str) -> Iterator[str]:
    """What the marks mean, of those that stand in a table."""
    found = {_mark(one) for one in verdicts if one and one.ranges}
    if _BEST in found:
        yield f"{_BEST} {best}"
    if _CLOSE in found:
        yield f"{_CLOSE} best, but not separable from all others over seeds"


def _ahead(groups: Sequence[SeedGroup], verdicts: Sequence[Judged | None]) -> Iterator[str]:
    """Who is ahead in accuracy, in what the target took, and in what all took; and what seeds leave open."""
    until = f" to {target_name(runs_of(groups))}"
    said: dict[int, list[str]] = {}
    left_open = []
    for one in verdicts:
        if one is None or not one.metric.judged or "wasted" in one.metric.key:
            continue
        metric = one.metric
        if metric.key.startswith("accuracy."):
            what = f"{metric.model} accuracy"
        else:
            quantity = _QUANTITIES.get(metric.unit)
            what = quantity + (until if metric.model else "") if quantity else metric.label
        if one.close_seeds is not None:
            left_open.append(what)
        elif one.winner is not None:
            said.setdefault(one.winner, []).append(what)
    if said:
        seeds = ", on one seed each" if all(len(one.runs) == 1 for one in groups) else ""
        each = (f"{groups[place].line} in {', '.join(won)}" for place, won in sorted(said.items()))
        yield f"ahead{seeds}: {'; '.join(each)}"
    if left_open:
        yield f"not separable over seeds: {', '.join(left_open)}"


def _bounds(groups: Sequence[SeedGroup], shown: Sequence[Metric | Fact]) -> Iterator[str]:
    """How far times and energies may be from what is shown: the widest of each kind."""
    found: dict[str, tuple[float, float]] = {}
    for row in shown:
        if not isinstance(row, Metric) or row.unit not in _KINDS:
            continue
        for value in (row.value(one.runs) for one in groups):
            if value and value.between and value.mean:
                low, high = value.between
                least, most = found.get(row.unit, (1.0, 1.0))
                top = math.inf if high is None else high / value.mean
                found[row.unit] = min(least, low / value.mean), max(most, top)
    words = []
    for unit, (low, top) in found.items():
        ends = f"at least {_times(low)}" if math.isinf(top) else f"{_times(low)} to {_times(top)}"
        words.append(f"{_KINDS[unit]} {ends}")
    if words:
        yield f"bounds, where known: {', '.join(words)} what is shown; each with --all"


def _times(ratio: float) -> str:
    return f"{ratio:.2g}x" if ratio < 99.5 else f"{ratio:,.0f}x"  # noqa: PLR2004 - else it has an exponent


def about_seeds(groups: Sequence[SeedGroup]) -> list[str]:
    """What stands behind means over seeds, where there are any; of one seed there is no interval."""
    least = min((len(one.runs) for one in groups if len(one.runs) > 1), default=None)
    if least is None:
        return []
    wide = f"; of {least} seeds it is {deviations(least):.2g} times the standard deviation"
    return [
        f"± 95% interval of the mean over seeds (Student's t, n - 1){wide if least <= _FEW_SEEDS else ''}"
    ]


_AGAINST = (
    "against: means of the differences on the same seeds, ± the 95% interval of each by itself, not "
    "corrected for their number"
)


class PairTable(NamedTuple):
    """What groups of seeds are above others, a column for each pair, and what its signs mean."""

    table: Table
    notes: Sequence[str]


def pair_table(
    groups: Sequence[SeedGroup], rows: Sequence[Metric | Fact], *, one_unit: bool = False
) -> PairTable | None:
    """The differences of groups of seeds in the figures that are judged; None where there are none."""
    found, cells, told = baselines(groups), [], []
    for metric in (row for row in rows if isinstance(row, Metric) and row.judged and found):
        each = [apart(metric, own, other) for own, other in found]
        if any(each):
            there, label, write = [one for one in each if one], metric.label, None
            if one_unit:
                label, write = alike(label, metric.unit, [one.mean for one in there])
            shown = (difference_text(one, metric.unit, write) for one in each)
            # What is said of a figure stands below it, which keeps columns narrow.
            cells.append([label.strip(), *(text.replace(" (", "\n(") for text in shown)])
            told += there
    if not cells:
        return None
    heads = [f"{own.line}\nagainst {other.line}" for own, other in found]
    notes = [_AGAINST]
    notes += ["not separable: the interval contains 0"] if any(map(is_open, told)) else []
    unpaired = "unpaired: of groups with fewer than two seeds in common, in Welch's interval"
    notes += [unpaired] if any(not one.paired for one in told) else []
    return PairTable(Table(["", *heads], cells), notes)


def signs(groups: Sequence[SeedGroup], over: PairTable | None) -> Iterator[Line]:
    """What the signs in figures and in their differences mean, and what emissions count."""
    runs = runs_of(groups)
    yield from lower_bounds(runs)
    notes = [*about_seeds(groups), *(over.notes if over else ())]
    if any(run.target for run in runs):
        notes.append("to a target: until the first evaluation at or above it")
    if runs and not any(run.server for run in runs):
        notes.append("merging on the server is free, as there is no server.device")
    yield from (Line(text, "dim") for text in (*notes, *boundaries(runs)))


def boundaries(runs: Iterable[Summary]) -> list[str]:
    """What the runs' emissions and other costs count, each line once."""
    return list(dict.fromkeys(bill.about for run in runs for bill in (run.costs or {}).values()))


def lower_bounds(runs: Iterable[Summary]) -> Iterator[Line]:
    """What the sign before times means, where some have it."""
    if any(run.virtual_s_between is not None and run.virtual_s_between.high is None for run in runs):
        yield Line(LOWER_BOUND, "dim")


def scales(runs: Sequence[Summary]) -> list[str]:
    """The scales of their scenarios at which runs were made, in one line; none where none was chosen."""
    found = dict.fromkeys(run.scale for run in runs)
    return [", ".join(name or "as the scenario stands" for name in found)] if any(found) else []


def few(groups: Iterable[SeedGroup]) -> list[str]:
    """A line for each group in whose rounds few of those asked for took part."""
    names: dict[str, list[str]] = {}
    for one in groups:
        turnouts = [run.turnout for run in one.runs if run.turnout]
        if turnouts and (mean := mean_turnout(turnouts)).merged < _FEW * mean.asked:
            away, lost = mean.asked - mean.dispatched, mean.dispatched - mean.merged
            why = [f"{away:.1f} were away or busy"] if away > 0 else []
            why += [f"{lost:.1f} were late or lost"] if lost > 0 else []
            of = f"{mean.merged:.1f} of the {mean.asked} clients asked for"
            line = f"on average, {of} took part in a round; {' and '.join(why)}"
            names.setdefault(line, []).append(one.line)
    return [f"{', '.join(dict.fromkeys(found))}: {line}" for line, found in names.items()]


def _settings(groups: Sequence[SeedGroup]) -> Iterator[Fact]:
    """The settings in which the runs differ, unless their names say it, or only their components' do."""
    names = [one.name for one in groups]
    for key, values in differing([one.settings for one in groups]).items():
        told = [setting_text(value, key) for value in values]
        if told != names:
            yield Fact(key, key, list(map(short, told)))


def _in_a_line(groups: Sequence[SeedGroup]) -> Iterator[Line]:
    """The settings in which runs differ; of few runs with their values."""
    told = [
        f"{row.label} ({', '.join(row.texts)})" if len(groups) <= ABREAST else row.label
        for row in _settings(groups)
        if row.label != "seed"
    ]
    if told:
        yield Line(f"they differ in {listed(told, _SETTINGS)}", "dim")


class ReplaySource(NamedTuple):
    """Where the learning of a replay comes from: the run that trained."""

    run_dir: str
    name: str
    run_id: str
    event_hash: str | None


@dataclass(frozen=True)
class Replayed:
    """A replay's figures, and the fleet it was replayed on: the run's own where no other was named."""

    fleet: str
    source: ReplaySource
    summary: Summary = field(metadata={INLINE: Summary})


@dataclass(frozen=True)
class NotReplayed:
    """A run that cannot be replayed on a fleet (None: its own), and the first merge that would differ."""

    run_dir: str
    fleet: str | None
    reason: str


@dataclass(frozen=True)
class Replays:
    """The document that ``edgefl replay --json`` prints: that of ``edgefl run --json``, and more.

    Attributes:
        group_dir: where they are saved; None where they are not.
        runs: in the place of the comparison's own.
    """

    group_dir: str | None
    comparison: Comparison = field(metadata={INLINE: Comparison})
    runs: Sequence[Replayed]
    refused: Sequence[NotReplayed]


def replays_table(runs: Sequence[Replayed], given: Sequence[str] = ()) -> RenderableType:
    """A row for each run, or each average over seeds, on each fleet, where the best ones are marked.

    ``given`` are the settings that all have in place of their runs' own, in words.
    """
    fleets: dict[str, list[Summary]] = {}
    for run in runs:
        # By the names and directories of the runs that trained.
        trained = replace(run.summary, name=run.source.name, run_dir=run.source.run_dir)
        fleets.setdefault(run.fleet, []).append(trained)
    groups = {fleet: seeds_together(found) for fleet, found in fleets.items()}
    each = [one for found in groups.values() for one in found]
    of_all, averaged = runs_of(each), len(runs) > len(each)
    model = main_model(of_all)
    every = [metric for metric in metrics(of_all) if metric.main and metric.judged]
    kept = [metric for metric in every if metric.cost or metric.model == model]
    shown = [metric for metric in kept if "wasted" not in metric.key]
    verdicts, cells = [], []
    for fleet, found in groups.items():
        verdicts.append([judged(metric, found) for metric in shown])
        columns = [texts(metric, found, bounds=False) for metric in shown]
        table = by_run(found, columns, verdicts[-1], seeds=averaged)
        cells += [[fleet, *row] for row in table.rows]
    notes = [f"all with {', '.join(given)}"] if given else []
    notes += marks([one for found in verdicts for one in found], "best on its fleet")
    notes += about_seeds(each)
    return Rendered(Table(["fleet", *table.heads], cells, names=2), *(Line(note, "dim") for note in notes))
