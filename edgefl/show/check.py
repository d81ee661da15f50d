"""Dry runs, a row each: what the clock says before anything is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rich.console import Group as Rendered
from rich.console import RenderableType

from edgefl.analysis.batteries import BatteryUse
from edgefl.analysis.explain.sharing import Transfer
from edgefl.analysis.groups import Group
from edgefl.analysis.metrics import Metric, metrics
from edgefl.analysis.summary import DryRun, Summary
from edgefl.core.units import show_seconds, show_share
from edgefl.show.compare import boundaries, few, head, lower_bounds, stopped, texts
from edgefl.show.table import MISSING, UNKNOWN, Column, Line, Table
from edgefl.show.values import between, cell

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
        *_more(runs, every, lambda run: run.carbon is not None, ("carbon.emitted",)),
        *boundaries(found),
        *(Line(text, "yellow") for text in few(Group(run.name, (run,)) for run in found)),
    )


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
