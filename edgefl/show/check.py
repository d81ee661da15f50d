"""Dry runs, a row each: what the clock says before anything is trained."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from rich.console import Group as Rendered
from rich.console import RenderableType

from edgefl.analysis.explain.transfers import Transfer
from edgefl.analysis.groups import SeedGroup
from edgefl.analysis.metrics import Metric, metrics
from edgefl.analysis.summary import DryRun
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
    figures = (Column(_head(metric), partial(_figure, metric)) for metric in shown)
    shared = [(run, run.sharing) for run in runs if run.sharing is not None]
    drained = [(run, *one) for run in runs for one in run.summary.batteries.items()]
    more: list[Table] = []
    # More figures of some of the runs.
    for which, keys in (
        ([run for run in runs if run.summary.wasted.jobs or stopped(run.summary)], _ENDS),
        ([run for run in runs if run.summary.server is not None], ("server.",)),
        ([run for run in runs if run.summary.costs], ("costs.",)),
    ):
        rows = [metric for metric in every if metric.key.startswith(keys)]
        if which and rows:
            names = (dict.fromkeys((run.scenario, run.summary.name)) for run in which)
            groups = [
                SeedGroup(", ".join(name), (run.summary,)) for name, run in zip(names, which, strict=True)
            ]
            more.append(Table(["", *map(head, groups)], [texts(metric, groups) for metric in rows]))
    return Rendered(
        Table([*_DRY, *figures], runs, names=2),
        *lower_bounds(found),
        *((Line(), Table(_SHARED, shared, names=2), Line(_ABOUT_SHARED, "dim")) if shared else ()),
        *((Line(), Table(_BATTERY, drained, names=3)) if drained else ()),
        *(part for table in more for part in (Line(), table)),
        *(Line(text, "dim") for text in boundaries(found)),
        *(Line(text, "yellow") for text in few(SeedGroup(run.name, (run,)) for run in found)),
    )


def _figure(metric: Metric, run: DryRun) -> str:
    return cell(metric.of(run.summary), metric.unit)


class Overview(NamedTuple):
    """A scenario at a glance.

    Attributes:
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
        *(Column(_head(metric), partial(_range, metric)) for metric in shown),
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


def _transfer_cell(one: Transfer | None) -> str:
    return MISSING if one is None else f"{show_seconds(one.seconds)}, {show_seconds(one.alone_s)} alone"


def _battery(row: tuple[DryRun, str, BatteryUse], of: str, unit: str = "battery") -> str:
    """A figure of ``BatteryUse``."""
    use = row[2]
    bounds = use.per_round_between if of == "per_round" else None
    return between(getattr(use, of), bounds, unit, UNKNOWN if use.joules is None else MISSING)


_SHARED = (
    Column("scenario", lambda row: row[0].scenario),
    Column("run", lambda row: row[0].summary.name),
    Column("sharing", lambda row: show_share(row[1].share)),
    Column("a download", lambda row: _transfer_cell(row[1].download)),
    Column("an upload", lambda row: _transfer_cell(row[1].upload)),
)
_BATTERY = (
    *_SHARED[:2],
    Column("battery of", lambda row: row[1]),
    Column("a round", partial(_battery, of="per_round")),
    Column("a day", partial(_battery, of="per_day")),
    Column("one charge lasts", partial(_battery, of="days", unit="days")),
)
_DRY = (
    Column("scenario", "scenario"),
    Column("run", "summary.name"),
    *(Column(name, f"summary.{name}", "{:,}".format) for name in ("clients", "refused", "rounds")),
)
_ENDS = ("spent", "wasted", "merged")
