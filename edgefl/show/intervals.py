"""Figures with their bounds, as texts of a cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, NamedTuple

from edgefl.core.corners import Interval
from edgefl.core.ledger import EnergyTotal
from edgefl.core.units import common_unit, show_joules
from edgefl.show.averages import SHOWS, Bounds, Compared, Figure, Row, Show, Value
from edgefl.show.summary import Summary
from edgefl.show.table import MISSING, UNKNOWN

AT_LEAST = ">"
"""Stands before a figure that is a lower bound."""
LOWER_BOUND = f"{AT_LEAST} launch overhead unknown; time is a lower bound"
"""Says what the sign means."""


def between(
    show: Callable[[float], str],
    value: float | None,
    bounds: Interval | None,
    unknown: str = UNKNOWN,
    text: str = "",
) -> str:
    """A figure with its bounds: ``"12 J (8 to 21)"``, ``"at most 25 J"``, ``"8 to 25 J"``, ``">12 J"``.

    Args:
        show: a number as text.
        value: the figure; None if it is unknown.
        bounds: None if there are none.
        unknown: stands where nothing is known.
        text: the figure as text where it has more than the number, such as a deviation.
    """
    if bounds is None:
        return unknown if value is None else text or show(value)
    low, high = show(bounds.low), None if bounds.high is None else show(bounds.high)
    if value is not None:
        return _around(text or show(value), show(value), low, high)
    if high is None:
        return f"at least {low}" if bounds.low else unknown
    if not bounds.low:
        return f"at most {high}"
    return span(low, high)


def with_half(value: str, half: str) -> str:
    """A figure and half of its interval, if that is not empty; the unit once where both have the same one."""
    if not half:
        return value
    same = _unit(value) == _unit(half) is not None
    return f"{value.partition(' ')[0] if same else value} ±{half}"


def span(low: str, high: str) -> str:
    """From one figure to another, the unit once where both have the same one."""
    if low == high:
        return high
    return f"{low.partition(' ')[0] if _unit(low) == _unit(high) is not None else low} to {high}"


def _around(text: str, value: str, low: str, high: str | None) -> str:
    if low == value:
        return text if high == value else f"{text} (at most {high})" if high else f"{AT_LEAST}{text}"
    if high is None:
        return f"{text} (at least {low})"
    # The unit once, where all have the same one.
    if _unit(low) == _unit(value) == _unit(high) is not None:
        low, high = low.partition(" ")[0], high.partition(" ")[0]
    return f"{text} ({low} to {high})"


class Covered(NamedTuple):
    """A sum over clients of which some may be unknown.

    Attributes:
        amount: of the clients whose amount is known in full; None where there are none.
        known, clients: how many those are, and how many took part.
        bounds: of the amount of all clients; None where there are none.
    """

    amount: float | None
    known: int
    clients: int
    bounds: Interval | None

    @property
    def whole(self) -> float | None:
        """The amount, if it is that of all clients."""
        return self.amount if self.known == self.clients else None


def covered(total: EnergyTotal, bounds: Interval | None) -> Covered:
    """An energy."""
    return Covered(total.joules, total.energy_known, total.energy_clients, bounds)


def of_clients(known: Sequence[int], clients: Sequence[int]) -> str:
    """How many clients amounts cover, run by run: ``"12 of 24 clients"``."""
    return f"{counted(known)} of {counted(clients)} clients"


def energy_of(one: Compared) -> str:
    """Of how many clients energies are, and what all clients' are at least or at most; empty where of all."""
    totals = [run.energy for run in one.runs]
    if all(total.energy_known == total.energy_clients for total in totals):
        return ""
    whole = between(show_joules, None, one.between(lambda run: run.joules_between))
    known = of_clients([each.energy_known for each in totals], [each.energy_clients for each in totals])
    return f"{known}, all {whole}"


