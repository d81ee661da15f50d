"""A profile and published savings as tables that fit a terminal of 100 columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from numpy import format_float_positional
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from edgefl.core.units import show_bytes, show_flops, show_seconds
from edgefl.planning.costs import (
    Comparison,
    DeviceCost,
    ExchangeCost,
    Measured,
    MemoryCheck,
    Priced,
    Profile,
    Saved,
)
from edgefl.report.layers import AT_LEAST, by_layer
from edgefl.report.tables import MISSING, Cell, Fitted, fits, joules


def profile(costs: Profile) -> RenderableType:
    """One round's cost by exchange, model and device."""
    blocks = [block for work in costs.exchanges for block in _exchange(work)]
    return Group(*blocks, *_assumed(costs.assumptions))


def _exchange(work: ExchangeCost) -> Iterator[RenderableType]:
    title = f"{work.exchange} ({work.when}), {work.model}, {work.samples:,} samples, {work.steps:,} steps"
    yield Text(title, style="bold")
    lines = {
        "work": _flops(work.flops),
        "of": _flops(work.flops_by_part) if work.flops_by_part else "",
        "": f"{work.kernels:,} kernels, {show_bytes(work.moved_bytes)} moved",
        "down": _parts(work.down),
        "up": _parts(work.up),
        "peak": _parts(work.peak) + _in_floats(work.devices),
        "memory": _checked(work.measured.memory) if work.measured else "",
        "time": _measured(work.measured) if work.measured else "",
    }
    yield _indented({label: text for label, text in lines.items() if text})
    priced = [Row(_name(row, work.devices), row, row.price) for row in work.devices if row.price]
    if priced:
        # What a column left out holds is in the others' totals.
        yield Fitted(priced, _TIMES, left=("\nfits",), yields=("by\nmemory", "bound by\ncompute"))
        if any(row.is_bound for row in priced):
            yield Text(f"{AT_LEAST} launch overhead unknown; time is a lower bound", style="dim")
        yield Text("")
        yield Fitted(priced, _ENERGIES, yields=("receive", "transmit"))
    for row in work.devices:
        if not row.price:
            reason = row.unknown.removeprefix(f"device {row.device!r} ")
            yield Text(f" {row.device}: {reason}{_holds(row)}", style="yellow")
    yield Text("")
    if work.layers is not None:
        yield from by_layer(work, [(row.name, row.costs) for row in priced])


def _in_floats(rows: Sequence[DeviceCost]) -> str:
    """Marks the peak, if devices compute in another type: their rows give memory in that type."""
    return "" if all(row.dtype == "fp32" for row in rows) else " (in fp32)"


def _assumed(notes: Sequence[str]) -> list[RenderableType]:
    """Which devices and links have assumed numbers; the JSON and ``edgefl show`` name the numbers."""
    guessed = [note.partition(": assumed")[0].removeprefix("link ") for note in notes if ": assumed" in note]
    if not guessed:
        return []
    shown = ", ".join(guessed[:_MOST]) + (f" and {len(guessed) - _MOST} more" if len(guessed) > _MOST else "")
    return [Text(f"some numbers are assumed: {shown} (edgefl show device|link NAME)", style="dim")]


_MOST = 6


def _measured(host: Measured) -> str:
    """Time on this host, and the modelled times as multiples of it."""
    figures, times = host.figures, host.modelled_over_measured.time
    steps = f"{figures.steps:,} steps took {show_seconds(figures.cpu_s)} here, on one thread"
    modelled = ", ".join(f"{name} {ratio:.3g} times that" for name, ratio in times.items())
    return steps + (f" (modelled: {modelled})" if modelled else "")


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


