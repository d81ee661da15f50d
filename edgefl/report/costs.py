"""A profile as tables that fit a terminal of 100 columns; see ``edgefl.planning.profile``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy import format_float_positional
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from edgefl.core.units import show_bytes, show_flops, show_joules, show_seconds
from edgefl.report.fitted import Cell, Fitted

MISSING = "-"
_UNKNOWN = "unknown"


def profile(found: dict[str, Any]) -> RenderableType:
    """One round's cost per exchange, model and device."""
    blocks: list[RenderableType] = []
    for work in found["exchanges"]:
        size = f"{work['samples']:,} samples, {work['steps']:,} steps"
        title = f"{work['exchange']} ({work['when']}), {work['model']}, {size}"
        lines = {
            "work": _flops(work["flops"]),
            "of": _flops(work["flops_by_part"]),
            "": f"{work['kernels']:,} kernels, {show_bytes(work['moved_bytes'])} moved",
            "down": _parts(work["down"]),
            "up": _parts(work["up"]),
            "peak": _parts(work["peak"]) + _in_floats(work["devices"]),
        }
        if not work["flops_by_part"]:
            del lines["of"]
        if "measured" in work:
            lines["host"] = _measured(work["measured"])
        blocks += [
            Text(title, style="bold"),
            _indented(lines),
            *_priced(work["devices"]),
            *_cannot(work["devices"]),
            Text(""),
        ]
    return Group(*blocks, *_stands_on(found["assumptions"]))


def _in_floats(rows: Sequence[Mapping[str, Any]]) -> str:
    """Said where devices compute in another type: the rows count in theirs."""
    return "" if all(row["dtype"] == "fp32" for row in rows) else " (in fp32)"


def _stands_on(notes: Sequence[str]) -> list[RenderableType]:
    """How many things have numbers that nobody measured; the names are in the JSON and in ``edgefl show``."""
    guessed = [note.partition(": assumed")[0].removeprefix("link ") for note in notes if ": assumed" in note]
    if not guessed:
        return []
    shown = ", ".join(guessed[:_MOST]) + (f" and {len(guessed) - _MOST} more" if len(guessed) > _MOST else "")
    return [Text(f"some numbers are assumed: {shown} (edgefl show device|link NAME)", style="dim")]


_MOST = 6


def _measured(found: Mapping[str, Any]) -> str:
    """What this host took for it, and the model's figures over that."""
    ratios = found["modelled_over_measured"]
    added = show_bytes(found["added_bytes"])
    memory = f" (modelled peak: {ratios['memory']:.2g} times that)" if ratios["memory"] else ""
    steps = f"{found['steps']:,} steps took one thread {show_seconds(found['cpu_s'])}"
    times = ", ".join(f"{name} {ratio:.3g} times that" for name, ratio in ratios["time"].items())
    return (
        f"on this machine {steps}"
        + (f" (modelled: {times})" if times else "")
        + (f"; a fresh process grew by {added}{memory}")
    )


def _flops(flops: Mapping[str, int]) -> str:
    return " + ".join(f"{name} {show_flops(value)}" for name, value in flops.items() if value) or "no FLOPs"


