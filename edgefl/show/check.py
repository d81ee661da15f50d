"""Dry runs, a row each: what the clock says before anything is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rich.console import Group as Rendered
from rich.console import RenderableType

from edgefl.analysis.batteries import BatteryUse
from edgefl.analysis.explain.sharing import SharedTime, Transfer
from edgefl.analysis.groups import Group
from edgefl.analysis.metrics import Metric, metrics
from edgefl.analysis.summary import DryRun, Summary
from edgefl.core.units import show_seconds, show_share
from edgefl.show.compare import boundaries, few, grid, head, line, lower_bounds, stopped, texts
from edgefl.show.formats.texts import TextTable
from edgefl.show.tables import MISSING, UNKNOWN, Cell, Fitted, Line
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
        Fitted(runs, {**_DRY, **{_head(one): _column(one) for one in shown}}, wraps=("run",), names=2),
        *map(line, lower_bounds(found)),
        *_shared(runs),
        *_drained(runs),
        *_more(runs, every, lambda run: bool(run.wasted.jobs or stopped(run)), ("spent", "wasted", "merged")),
        *_more(runs, every, lambda run: run.server is not None, ("server.",)),
        *_more(runs, every, lambda run: run.carbon is not None, ("carbon.emitted",)),
        *map(line, boundaries(found)),
        *(Line(text, "yellow") for text in few(Group(run.name, (run,)) for run in found)),
    )


def _head(metric: Metric) -> str:
    """A column's heading: all are of all clients."""
    return metric.label.strip().removesuffix(" of all clients").removesuffix(", apart")


def _column(metric: Metric) -> Callable[[DryRun], Cell]:
    return lambda run: cell(metric.of(run.summary), metric.unit)


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
        yield grid(TextTable(["", *map(head, groups)], [texts(metric, groups) for metric in rows]))


def _shared(runs: Sequence[DryRun]) -> Iterator[RenderableType]:
    """What links that clients share cost, a row for each run that has any."""
    shared = [(run, run.sharing) for run in runs if run.sharing is not None]
    if shared:
        yield Line()
        yield Fitted(shared, _SHARED, wraps=("run",), names=2)
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
        yield Fitted(drained, _BATTERY, wraps=("run",), names=3)


def _transfer(one: Transfer | None) -> str:
    return MISSING if one is None else f"{show_seconds(one.seconds)}, {show_seconds(one.alone_s)} alone"


_SHARED: dict[str, Callable[[tuple[DryRun, SharedTime]], Cell]] = {
    "scenario": lambda row: row[0].scenario,
    "run": lambda row: row[0].summary.name,
    "sharing": lambda row: show_share(row[1].share),
    "a download": lambda row: _transfer(row[1].download),
    "an upload": lambda row: _transfer(row[1].upload),
}
_BATTERY: dict[str, Callable[[_Drained], Cell]] = {
    "scenario": lambda row: row.run.scenario,
    "run": lambda row: row.run.summary.name,
    "battery of": lambda row: row.device,
    "a round": lambda row: row.shown("per_round"),
    "a day": lambda row: row.shown("per_day"),
    "one charge lasts": lambda row: row.shown("days"),
}
_DRY: dict[str, Callable[[DryRun], Cell]] = {
    "scenario": lambda run: run.scenario,
    "run": lambda run: run.summary.name,
    "clients": lambda run: f"{run.summary.clients:,}",
    "refused": lambda run: f"{run.summary.refused:,}",
    "rounds": lambda run: MISSING if run.summary.rounds is None else f"{run.summary.rounds:,}",
}
