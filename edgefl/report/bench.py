"""What a model costs here and on devices, as tables that fit 100 columns; see ``edgefl.export.bench``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from edgefl.core.units import show_bytes, show_flops, show_joules, show_seconds
from edgefl.report.fitted import Cell, Fitted

_NOTHING = "-"
_UNKNOWN = "unknown"
# Rates from here on are shown without decimals.
_WHOLE_RATES = 1000
# Below this share of a core, other programs were busy.
_ALONE = 0.9


def bench(result: Mapping[str, Any]) -> RenderableType:
    """The model, its measurements, its slowest operators and its predictions."""
    batch = "one sample" if result["batch"] == 1 else f"{result['batch']:,} samples"
    moved = f"{result['kernels']:,} kernels, {show_bytes(result['moved_bytes'])} moved"
    memory = result["memory"]
    parts = " + ".join(f"{name} {show_bytes(size)}" for name, size in memory.items())
    blocks: list[RenderableType] = [
        Text(
            f"{result['model']}: {show_bytes(result['size_bytes'])}{', int8' if result['quantised'] else ''}"
        ),
        Text(f"{batch}: {show_flops(result['flops'])}, {moved}"),
        Text(f"memory: {show_bytes(sum(memory.values()))} = {parts}"),
    ]
    if result["measured"]:
        heads = ("measured here", "threads", "load", "p50", "p90", "p99", "samples/s", "memory", "runs")
        rows = [(row["runtime"], *cells(row)) for row in result["measured"]]
        blocks += [Text(""), Fitted(heads, rows, yields=("runs", "p90", "load")), *_notes(result)]
    if result["slowest"]:
        blocks += [Text(""), _slowest(result["slowest"])]
    if result["devices"]:
        blocks += [Text(""), *_devices(result["devices"], quantised=result["quantised"])]
    return Group(*blocks)


def cells(row: Mapping[str, Any]) -> list[str]:
    """A measurement's figures: threads, load, p50, p90, p99, samples per second, memory, runs."""
    return [
        str(row["threads"]),
        _NOTHING if row["load_s"] is None else show_seconds(row["load_s"]),
        *(show_seconds(row[key]) for key in ("p50_s", "p90_s", "p99_s")),
        _rate(row["images_per_s"], digits=4),
        show_bytes(row["peak_bytes"]),
        f"{row['runs']:,}{'*' if row['stopped_early'] else ''}",
    ]


def _rate(per_second: float, *, digits: int) -> str:
    return f"{per_second:,.{digits}g}" if per_second < _WHOLE_RATES else f"{per_second:,.0f}"


def _notes(result: Mapping[str, Any]) -> Iterator[Text]:
    """How the measurements were made, and how PyTorch compares."""
    rows = result["measured"]
    warm = min(row["warmup"] for row in rows)
    yield Text(
        f"each in a fresh process after at least {warm} warm-up calls; memory: growth of the process",
        style="dim",
    )
    busy = min((row["core_share"] for row in rows if row["threads"] == 1), default=1.0)
    if busy < _ALONE:
        yield Text(
            f"other programs were running: one thread had {busy:.0%} of a core, so times may be too long",
            style="yellow",
        )
    if any(row["stopped_early"] for row in rows):
        yield Text("* fewer calls than asked for: the time budget was used up (--budget)", style="dim")
    by_threads: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        by_threads.setdefault(row["threads"], []).append(row)
    for threads, (in_onnx, *in_torch) in by_threads.items():
        if in_torch:
            ratio = in_torch[0]["p50_s"] / in_onnx["p50_s"]
            suffix = f"{threads} {'thread' if threads == 1 else 'threads'}: {ratio:.2f}"
            yield Text(f"p50 ratio, PyTorch in fp32 / ONNX Runtime in {result['precision']}, {suffix}")
    if result["pytorch"]:
        yield Text(f"not compared with PyTorch: {result['pytorch']}", style="dim")


def _slowest(rows: Sequence[Mapping[str, Any]]) -> Fitted:
    cells = [(row["node"], row["op"], show_seconds(row["seconds"]), f"{row['share']:.1%}") for row in rows]
    return Fitted(("slowest operators", "type", "time", "share"), cells, left=("type",))


# Before a time whose launch overhead is a guess, or missing.
_MARKS = {"assumed": "~", "none": ">"}
_MEANING = {
    "~": "launch overhead is assumed in the device's file; the time is no better than that guess",
    ">": "launch overhead unknown; the time is a lower bound, so it is listed last",
}


def _devices(rows: Sequence[Mapping[str, Any]], *, quantised: bool) -> Iterator[RenderableType]:
    """The devices with a time, the fastest first; the others, by the reason why they have none."""
    priced = sorted(
        (row for row in rows if not row["unknown"]), key=lambda row: (row["launch"] == "none", row["seconds"])
    )
    if priced:
        heads = ("predicted on", "time", "samples/s", "energy", "bound by", "fits", "type", "efficiencies of")
        cells = [_device(row) for row in priced]
        yield Fitted(heads, cells, left=heads[4:], yields=("efficiencies of", "samples/s", "type"))
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
    if quantised and any("int8" in reason for reason in reasons):
        yield Text(" --dtype fp32 prices the same graph in floats", style="dim")


def _device(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    bounds = row["bounds"]
    name, seconds = max(bounds.items(), key=lambda one: one[1])
    return (
        row["device"],
        _MARKS.get(row["launch"], "") + show_seconds(row["seconds"]),
        _rate(row["images_per_s"], digits=3),
        _UNKNOWN if row["joules"] is None else show_joules(row["joules"]),
        f"{name.removesuffix('_s')} {seconds / sum(bounds.values()):.0%}",
        _UNKNOWN if row["fits"] is None else "yes" if row["fits"] else Text("no", style="red"),
        row["dtype"],
        row["figures"] or _NOTHING,
    )
