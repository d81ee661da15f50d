"""Dry runs, a row each: what the clock says before anything is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rich.console import Group as Rendered
from rich.console import RenderableType

from edgefl.analysis.explain.transfers import Transfer
from edgefl.analysis.groups import Group
from edgefl.analysis.metrics import Metric, metrics
from edgefl.analysis.summary import DryRun, Summary
from edgefl.analysis.sums import BatteryUse
from edgefl.core.corners import Interval
from edgefl.core.units import show_seconds, show_share
from edgefl.show.compare import boundaries, few, head, lower_bounds, stopped, texts
from edgefl.show.table import MISSING, UNKNOWN, Column, Line, Table
from edgefl.show.values import between, cell, ends

_ABOUT_SHARED = (
    "sharing: of the rounds' time; a download, an upload: in the mean, and alone on their clients' own links"
)
# Of a run's table: what is waited for is no part of what it takes.
_KEYS = ("virtual_s", "bytes", "joules", "joules known", "waiting_joules")


def dry_runs(runs: Sequence[DryRun]) -> RenderableType:
    """A row for each dry run; below, what shared links cost and batteries gave, waste, ends and emissions."""
    found = [run.summary for run in runs]
    every = metrics(found)
    shown = [metric for metric in every if metric.key in _KEYS or metric.cost]
    return Rendered(
        Table([*_DRY, *map(_column, shown)], runs, names=2),
        *lower_bounds(found),
        *_shared(runs),
        *_drained(runs),
        *_more(runs, every, lambda run: bool(run.wasted.jobs or stopped(run)), ("spent", "wasted", "merged")),
        *_more(runs, every, lambda run: run.server is not None, ("server.",)),
        *_more(runs, every, lambda run: bool(run.costs), ("costs.",)),
        *(Line(text, "dim") for text in boundaries(found)),
        *(Line(text, "yellow") for text in few(Group(run.name, (run,)) for run in found)),
    )


class Overview(NamedTuple):
    """A scenario at a glance.

    Attributes:
        scenario: its name.
        valid: how many runs it has, all of which were checked.
        runs: the first rounds of one of each kind: of those that differ only in seed and learning rate.
    """

    scenario: str
    valid: int
    runs: Sequence[DryRun]


def overviews(scenarios: Sequence[Overview]) -> RenderableType:
    """A row for each scenario, with the lowest and the highest figures of its runs."""
    every = metrics([run.summary for each in scenarios for run in each.runs])
    shown = [metric for metric in every if metric.key in {"virtual_s", "bytes", "joules"}]
    columns = [
        Column("scenario", "scenario"),
        Column("runs", "valid"),
        Column("clients", lambda each: ends([run.summary.clients for run in each.runs])),
        Column("refused", lambda each: ends([run.summary.refused for run in each.runs])),
        *(Column(_head(metric), lambda each, metric=metric: _range(metric, each)) for metric in shown),  # type: ignore[misc]
    ]
    about = (
        f"{sum(each.valid for each in scenarios)} runs are valid. Of those that differ only in seed and "
        f"learning rate one was planned, {sum(len(each.runs) for each in scenarios)} in all; figures are of "
        "its first three rounds. edgefl check SCENARIO dry-runs every run."
    )
    return Rendered(Table(columns, scenarios), Line(about, "dim"))


def _range(metric: Metric, each: Overview) -> str:
    """From the lowest to the highest of figures; of an unknown one, the bounds count."""
    values = [metric.of(run.summary) for run in each.runs if run.summary.status == "done"]
    bounds = [
        Interval(value.mean, None if value.between and value.between.high is None else value.mean)
        if value.mean is not None
        else value.between or Interval(0.0, None)
        for value in values
        if value
    ]
    highs = [one.high for one in bounds if one.high is not None]
    high = max(highs) if highs and len(highs) == len(bounds) else None
    return between(None, Interval(min(one.low for one in bounds), high), metric.unit) if bounds else MISSING


def _head(metric: Metric) -> str:
    """A column's heading: all are of all clients."""
    return metric.label.strip().removesuffix(" of all clients").removesuffix(", apart")


def _column(metric: Metric) -> Column:
    return Column(_head(metric), lambda run: cell(metric.of(run.summary), metric.unit))


def _more(
    runs: Sequence[DryRun],
    every: Sequence[Metric],
    which: Callable[[Summary], bool],
    keys: tuple[str, ...],
) -> Iterator[RenderableType]:
    """More figures of some of the runs."""
    found = [run for run in runs if which(run.summary)]
    groups = [
        Group(name if run.scenario == name else f"{run.scenario}, {name}", (run.summary,))
        for run in found
        for name in [run.summary.name]
    ]
    rows = [metric for metric in every if metric.key.startswith(keys)]
    if groups and rows:
        yield Line()
        yield Table(["", *map(head, groups)], [texts(metric, groups) for metric in rows])


def _shared(runs: Sequence[DryRun]) -> Iterator[RenderableType]:
    """What links that clients share cost, a row for each run that has any."""
    shared = [(run, run.sharing) for run in runs if run.sharing is not None]
    if shared:
        yield Line()
        yield Table(_SHARED, shared, names=2)
        yield Line(_ABOUT_SHARED, "dim")


class _Drained(NamedTuple):
    """A dry run's device that has a battery."""

    run: DryRun
    device: str
    use: BatteryUse

    def shown(self, of: str) -> str:
        """A figure of ``BatteryUse``."""
        bounds = self.use.per_round_between if of == "per_round" else None
        unknown = UNKNOWN if self.use.joules is None else MISSING
        return between(getattr(self.use, of), bounds, "days" if of == "days" else "battery", unknown)


def _drained(runs: Sequence[DryRun]) -> Iterator[RenderableType]:
    """What jobs take from batteries, a row for each device that has one."""
    drained = [_Drained(run, *one) for run in runs for one in run.summary.batteries.items()]
    if drained:
        yield Line()
        yield Table(_BATTERY, drained, names=3)


def _transfer(one: Transfer | None) -> str:
    return MISSING if one is None else f"{show_seconds(one.seconds)}, {show_seconds(one.alone_s)} alone"


_SHARED = (
    Column("scenario", lambda row: row[0].scenario),
    Column("run", lambda row: row[0].summary.name),
    Column("sharing", lambda row: show_share(row[1].share)),
    Column("a download", lambda row: _transfer(row[1].download)),
    Column("an upload", lambda row: _transfer(row[1].upload)),
)
_BATTERY = (
    Column("scenario", "run.scenario"),
    Column("run", "run.summary.name"),
    Column("battery of", "device"),
    Column("a round", lambda row: row.shown("per_round")),
    Column("a day", lambda row: row.shown("per_day")),
    Column("one charge lasts", lambda row: row.shown("days")),
)
_DRY = (
    Column("scenario", "scenario"),
    Column("run", "summary.name"),
    Column("clients", "summary.clients", "{:,}".format),
    Column("refused", "summary.refused", "{:,}".format),
    Column("rounds", "summary.rounds", "{:,}".format),
)
