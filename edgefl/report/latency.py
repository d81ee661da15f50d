"""What a model takes, here and elsewhere, as tables that fit 100 columns; see ``edgefl.export.bench``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from edgefl.core.units import show_bytes, show_flops, show_joules, show_seconds
from edgefl.report.fitted import Cell, Fitted

MISSING = "-"
_UNKNOWN = "unknown"
_SHOWN = 0.005


def bench(found: dict[str, Any]) -> RenderableType:
    """Everything that was found out about one model."""
    batch = "one sample" if found["batch"] == 1 else f"{found['batch']:,} samples"
    moved = f"{found['kernels']:,} kernels, {show_bytes(found['moved_bytes'])} moved"
    kind = ", int8" if found["quantised"] else ""
    blocks: list[RenderableType] = [
        Text(f"{found['model']}: {show_bytes(found['size_bytes'])}{kind}"),
        Text(f"{batch}: {show_flops(found['flops'])}, {moved}"),
        Text(f"needs {_memory(found['memory'])}"),
    ]
    if found["measured"]:
        blocks += [Text(""), measured(found["measured"]), *_notes(found)]
    if found["slowest"]:
        blocks += [Text(""), _slowest(found["slowest"])]
    if found["devices"]:
        blocks += [Text(""), *_devices(found["devices"], quantised=found["quantised"])]
    return Group(*blocks)


def _memory(held: Mapping[str, int]) -> str:
    whole = show_bytes(sum(held.values()))
    return f"{whole} of memory: " + " + ".join(f"{name} {show_bytes(size)}" for name, size in held.items())


def measured(rows: Sequence[dict[str, Any]]) -> Fitted:
    """One measurement a row."""
    heads = ("measured here", "threads", "load", "p50", "p90", "p99", "a second", "memory", "runs")
    return Fitted(heads, [(row["runtime"], *cells(row)) for row in rows], yields=("runs", "p90", "load"))


def cells(row: Mapping[str, Any]) -> list[str]:
    """A measurement's figures: threads, load, p50, p90, p99, samples a second, memory, runs."""
    return [
        str(row["threads"]),
        MISSING if row["load_s"] is None else show_seconds(row["load_s"]),
        *(show_seconds(row[key]) for key in ("p50_s", "p90_s", "p99_s")),
        f"{row['images_per_s']:,.4g}" if row["images_per_s"] < _EXACT else f"{row['images_per_s']:,.0f}",
        show_bytes(row["peak_bytes"]),
        f"{row['runs']:,}{'*' if row['stopped_early'] else ''}",
    ]


_EXACT = 1000
# Below this share of a core, somebody else was busy.
_ALONE = 0.9


def _notes(found: Mapping[str, Any]) -> Iterator[Text]:
    warm = min(row["warmup"] for row in found["measured"])
    yield Text(
        f"each in a fresh process after {warm} calls or more to warm up; memory: what the process grew by",
        style="dim",
    )
    busy = min((row["core_share"] for row in found["measured"] if row["threads"] == 1), default=1.0)
    if busy < _ALONE:
        yield Text(
            f"other programs ran, too: one thread had {busy:.0%} of a core, so these times may be too long",
            style="yellow",
        )
    if any(row["stopped_early"] for row in found["measured"]):
        yield Text("* fewer calls than asked for: the time for them was over (--budget)", style="dim")
    by_threads: dict[int, list[dict[str, Any]]] = {}
    for row in found["measured"]:
        by_threads.setdefault(row["threads"], []).append(row)
    for threads, rows in by_threads.items():
        if len(rows) > 1:
            ratio = rows[1]["p50_s"] / rows[0]["p50_s"]
            word = "thread" if threads == 1 else "threads"
            sides = f"PyTorch's in fp32 over ONNX Runtime's in {found['precision']}"
            yield Text(f"p50, {sides}, {threads} {word}: {ratio:.2f}")
    if found["pytorch"]:
        yield Text(f"not compared with PyTorch: {found['pytorch']}", style="dim")


def _slowest(rows: Sequence[dict[str, Any]]) -> Fitted:
    cells = [(row["node"], row["op"], show_seconds(row["seconds"]), f"{row['share']:.1%}") for row in rows]
    return Fitted(("slowest operators", "type", "time", "share"), cells, left=("type",))


# Before a time: a guess is in it, or something is not.
_MARKS = {"assumed": "~", "none": ">"}
_MEANING = {
    "~": "what the start of a kernel takes is assumed in the device's file: no better than that guess",
    ">": "the device's file has nothing for the start of a kernel: at least this long, so these stand last",
}


def _devices(rows: Sequence[dict[str, Any]], *, quantised: bool) -> Iterator[RenderableType]:
    """The devices that have a price, the fastest first; the others, by the reason why not."""
    priced = sorted(
        (row for row in rows if not row["unknown"]), key=lambda row: (row["launch"] == "none", row["seconds"])
    )
    if priced:
        heads = ("predicted on", "time", "a second", "energy", "bound by", "fits", "type", "efficiencies of")
        cells = [_device(row) for row in priced]
        yield Fitted(heads, cells, left=heads[4:], yields=("efficiencies of", "a second", "type"))
        marks = {_MARKS.get(row["launch"]) for row in priced}
        for mark, meaning in _MEANING.items():
            if mark in marks:
                yield Text(f"{mark} {meaning}", style="dim")
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row["unknown"]:
            reason = row["unknown"].removeprefix(f"device {row['device']!r} ")
            reasons.setdefault(reason, []).append(row["device"])
    for reason, names in reasons.items():
        yield Text(f" {', '.join(names)}: {reason}", style="yellow")
    if quantised and "has no figure for int8" in reasons:
        yield Text(" --dtype fp32 prices the same graph in floats", style="dim")


def _device(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    rate = row["images_per_s"]
    return (
        row["device"],
        _MARKS.get(row["launch"], "") + show_seconds(row["seconds"]),
        f"{rate:,.3g}" if rate < _EXACT else f"{rate:,.0f}",
        _UNKNOWN if row["joules"] is None else show_joules(row["joules"]),
        _bounds(row["bounds"]),
        _UNKNOWN if row["fits"] is None else "yes" if row["fits"] else Text("no", style="red"),
        row["dtype"],
        row["figures"] or MISSING,
    )


def _bounds(bounds: Mapping[str, float]) -> str:
    """What bounds the time most, and its share."""
    name, seconds = max(bounds.items(), key=lambda one: one[1])
    return f"{name.removesuffix('_s')} {seconds / sum(bounds.values()):.0%}"