def counted(counts: Sequence[int]) -> str:
    """The count that runs have in common, or the lowest and the highest."""
    least, most = min(counts), max(counts)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def covered_rows(
    row: Row, runs: Sequence[Summary], amount: Callable[[Summary], Covered | None], nothing: Show
) -> Iterator[Row]:
    """An amount of all clients, and below it what is known of how many, where those are not all.

    Args:
        row: its label, unit and key.
        runs: all that are compared.
        amount: a run's; None where it has none.
        nothing: stands in the place of a ``Compared`` of which no run has an amount.
    """

    def whole(run: Summary) -> float | None:
        found = amount(run)
        return found.whole if found else None

    def bounds(run: Summary) -> Interval | None:
        found = amount(run)
        return found.bounds if found else None

    def cell(one: Compared) -> str:
        if not any((found := amount(run)) and found.clients for run in one.runs):
            return nothing(one)
        return bounded(one, SHOWS[row.unit], whole, bounds, UNKNOWN)

    def part(one: Compared) -> str:
        found = [each for run in one.runs if (each := amount(run)) and each.known < each.clients]
        amounts = [each.amount for each in found if each.amount is not None]
        if not amounts:
            return MISSING
        of = of_clients([each.known for each in found], [each.clients for each in found])
        return f"{SHOWS[row.unit](fmean(amounts))} ({of})"

    every = [each for run in runs if (each := amount(run))]
    some = any(each.known < each.clients and each.amount is not None for each in every)
    known = Row("  known part", part) if some else None
    yield replace(row, cell=cell, figure=whole, bounds=bounds, part=known)
    if known:
        yield known


def bounded(
    one: Compared,
    show: Callable[[Any], str],
    figure: Figure,
    bounds: Bounds,
    nothing: str,
) -> str:
    """A figure with its bounds; of several runs, the means of all."""
    text, mean, values = one.show(show, figure, nothing), one.between(bounds), one.known(figure)
    return text if mean is None else between(show, fmean(values) if values else None, mean, nothing, text)


def texts(row: Row, compared: Sequence[Compared], *, bounds: bool, one_unit: bool) -> list[str]:
    """A row's label and its cells.

    Figures have their ``bounds`` if asked for, unknown ones anyway. In ``one_unit`` are times, bytes, work,
    energies and emissions; the label names it.
    """
    values = [row.value(one) for one in compared]
    ends = [end for one in compared for end in one.between(row.bounds) or () if end is not None]
    found = alike(row.unit, [value.mean for value in values if value] or ends) if one_unit else None
    if found is None:
        return [row.label, *map(row.cell if bounds else row.plain, compared)]
    name, show = found

    def cell(one: Compared, value: Value | None) -> str:
        if row.figure is None or (value is None and one.between(row.bounds) is None):
            return row.cell(one)
        return bounded(one, show, row.figure, _NONE if value and not bounds else row.bounds, UNKNOWN)

    return [f"{row.label} ({name})", *map(cell, compared, values)]


def alike(unit: str, amounts: Sequence[float]) -> tuple[str, Show] | None:
    """The unit of amounts that are printed in one unit, and such an amount as text without it.

    All have as many decimals: the greatest three digits or up to two more, so that the least but 0 has two.
    None where all are 0, or the unit has no larger and smaller ones.
    """
    sizes = [size for size in map(abs, amounts) if size and math.isfinite(size)]
    if not sizes or unit == "share" or unit not in SHOWS:
        return None
    scale, name = common_unit(unit, max(sizes))
    most, least = (math.floor(math.log10(size / scale)) for size in (max(sizes), min(sizes)))
    digits = max(0, 2 - most, min(1 - least, 4 - most))

    def show(value: float) -> str:
        text = f"{value / scale:,.{digits}f}"
        return text if not value or float(text.replace(",", "")) else f"<{10.0**-digits:.{digits}f}"

    return name, show


_NONE: Bounds = lambda _: None  # noqa: E731 - it has a type


def _unit(text: str) -> str | None:
    """The unit of a number with one; None for other texts, such as hours and minutes."""
    number, _, unit = text.partition(" ")
    return unit if number and " " not in unit else None
