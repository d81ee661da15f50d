"""What a round costs a client, by device and run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from edgefl.core.corners import Interval, together
from edgefl.core.ledger import total
from edgefl.core.units import show_bytes, show_joules, show_seconds
from edgefl.planning.costs import DeviceCost, ExchangeCost, Profile
from edgefl.planning.sensitivity import Sensitivity
from edgefl.show import costs
from edgefl.show.costs import row_name
from edgefl.show.intervals import LOWER_BOUND, between
from edgefl.show.layers import checked
from edgefl.show.published import Beside, tables
from edgefl.show.sensitivity import sensitivity
from edgefl.show.table import Cell, Line, Table, apart

# Before the figures of a device that cannot hold the work.
_TOO_LARGE = "!"
_MINUTE_S, _HOUR_S = 60, 3600
_MOST = 9


class Round(NamedTuple):
    """A client's round on a device.

    Attributes:
        seconds: of receiving, computing and sending; None if the device has no price.
        joules: None if unknown.
        seconds_between, joules_between: their bounds; None if the device has no price.
        fits: whether the memory suffices in every exchange; None if that is unknown.
    """

    seconds: float | None
    joules: float | None
    seconds_between: Interval | None
    joules_between: Interval | None
    fits: bool | None

    @property
    def is_bound(self) -> bool:
        """Whether the seconds are a lower bound."""
        return self.seconds_between is not None and self.seconds_between.high is None

    def time(self) -> Cell:
        """The seconds in few characters."""
        return self._styled(between(brief, self.seconds, self.seconds_between, ""))

    def energy(self) -> Cell:
        """The joules."""
        return self._styled(between(show_joules, self.joules, self.joules_between, ""))

    def _styled(self, text: str) -> Cell:
        too_large = bool(text) and self.fits is False
        return Text(_TOO_LARGE * too_large + text, "red" if too_large else "")


def profiles(
    found: Sequence[Profile], beside: Sequence[Beside], swept: Sequence[Sensitivity]
) -> RenderableType:
    """What a round costs, published figures beside ours, and what the figures depend on."""
    overview = [device_rounds(found)] if len(found) > 1 else []
    each = [block for one in found for block in (Line(), *_profile(one))][1:]
    papers, notes = tables(beside)
    return Group(*overview, *each, *apart(papers), *notes, *map(sensitivity, swept))


def _profile(one: Profile) -> Iterator[RenderableType]:
    yield Line(f"{one.scenario}: {one.method}", "bold")
    for note in one.assumed:
        yield Line(f"assumed: {note}", "dim")
    yield Line(f"network: {costs.links(one.exchanges)}", "dim")
    yield costs.profile(one)
    if one.layers:
        yield checked(one.layers)


def device_rounds(profiles: Sequence[Profile]) -> RenderableType:
    """Bytes and memory, then times and energies by device; a column for each run and model."""
    columns = {head: found for each in profiles for head, found in _rounds(each).items()}
    devices = list(dict.fromkeys(name for rounds in columns.values() for name in rounds))
    priced = [
        name for name in devices if any(rounds[name].seconds is not None for rounds in columns.values())
    ]
    known = [name for name in devices if any(rounds[name].energy() for rounds in columns.values())]
    blocks: list[RenderableType] = [_payloads(profiles), Line()]
    for title, names, cell in (("time", priced, Round.time), ("energy", known, Round.energy)):
        if names:
            blocks += [_table(f"{title} of a client's round", names, columns, cell), Line()]
    shown = [rounds[name] for name in priced for rounds in columns.values()]
    return Group(*blocks, *_notes(shown, [name for name in devices if name not in priced]), Line())


def _payloads(profiles: Sequence[Profile]) -> RenderableType:
    """Bytes of a client's round, and the peak of its memory: a column for each run and model."""
    columns: dict[str, list[ExchangeCost]] = {}
    for head, work in (pair for each in profiles for pair in _every_round(each)):
        columns.setdefault(head, []).append(work)
    peaks = [show_bytes(max(sum(work.peak.values()) for work in works)) for works in columns.values()]
    down, up = (
        [show_bytes(sum(sum(getattr(work, way).values()) for work in works)) for works in columns.values()]
        for way in ("down", "up")
    )
    rows = [["down", *down], ["up", *up], ["peak memory, in fp32", *peaks]]
    return Table(["bytes of a client's round", *columns], rows)


def _every_round(profile: Profile) -> Iterator[tuple[str, ExchangeCost]]:
    """The exchanges of every round, by the column that they are shown in."""
    models = {work.model for work in profile.exchanges}
    for work in profile.exchanges:
        if work.when.startswith("every round"):
            yield profile.scenario if len(models) == 1 else f"{profile.scenario}, {work.model}", work


def _table(
    title: str,
    names: Sequence[str],
    columns: dict[str, dict[str, Round]],
    cell: Callable[[Round], Cell],
) -> RenderableType:
    rows = ([name, *(cell(rounds[name]) for rounds in columns.values())] for name in names)
    return Table([title, *columns], rows)


def _rounds(profile: Profile) -> dict[str, dict[str, Round]]:
    """A client's rounds by column and device: all exchanges of every round."""
    found: dict[str, dict[str, list[DeviceCost]]] = {}
    for head, work in _every_round(profile):
        column = found.setdefault(head, {})
        for row in work.devices:
            column.setdefault(row_name(row, work.devices), []).append(row)
    return {head: {name: _round(rows) for name, rows in column.items()} for head, column in found.items()}


def _round(rows: Sequence[DeviceCost]) -> Round:
    prices = [row.price for row in rows]
    seconds = total(*(None if one is None else one.down_s + one.compute_s + one.up_s for one in prices))
    joules = total(*(None if one is None else one.joules for one in prices))
    known = [one for one in prices if one is not None]
    priced = len(known) == len(prices)
    within_s = together(one.seconds_between for one in known) if priced else None
    within_j = together(one.joules_between for one in known) if priced else None
    fits = (
        False
        if any(row.fits is False for row in rows)
        else None
        if any(row.fits is None for row in rows)
        else True
    )
    return Round(seconds, joules, within_s, within_j, fits)


def brief(seconds: float) -> str:
    """A duration in one unit: ``"7.05 min"``."""
    if round(seconds) < _MINUTE_S:
        return show_seconds(seconds)
    scale, unit = (_MINUTE_S, "min") if round(seconds) < _HOUR_S else (_HOUR_S, "h")
    return f"{seconds / scale:.3g} {unit}" if seconds < 999.5 * scale else f"{seconds / scale:,.0f} {unit}"


def _notes(shown: Sequence[Round], unpriced: Sequence[str]) -> list[Line]:
    notes = ["a round is to receive, compute and send; exchanges before and after the rounds are below"]
    if any(one.is_bound for one in shown):
        notes.append(LOWER_BOUND)
    if any(one.fits is False for one in shown):
        notes.append(f"{_TOO_LARGE} does not fit into the device's memory")
    if unpriced:
        more = f" and {len(unpriced) - _MOST} more" if len(unpriced) > _MOST else ""
        notes.append(f"no price, for the reasons below: {'; '.join(unpriced[:_MOST])}{more}")
    return [Line(note, "dim") for note in notes]
