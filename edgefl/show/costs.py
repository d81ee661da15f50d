"""A profile as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType

from edgefl.core.corners import Interval
from edgefl.core.merging import MergeCost
from edgefl.core.units import (
    show_bits,
    show_bytes,
    show_flops,
    show_joules,
    show_seconds,
    show_share,
)
from edgefl.planning.assumed import in_short
from edgefl.planning.costs import (
    DeviceCost,
    ExchangeCost,
    MemoryCheck,
    Priced,
    Profile,
    TimeCheck,
    is_lower_bound,
)
from edgefl.planning.memory import MARGIN
from edgefl.planning.sharing import SharedLink
from edgefl.show.batteries import show_charge
from edgefl.show.intervals import LOWER_BOUND, between
from edgefl.show.layers import by_layer
from edgefl.show.tables import MISSING, NO_MARGIN, Cell, Fitted, Labelled, Line, fits


def profile(costs: Profile) -> RenderableType:
    """One round's cost by exchange, model and device."""
    blocks = [block for work in costs.exchanges for block in _exchange(work)]
    # What is unknown shows in the tables.
    assumed = in_short(note for note in costs.assumptions if ": assumed" in note)
    free = "" if costs.server else "; merging on the server is free, as there is no server.device"
    notes = (_NOT_COUNTED + free, *assumed)
    return Group(*blocks, *_shared(costs), *_server(costs), *(Line(note, "dim") for note in notes))


_NOT_COUNTED = "not counted: reading from storage, and evaluation, which is no work of the protocol"


def _exchange(work: ExchangeCost) -> Iterator[RenderableType]:
    title = f"{work.exchange} ({work.when}), {work.model}, {work.samples:,} samples, {work.steps:,} steps"
    yield Line(title, "bold")
    lines = {
        "work": _flops(work.flops),
        "of": _flops(work.flops_by_part) if work.flops_by_part else "",
        "": f"{work.kernels:,} kernels, {show_bytes(work.moved_bytes)} moved",
        "down": _parts(work.down),
        "up": _parts(work.up),
        "peak": _parts(work.peak) + _in_floats(work.devices),
        "memory": _checked(work.measured.memory) if work.measured and work.measured.memory else "",
        "time": _timed(work.measured.time) if work.measured and work.measured.time else "",
    }
    yield Labelled({f"  {label}": text for label, text in lines.items() if text})
    priced = [Row(row_name(row, work.devices), row, row.price) for row in work.devices if row.price]
    if priced:
        yield Fitted(priced, _TIMES, left=("fits",), yields=_BOUNDS)
        if any(row.is_bound for row in priced):
            yield Line(LOWER_BOUND, "dim")
        if any(row.costs.fits and not row.costs.fits_with_margin for row in priced):
            yield Line(f"{NO_MARGIN}: libraries may take {MARGIN:.0%} more than the traced peak", "dim")
        yield Line()
        battery = {} if all(row.battery() == MISSING for row in priced) else _battery(work.jobs_per_day)
        yield Fitted(priced, _ENERGIES | battery, yields=("receive", "transmit", "tail"))
    for row in work.devices:
        if not row.price:
            reason = row.unknown.removeprefix(f"device {row.device!r} ")
            yield Line(f" {row.device}: {reason}{_holds(row)}", "yellow")
    yield Line()
    if work.layers is not None:
        yield from by_layer(work, [(row.name, row.costs) for row in priced])


def _shared(costs: Profile) -> Iterator[RenderableType]:
    """What exchanges cost what clients share."""
    if costs.shared:
        yield Line("shared by clients", "bold")
        yield Fitted(costs.shared, _SHARED, left=("link",), names=2)
        yield Line(_ABOUT_SHARED, "dim")
        yield Line()


def _server(costs: Profile) -> Iterator[RenderableType]:
    """What merges cost the server."""
    if costs.server:
        yield Line("a merge on the server", "bold")
        bounds = costs.server_intervals or {}
        yield Fitted([(name, one, bounds.get(name, {})) for name, one in costs.server.items()], _OF_SERVER)
        if any(one["seconds"].high is None for one in bounds.values()):
            yield Line(LOWER_BOUND, "dim")
        yield Line()


