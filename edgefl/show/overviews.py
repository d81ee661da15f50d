"""Scenarios at a glance, a row each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType

from edgefl.core.corners import Interval
from edgefl.core.units import show_bytes, show_joules, show_seconds
from edgefl.show.intervals import between, span
from edgefl.show.summary import DryRun
from edgefl.show.tables import MISSING, Line, figures

_HEADS = ("scenario", "runs", "clients", "refused", "virtual time", "bytes", "energy")


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
    about = (
        f"{sum(each.valid for each in scenarios)} runs are valid. Of those that differ only in seed and "
        f"learning rate one was planned, {sum(len(each.runs) for each in scenarios)} in all; figures are of "
        "its first three rounds. edgefl check SCENARIO dry-runs every run."
    )
    return Group(figures(_HEADS, map(_row, scenarios)), Line(about, "dim"))


def _row(each: Overview) -> tuple[str, ...]:
    found = [run.summary for run in each.runs if run.summary.status == "done"]
    covered = [one.energy.energy_known == one.energy.energy_clients for one in found]
    joules = [one.energy.joules if known else None for one, known in zip(found, covered, strict=True)]
    return (
        each.scenario,
        str(each.valid),
        *(
            span(f"{min(counts):,}", f"{max(counts):,}")
            for counts in zip(*((run.summary.clients, run.summary.refused) for run in each.runs), strict=True)
        ),
        _range(show_seconds, ((one.virtual_s, one.virtual_s_between) for one in found)),
        _range(show_bytes, ((one.down_bytes + one.up_bytes, None) for one in found)),
        _range(show_joules, zip(joules, (one.joules_between for one in found), strict=True)),
    )


def _range(show: Callable[[float], str], figures: Iterable[tuple[float | None, Interval | None]]) -> str:
    """From the lowest to the highest of figures; of an unknown one, the bounds count."""
    ends = [
        bounds or Interval(0.0, None)
        if value is None
        else Interval(value, None if bounds and bounds.high is None else value)
        for value, bounds in figures
    ]
    highs = [one.high for one in ends if one.high is not None]
    low, high = min((one.low for one in ends), default=0.0), max(highs, default=None)
    return between(show, None, Interval(low, high if len(highs) == len(ends) else None), MISSING)