def _indented(lines: dict[str, str]) -> Table:
    """Labels and texts; a long text goes on below itself."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for label, text in lines.items():
        grid.add_row(f"  {label}", text)
    return grid


def _parts(parts: dict[str, int]) -> str:
    held = {part: size for part, size in parts.items() if size}
    if not held:
        return "nothing"
    shown = ", ".join(f"{part} {show_bytes(size)}" for part, size in held.items())
    return shown if len(held) == 1 else f"{show_bytes(sum(held.values()))}: {shown}"


def _priced(rows: Sequence[dict[str, Any]]) -> list[RenderableType]:
    """The tables of the devices that have a price; none where none has."""
    if all(row["unknown"] for row in rows):
        return []
    notes = []
    if any(map(_is_bound, rows)):
        text = f"{_AT_LEAST} the device's file has nothing for the start of a kernel: at least this long"
        notes = [Text(text, style="dim")]
    return [_times(rows), *notes, Text(""), _energies(rows)]


def _times(rows: Sequence[dict[str, Any]]) -> Fitted:
    """Times by phase, what bounds the computing, and memory."""
    bounds = ("bound by\ncompute", "by\nmemory", "by\nlaunch")
    heads = ("\ndevice", "\ndown", "\ncompute", "\nup", *bounds, "memory\nused", "\nfits")
    cells: list[Sequence[Cell]] = []
    for row in (one for one in rows if not one["unknown"]):
        used = MISSING if row["memory_share"] is None else _least(row["memory_share"])
        fits = _UNKNOWN if row["fits"] is None else ("yes" if row["fits"] else Text("no", style="red"))
        down, compute, up = (
            show_seconds(row[key]) if row[key] else "0 s" for key in ("down_s", "compute_s", "up_s")
        )
        times = down, (_AT_LEAST if _is_bound(row) else "") + compute, up
        cells.append((_name(row, rows), *times, *_shares(row["bounds"]), used, fits))
    # What memory takes is what the other two leave of the whole.
    return Fitted(heads, cells, left=heads[-1:], yields=("memory\nused", bounds[1]))


def _name(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """The device, with what tells it from the other rows."""
    links = {one["link"] for one in rows if one["device"] == row["device"]}
    parts = [row["device"], *([] if row["dtype"] == "fp32" else [row["dtype"]])]
    return ", ".join([*parts, *([row["link"]] if len(links) > 1 else [])])


def _shares(bounds: Mapping[str, float]) -> list[str]:
    whole = sum(bounds.values())
    return [f"{seconds / whole:.0%}" if whole else MISSING for seconds in bounds.values()]


def _energies(rows: Sequence[dict[str, Any]]) -> Fitted:
    """Energy by phase, and the battery's share."""
    heads = ("device", "energy", "receive", "compute", "transmit", "tail", "idle", "of battery")
    cells = []
    for row in (one for one in rows if not one["unknown"]):
        share = row["battery_share"]
        parts = [_joules(joules) for joules in row["energy"].values()]
        battery = MISSING if share is None else _share(share)
        cells.append((_name(row, rows), _joules(row["joules"]), *parts, battery))
    return Fitted(heads, cells, yields=("of battery", "tail", "receive"))


# Before a time that is longer in truth.
_AT_LEAST = ">"


def _is_bound(row: Mapping[str, Any]) -> bool:
    """Whether a time to compute lacks something."""
    return bool(row["compute_s"]) and row["launch"] == "none"


def _least(share: float) -> str:
    """A percentage to a tenth; less is said to be less."""
    return f"{100 * share:.1f}%" if share >= _SHOWN or not share else "<0.1%"


def _share(share: float) -> str:
    """A percentage that does not round to nothing."""
    if share >= _SHOWN or not share:
        return f"{100 * share:.1f}%"
    return f"{format_float_positional(100 * share, 2, unique=False, fractional=False)}%"


_SHOWN = 0.0005


def _joules(joules: float | None) -> str:
    return _UNKNOWN if joules is None else show_joules(joules)


def _cannot(rows: Sequence[dict[str, Any]]) -> list[RenderableType]:
    """The devices without a price, each with the reason."""
    return [
        Text(f" {row['device']}: {row['unknown']}{_holds(row)}", style="yellow")
        for row in rows
        if row["unknown"]
    ]


def _holds(row: dict[str, Any]) -> str:
    """What is known all the same: whether the memory would do."""
    if row["memory_share"] is None:
        return ""
    return f"; memory used {row['memory_share']:.1%}, {'fits' if row['fits'] else 'does not fit'}"


def layers(found: dict[str, Any]) -> RenderableType:
    """Each model's modules with fvcore's forward counts beside our own."""
    blocks: list[RenderableType] = []
    for model in found["layers"]:
        heads = ("module", "kind", "parameters", "fvcore", "traced", "kernels", "moved")
        cells = []
        for row in model["modules"]:
            counts = [show_flops(row[key]) if row[key] else MISSING for key in ("fvcore_flops", "flops")]
            parameters = f"{row['parameters']:,}" if row["parameters"] else MISSING
            moved = show_bytes(row["bytes"])
            cells.append((row["module"], row["kind"], parameters, *counts, str(row["kernels"]), moved))
        table = Fitted(heads, cells, left=("kind",), yields=("moved", "kernels"))
        theirs, ours = show_flops(model["fvcore_flops"]), show_flops(model["traced_flops"])
        total = f"conv and linear layers: fvcore {theirs}, traced {ours}"
        title = f"{model['model']}, forward, one sample"
        blocks += [Text(title, style="bold"), table, Text(total), Text("")]
    return Group(*blocks)