_OF_SERVER: dict[str, Callable[[tuple[str, MergeCost, Mapping[str, Interval]]], Cell]] = {
    "exchange": lambda row: row[0],
    "uploads": lambda row: f"{row[1].uploads:,}",
    "work": lambda row: show_flops(row[1].flops),
    "moved": lambda row: show_bytes(row[1].moved_bytes),
    "time": lambda row: between(show_seconds, row[1].seconds, row[2].get("seconds")),
    "energy": lambda row: between(show_joules, row[1].joules, row[2].get("joules")),
    "peak memory": lambda row: show_bytes(row[1].peak_bytes),
}
_ABOUT_SHARED = (
    "least time: all payloads at the full rate; alone: one client, on its own link; all at once: what each "
    "gets, max-min fair"
)
_SHARED: dict[str, Callable[[SharedLink], Cell]] = {
    "exchange": lambda one: one.exchange,
    "link": lambda one: one.capacity,
    "rate": lambda one: show_bits(one.bps),
    "payloads": lambda one: f"{one.clients:,} x {show_bytes(one.payload_bytes)}",
    "least time": lambda one: show_seconds(one.at_least_s),
    "alone": lambda one: between(show_seconds, None, one.alone_s),
    "all at once": lambda one: between(show_bits, None, one.each_bps) if one.is_full else "not full",
}


def links(exchanges: Sequence[ExchangeCost]) -> str:
    """The network class of each device: "wifi-pi4; ethernet (laptop-cpu)"."""
    devices: dict[str, dict[str, None]] = {}
    for row in exchanges[0].devices if exchanges else ():
        devices.setdefault(row.link, {})[row.device] = None
    most = max(devices, key=lambda link: len(devices[link]), default="")
    others = [f"{link} ({', '.join(names)})" for link, names in devices.items() if link != most]
    return "; ".join([most, *others])


def _in_floats(rows: Sequence[DeviceCost]) -> str:
    """Marks the peak, if devices compute in another type: their rows give memory in that type."""
    return "" if all(row.dtype == "fp32" for row in rows) else " (in fp32)"


def _timed(check: TimeCheck) -> str:
    """A step's time by device, and on this host."""
    predicted = ", ".join(
        f"{show_seconds(seconds)} ({check.errors[name]:+.0%}) for {name}"
        for name, seconds in check.predicted_s.items()
    )
    measured = f"measured here {show_seconds(check.measured_s)} a step, on one thread"
    return f"predicted {predicted}, {measured}" if predicted else measured


def _checked(check: MemoryCheck) -> str:
    """Both figures, the verdict, and what it means for the devices."""
    error = "" if check.error is None else f" ({check.error:+.0%})"
    predicted, measured = show_bytes(check.predicted_bytes), show_bytes(check.measured_bytes)
    figures = f"predicted {predicted}{error}, measured here {measured}"
    limits: dict[str, list[str]] = {}
    for device, limit in check.limits.items():
        limits.setdefault(limit, []).append(device)
    fitting = "; ".join(f"{limit}: {', '.join(devices)}" for limit, devices in limits.items())
    return f"{figures}: {check.verdict}" + (f"\n{fitting}" if fitting else "")


def _flops(flops: Mapping[str, int]) -> str:
    return " + ".join(f"{name} {show_flops(value)}" for name, value in flops.items() if value) or "no FLOPs"


def _parts(parts: Mapping[str, int]) -> str:
    held = {part: size for part, size in parts.items() if size}
    if not held:
        return "nothing"
    shown = ", ".join(f"{part} {show_bytes(size)}" for part, size in held.items())
    return shown if len(held) == 1 else f"{show_bytes(sum(held.values()))}: {shown}"


