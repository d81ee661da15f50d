"""Scenarios at a glance, a row each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from rich.console import Group, RenderableType
from rich.text import Text

from edgefl.core.units import show_bytes, show_joules, show_seconds
from edgefl.report.tables import UNKNOWN, figures

Range = tuple[float, float]


class Figures(Protocol):
    """What a row is made of; see ``edgefl.runs.overview.Overview``."""

    scenario: str
    runs: int
    planned: int
    clients: Range
    refused: Range
    rounds: Range | None
    round_s: Range | None
    round_bytes: Range | None
    round_j: Range | None


_HEADS = (
    "scenario",
    "runs",
    "clients",
    "refused",
    "rounds",
    "time a round",
    "bytes a round",
    "energy a round",
)


def overviews(scenarios: Sequence[Figures]) -> RenderableType:
    """A row for each scenario, with the lowest and the highest figures of its runs."""
    runs, planned = sum(each.runs for each in scenarios), sum(each.planned for each in scenarios)
    about = (
        f"{runs} runs are valid; {planned} were planned: one of those that differ only in seed and "
        "learning rate. A round is the mean of the first three. edgefl check SCENARIO dry-runs every run."
    )
    return Group(figures(_HEADS, [_row(each) for each in scenarios]), Text(about, style="dim"))


def _row(each: Figures) -> tuple[str, ...]:
    return (
        each.scenario,
        str(each.runs),
        _between(each.clients, _count),
        _between(each.refused, _count),
        _between(each.rounds, _count, "-"),
        _between(each.round_s, show_seconds, "-"),
        _between(each.round_bytes, show_bytes, "-"),
        _between(each.round_j, show_joules, UNKNOWN),
    )


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _between(found: Range | None, show: Callable[[float], str], otherwise: str = "") -> str:
    """A range, once if both ends look alike, and with one unit if they share it."""
    if found is None:
        return otherwise
    low, high = map(show, found)
    if low == high:
        return low
    (amount, *units), (_, *others) = low.split(" "), high.split(" ")
    return f"{amount}-{high}" if units == others and len(units) < 2 else f"{low} - {high}"  # noqa: PLR2004 - "1 h 05 min" has three
