"""Scenarios at a glance, a row each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rich.console import Group, RenderableType

from edgefl.core.corners import Interval
from edgefl.show.table import UNKNOWN, Line, Table
from edgefl.show.values import AT_LEAST, LOWER_BOUND

Range: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Overview:
    """A scenario, by the lowest and the highest figures of its runs.

    Attributes:
        scenario: its name.
        runs: how many it has.
        planned: how many of them were planned: of those that differ only in seed and learning rate, one.
        clients, refused: their numbers.
        rounds: how many there will be at most; None where another limit ends them.
        round_s: the virtual time of a round, like the next two a mean over the first rounds.
        round_bytes: traffic of all clients.
        round_j: energy of all clients; None where one's is unknown.
        round_j_between: the bounds of the energy, whatever is unknown.
        lower_bounds: whether a device's launch overhead is unknown, so that times are lower bounds.
        round_waiting_j: of all clients at idle power while they wait for the server, no part of their energy.
        failed: why runs would fail.
        assumed: a line for each assumption.
    """

    scenario: str
    runs: int
    planned: int
    clients: Range
    refused: Range
    rounds: Range | None
    round_s: Range | None
    round_bytes: Range | None
    round_j: Range | None
    round_j_between: Interval | None
    lower_bounds: bool
    round_waiting_j: Range | None
    failed: Sequence[str]
    assumed: Sequence[str]


_HEADS = ("scenario", "runs", "clients", "refused", "time/round", "bytes/round", "energy/round")

# Units, the largest first, and how many of the base unit each is.
_TIME = {"h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3}
_BYTES = {"GB": 1e9, "MB": 1e6, "kB": 1e3, "B": 1.0}
_ENERGY = {"MJ": 1e6, "kJ": 1e3, "J": 1.0, "mJ": 1e-3}


def overviews(scenarios: Sequence[Overview]) -> RenderableType:
    """A row for each scenario, with the lowest and the highest figures of its runs."""
    runs, planned = sum(each.runs for each in scenarios), sum(each.planned for each in scenarios)
    about = (
        f"{runs} runs are valid; {planned} were planned: one of those that differ only in seed and "
        "learning rate. A round is the mean of the first three. edgefl check SCENARIO dry-runs every run."
    )
    notes = [LOWER_BOUND] if any(each.lower_bounds for each in scenarios) else []
    table = Table(_HEADS, [_row(each) for each in scenarios])
    return Group(table, *(Line(note, "dim") for note in (*notes, about)))


def _row(each: Overview) -> tuple[str, ...]:
    return (
        each.scenario,
        str(each.runs),
        _count(each.clients),
        _count(each.refused),
        AT_LEAST * each.lower_bounds + _between(each.round_s, _TIME),
        _between(each.round_bytes, _BYTES),
        _energy(each),
    )


def _count(found: Range) -> str:
    return "-".join(dict.fromkeys(f"{value:,.0f}" for value in found))


def _between(found: Range | None, units: dict[str, float]) -> str:
    """A range to two digits, in one unit."""
    if found is None:
        return UNKNOWN
    unit = next((unit for unit, size in units.items() if found[1] >= size), list(units)[-1])
    return f"{'-'.join(dict.fromkeys(_two_digits(value / units[unit]) for value in found))} {unit}"


def _energy(each: Overview) -> str:
    """The energy, or its bounds where it is unknown."""
    if each.round_j is not None or each.round_j_between is None:
        return _between(each.round_j, _ENERGY)
    low, high = each.round_j_between
    if high is None:
        return f"at least {_between((low, low), _ENERGY)}" if low else UNKNOWN
    return _between((low, high), _ENERGY) if low else f"at most {_between((high, high), _ENERGY)}"


def _two_digits(value: float) -> str:
    digits = f"{value:.2g}"
    return f"{float(digits):.0f}" if "e" in digits and value > 1 else digits