def _indented(lines: Mapping[str, str]) -> Table:
    """Labels and texts; a long text wraps within its column."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for label, text in lines.items():
        grid.add_row(f"  {label}", text)
    return grid


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
        return bool(self.price.compute_s) and self.costs.launch == "none"

    def bound(self, place: int) -> str:
        """The share of the time that one of the bounds takes."""
        whole = sum(self.price.bounds)
        return f"{self.price.bounds[place] / whole:.0%}" if whole else MISSING


# Times by phase, what bounds the computing, and memory.
_TIMES: dict[str, Callable[[Row], Cell]] = {
    "\ndevice": lambda row: row.name,
    "\ndown": lambda row: _seconds(row.price.down_s),
    "\ncompute": lambda row: (AT_LEAST if row.is_bound else "") + _seconds(row.price.compute_s),
    "\nup": lambda row: _seconds(row.price.up_s),
    "bound by\ncompute": lambda row: row.bound(0),
    "by\nmemory": lambda row: row.bound(1),
    "by\nlaunch": lambda row: row.bound(2),
    "memory\nused": lambda row: _least(row.costs.memory_share),
    "\nfits": lambda row: fits(row.costs.fits),
}
# Energy by phase, and the battery's share.
_ENERGIES: dict[str, Callable[[Row], Cell]] = {
    "device": lambda row: row.name,
    "energy": lambda row: joules(row.price.joules),
    "receive": lambda row: joules(row.price.energy.receive_j),
    "compute": lambda row: joules(row.price.energy.compute_j),
    "transmit": lambda row: joules(row.price.energy.transmit_j),
    "tail": lambda row: joules(row.price.energy.tail_j),
    "idle": lambda row: joules(row.price.energy.idle_j),
    "of battery": lambda row: _share(row.price.battery_share),
}


def _name(row: DeviceCost, rows: Sequence[DeviceCost]) -> str:
    """The device, with the type and link that distinguish it from the other rows."""
    links = {other.link for other in rows if other.device == row.device}
    parts = [row.device, *([] if row.dtype == "fp32" else [row.dtype])]
    return ", ".join([*parts, *([row.link] if len(links) > 1 else [])])


def _seconds(value: float) -> str:
    return show_seconds(value) if value else "0 s"


def _least(share: float | None) -> str:
    """A percentage to a tenth, or that it is less."""
    return "<0.1%" if share and share < _SHOWN else _share(share)


def _share(share: float | None) -> str:
    """A percentage with enough digits not to round to zero."""
    if share is None:
        return MISSING
    if share >= _SHOWN or not share:
        return f"{100 * share:.1f}%"
    return f"{format_float_positional(100 * share, 2, unique=False, fractional=False)}%"


_SHOWN = 0.0005


def _holds(row: DeviceCost) -> str:
    """Whether the memory would suffice, which is known without a price."""
    if row.memory_share is None:
        return ""
    return f"; memory used {row.memory_share:.1%}, {'fits' if row.fits else 'does not fit'}"


def published(comparisons: Sequence[Comparison]) -> RenderableType:
    """Every claim, with the savings computed here above the published ones."""
    return Group(*(block for each in comparisons for block in _comparison(each)))


def _comparison(comparison: Comparison) -> list[RenderableType]:
    claim = comparison.claim
    columns = {head: column for head, column in _COLUMNS.items() if getattr(claim, head) is not None}
    table = Table(show_edge=False, header_style="bold")
    for head in ("model", "device"):
        table.add_column(head, overflow="fold")
    for head in columns:
        table.add_column(head, justify="right")
        table.add_column("saved", justify="right")
    for row in comparison.ours:
        table.add_row(row.model, row.device, *(cell for column in columns.values() for cell in column(row)))
    table.add_section()
    theirs = (cell for head in columns for cell in ("", f"up to {getattr(claim, head):.1%}"))
    table.add_row(Text("published", style="bold"), "", *theirs)
    title = f"{claim.method} against {claim.against}, {claim.exchange}: ours and {claim.source}"
    why = [Text(claim.why)] if claim.why else []
    return [Text(title, style="bold"), table, *why, Text("")]


def _latency(row: Saved) -> tuple[str, str]:
    """The time that the other method takes, and the share of it saved."""
    if row.latency is None or row.against_s is None:
        return MISSING, MISSING
    return show_seconds(row.against_s), f"{row.latency:.3%}"


def _memory(row: Saved) -> tuple[str, str]:
    """The memory that the other method takes, and the share of it saved."""
    if row.memory is None:
        return MISSING, MISSING
    return show_bytes(row.against_bytes), f"{row.memory:.3%}"


_COLUMNS = {"latency": _latency, "memory": _memory}