class Row(NamedTuple):
    """A device's name, its costs and its price."""

    name: str
    costs: DeviceCost
    price: Priced

    @property
    def is_bound(self) -> bool:
        """Whether the time to compute is a lower bound."""
        return is_lower_bound(self.price)

    def seconds(self, name: str) -> str:
        """A time with its bounds."""
        return between(_seconds, getattr(self.price, name), getattr(self.price.intervals, name, None))

    def joules(self) -> str:
        """The energy with its bounds."""
        intervals = self.price.intervals
        return between(show_joules, self.price.joules, intervals.joules if intervals else None)

    def phase(self, name: str) -> str:
        """The energy of a phase; its bounds only where it is unknown, to be short."""
        value, intervals = getattr(self.price.energy, name), self.price.intervals
        return between(show_joules, value, intervals.energy[name] if intervals and value is None else None)

    def battery(self) -> str:
        """The energy as a share of a full battery, with its bounds."""
        intervals = self.price.intervals
        share = intervals.battery_share if intervals else None
        return between(_share, self.price.battery_share, share, MISSING)

    def battery_a_day(self, jobs: float) -> str:
        """The same of so many jobs a day."""
        intervals = self.price.intervals
        bounds = intervals.battery_share if intervals else None
        return between(lambda share: show_charge(share * jobs), self.price.battery_share, bounds, MISSING)

    def bound(self, place: int) -> str:
        """The share of the time that one of the bounds takes."""
        whole = sum(self.price.bounds)
        return show_share(self.price.bounds[place] / whole) if whole else MISSING


# Shares of the time to compute, by what bounds it.
_BOUNDS: dict[str, Callable[[Row], Cell]] = {
    "compute-bound": lambda row: row.bound(0),
    "memory-bound": lambda row: row.bound(1),
    "launch-bound": lambda row: row.bound(2),
}
# Times by phase, what bounds the computing, and memory.
_TIMES: dict[str, Callable[[Row], Cell]] = {
    "device": lambda row: row.name,
    "down": lambda row: row.seconds("down_s"),
    "compute": lambda row: row.seconds("compute_s"),
    "up": lambda row: row.seconds("up_s"),
    **_BOUNDS,
    "memory used": lambda row: _share(row.costs.memory_share),
    "fits": lambda row: fits(row.costs.fits, with_margin=row.costs.fits_with_margin),
}
# Energy by phase; and the battery's share, where there is one.
_ENERGIES: dict[str, Callable[[Row], Cell]] = {
    "device": lambda row: row.name,
    "energy": lambda row: row.joules(),
    "receive": lambda row: row.phase("receive_j"),
    "compute": lambda row: row.phase("compute_j"),
    "transmit": lambda row: row.phase("transmit_j"),
    "tail": lambda row: row.phase("tail_j"),
    "idle": lambda row: row.phase("idle_j"),
}


def _battery(jobs_per_day: float | None) -> dict[str, Callable[[Row], Cell]]:
    """The battery's share, and that of a day where it is known how many jobs it has."""
    share: dict[str, Callable[[Row], Cell]] = {"of battery": lambda row: row.battery()}
    return share | ({"a day": lambda row: row.battery_a_day(jobs_per_day)} if jobs_per_day else {})


def row_name(row: DeviceCost, rows: Sequence[DeviceCost]) -> str:
    """The device, with the type and link that distinguish it from the other rows."""
    links = {other.link for other in rows if other.device == row.device}
    parts = [row.device, *([] if row.dtype == "fp32" else [row.dtype])]
    return ", ".join([*parts, *([row.link] if len(links) > 1 else [])])


def _seconds(value: float) -> str:
    return show_seconds(value) if value else "0 s"


def _share(share: float | None) -> str:
    """A share; one of more than ten wholes as a multiple, such as ``"2,936x"``."""
    if share is None:
        return MISSING
    return show_share(share, 1) if share < _MOST_SHARE else f"{share:,.0f}x"


_MOST_SHARE = 10


def _holds(row: DeviceCost) -> str:
    """Whether the memory would suffice, which is known without a price."""
    if row.memory_share is None:
        return ""
    fitting = "does not fit" if not row.fits else "fits" if row.fits_with_margin else "fits without margin"
    return f"; memory used {_share(row.memory_share)}, {fitting}"
