"""A profile as tables that fit a terminal of 100 columns; see ``edgefl.planning.costs``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from numpy import format_float_positional
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from edgefl.core.devices import Bounds
from edgefl.core.layers import ModelLayers
from edgefl.core.units import show_bytes, show_flops, show_seconds
from edgefl.planning.costs import DeviceCost, ExchangeCost, Measured, Priced, Profile
from edgefl.report.fitted import Cell, Fitted
from edgefl.report.tables import MISSING, UNKNOWN, joules


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
        "host": _measured(work.measured) if work.measured else "",
    }
    yield _indented({label: text for label, text in lines.items() if text})
    priced = [(_name(row, work.devices), row, row.price) for row in work.devices if row.price]
    if priced:
        yield _times(priced)
        if any(_is_bound(row, price) for _, row, price in priced):
            yield Text(f"{_AT_LEAST} launch overhead unknown; time is a lower bound", style="dim")
        yield Text("")
        yield _energies(priced)
    for row in work.devices:
        if not row.price:
            reason = row.unknown.removeprefix(f"device {row.device!r} ")
            yield Text(f" {row.device}: {reason}{_holds(row)}", style="yellow")
    yield Text("")


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
    """Time and memory on this host, and the modelled figures as multiples of them."""
    figures, ratios = host.figures, host.modelled_over_measured
    added = show_bytes(figures.added_bytes)
    memory = f" (modelled peak: {ratios.memory:.2g} times that)" if ratios.memory else ""
    steps = f"{figures.steps:,} steps took {show_seconds(figures.cpu_s)} on one thread"
    times = ", ".join(f"{name} {ratio:.3g} times that" for name, ratio in ratios.time.items())
    return (
        f"measured here: {steps}"
        + (f" (modelled: {times})" if times else "")
        + (f"; a fresh process grew by {added}{memory}")
    )


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


# A device's name, its row and its price.
Row = tuple[str, DeviceCost, Priced]


def _times(rows: Sequence[Row]) -> Fitted:
    """Times by phase, what bounds the computing, and memory."""
    bounds = ("bound by\ncompute", "by\nmemory", "by\nlaunch")
    heads = ("\ndevice", "\ndown", "\ncompute", "\nup", *bounds, "memory\nused", "\nfits")
    cells: list[Sequence[Cell]] = []
    for name, row, price in rows:
        used = MISSING if row.memory_share is None else _least(row.memory_share)
        fits = UNKNOWN if row.fits is None else ("yes" if row.fits else Text("no", style="red"))
        down, compute, up = (
            show_seconds(seconds) if seconds else "0 s"
            for seconds in (price.down_s, price.compute_s, price.up_s)
        )
        times = down, (_AT_LEAST if _is_bound(row, price) else "") + compute, up
        cells.append((name, *times, *_shares(price.bounds), used, fits))
    # The share of memory-bound time is what the other two leave, so its column may go.
    return Fitted(heads, cells, left=heads[-1:], yields=("memory\nused", bounds[1]))


def _name(row: DeviceCost, rows: Sequence[DeviceCost]) -> str:
    """The device, with the type and link that distinguish it from the other rows."""
    links = {other.link for other in rows if other.device == row.device}
    parts = [row.device, *([] if row.dtype == "fp32" else [row.dtype])]
    return ", ".join([*parts, *([row.link] if len(links) > 1 else [])])


def _shares(bounds: Bounds) -> list[str]:
    whole = sum(bounds)
    return [f"{seconds / whole:.0%}" if whole else MISSING for seconds in bounds]


def _energies(rows: Sequence[Row]) -> Fitted:
    """Energy by phase, and the battery's share."""
    heads = ("device", "energy", "receive", "compute", "transmit", "tail", "idle", "of battery")
    cells = [
        (
            name,
            joules(price.joules),
            *map(joules, price.energy),
            MISSING if price.battery_share is None else _share(price.battery_share),
        )
        for name, _, price in rows
    ]
    return Fitted(heads, cells, yields=("of battery", "tail", "receive"))


# Before a time that is a lower bound.
_AT_LEAST = ">"


def _is_bound(row: DeviceCost, price: Priced) -> bool:
    """Whether the time to compute is a lower bound."""
    return bool(price.compute_s) and row.launch == "none"


def _least(share: float) -> str:
    """A percentage to a tenth, or that it is less."""
    return f"{100 * share:.1f}%" if share >= _SHOWN or not share else "<0.1%"


def _share(share: float) -> str:
    """A percentage with enough digits not to round to zero."""
    if share >= _SHOWN or not share:
        return f"{100 * share:.1f}%"
    return f"{format_float_positional(100 * share, 2, unique=False, fractional=False)}%"


_SHOWN = 0.0005


def _holds(row: DeviceCost) -> str:
    """Whether the memory would suffice, which is known without a price."""
    if row.memory_share is None:
        return ""
    return f"; memory used {row.memory_share:.1%}, {'fits' if row.fits else 'does not fit'}"


def layers(models: Sequence[ModelLayers]) -> RenderableType:
    """Each model's modules with fvcore's forward counts beside our own."""
    blocks: list[RenderableType] = []
    heads = ("module", "kind", "parameters", "fvcore", "traced", "kernels", "moved")
    for model in models:
        cells = [
            (
                row.module,
                row.kind,
                f"{row.parameters:,}" if row.parameters else MISSING,
                show_flops(row.fvcore_flops) if row.fvcore_flops else MISSING,
                show_flops(row.flops) if row.flops else MISSING,
                str(row.kernels),
                show_bytes(row.bytes),
            )
            for row in model.modules
        ]
        table = Fitted(heads, cells, left=("kind",), yields=("moved", "kernels"))
        theirs, ours = show_flops(model.fvcore_flops), show_flops(model.traced_flops)
        total = f"conv and linear layers: fvcore {theirs}, traced {ours}"
        title = f"{model.model}, forward, one sample"
        blocks += [Text(title, style="bold"), table, Text(total), Text("")]
    return Group(*blocks)
