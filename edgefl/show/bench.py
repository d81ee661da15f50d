"""What a model costs here and on devices: records, and tables of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from rich.console import Group, RenderableType

from edgefl.core.devices import Bounds
from edgefl.core.documents import INLINE
from edgefl.core.units import show_bytes, show_flops, show_joules, show_seconds, show_share
from edgefl.show.table import MISSING, UNKNOWN, Column, Line, Table, fits

# Rates from here on are shown without decimals.
_WHOLE_RATES = 1000
# Below this share of a core, other programs were busy.
_ALONE = 0.9


class Memory(NamedTuple):
    """Bytes that one call needs, by what they hold.

    Attributes:
        weights: all constants, as they are stored.
        activations: the most that inputs and results take at once, in the graph's order. Only fused results
            and views share memory. A runtime's own code and its copies of weights in other layouts come on
            top.
    """

    weights: int
    activations: int


@dataclass(frozen=True)
class Measured:
    """Calls of a model in one fresh process.

    Attributes:
        runtime: that ran the model, with its version.
        threads: it ran on.
        load_s: seconds to load the model; None if that was not timed.
        p50_s, p90_s, p99_s: percentiles of a call's seconds.
        images_per_s: samples per second, over all calls.
        peak_bytes: the most that the process grew by, from just before the model was loaded.
        core_share: CPU time over wall time; more than 1 on several threads.
        warmup: calls before those that count.
        runs: calls that count.
        stopped_early: whether the budget allowed fewer calls than asked for.
    """

    runtime: str
    threads: int
    load_s: float | None
    p50_s: float
    p90_s: float
    p99_s: float
    images_per_s: float
    peak_bytes: int
    core_share: float
    warmup: int
    runs: int
    stopped_early: bool


class OperatorTime(NamedTuple):
    """The median seconds of an operator, and its share of all operators' time."""

    node: str
    op: str
    seconds: float
    share: float


@dataclass(frozen=True)
class Price:
    """The time and energy of one call on a device.

    Attributes:
        dtype: the number types that the kernels run in.
        figures: the runtime whose figures are used; "training" if the file has none of inference.
        launch: the status of the launch overhead, or "none".
        seconds: of the call.
        bounds: the same, by what bounds the kernels.
        images_per_s: samples per second; None if no operator takes time.
        joules: at the device's active power; None if that is unknown.
    """

    dtype: str
    figures: str
    launch: str
    seconds: float
    bounds: Bounds
    images_per_s: float | None
    joules: float | None


@dataclass(frozen=True)
class Predicted:
    """One call on a device.

    Attributes:
        device: its name.
        category: its category, such as "phone" or "edge-gpu".
        unknown: why the device cannot price the model; empty if it can.
        price: time and energy; None if the device cannot price the model.
        memory_bytes: memory of the call.
        memory_share: the share of the device's usable memory; None if that is unknown.
        fits: whether it fits; None if the device's memory is unknown.
    """

    device: str
    category: str
    unknown: str
    price: Price | None = field(metadata={INLINE: Price})
    memory_bytes: int
    memory_share: float | None
    fits: bool | None


@dataclass(frozen=True)
class BenchResult:
    """What ``edgefl bench`` reports of a model.

    Attributes:
        model: the file.
        sha256: of its content.
        size_bytes: of the file.
        batch: samples per call.
        quantised: whether products run in int8.
        precision: of the file's weights.
        flops, kernels, moved_bytes: of one call.
        memory: of one call.
        measured: calls here.
        pytorch: why the model is not compared with PyTorch; empty if it is, or if nothing is measured.
        slowest: operators, the slowest first.
        devices: predictions.
    """

    model: str
    sha256: str
    size_bytes: int
    batch: int
    quantised: bool
    precision: str
    flops: int
    kernels: int
    moved_bytes: int
    memory: Memory
    measured: Sequence[Measured]
    pytorch: str
    slowest: Sequence[OperatorTime]
    devices: Sequence[Predicted]


def bench(result: BenchResult) -> RenderableType:
    """The model, its measurements, its slowest operators and its predictions."""
    batch = "one sample" if result.batch == 1 else f"{result.batch:,} samples"
    moved = f"{result.kernels:,} kernels, {show_bytes(result.moved_bytes)} moved"
    weights, activations = map(show_bytes, result.memory)
    memory = f"{show_bytes(sum(result.memory))} = weights {weights} + activations {activations}"
    blocks: list[RenderableType] = [
        Line(f"{result.model}: {show_bytes(result.size_bytes)}{', int8' if result.quantised else ''}"),
        Line(f"{batch}: {show_flops(result.flops)}, {moved}"),
        Line(f"memory: {memory}"),
    ]
    if result.measured:
        table = Table([Column("measured here", "runtime"), *FIGURES], result.measured)
        blocks += [Line(), table, *_notes(result)]
    if result.slowest:
        blocks += [Line(), Table(_OPERATORS, result.slowest)]
    if result.devices:
        blocks += [Line(), *_devices(result.devices, quantised=result.quantised)]
    return Group(*blocks)


def _rate(per_second: float, digits: int = 4) -> str:
    return f"{per_second:,.{digits}g}" if per_second < _WHOLE_RATES else f"{per_second:,.0f}"


def _notes(result: BenchResult) -> Iterator[Line]:
    """How the measurements were made, and how PyTorch compares."""
    rows = result.measured
    warm = min(row.warmup for row in rows)
    yield Line(
        f"each in a fresh process after at least {warm} warm-up calls; memory: growth of the process",
        "dim",
    )
    busy = min((row.core_share for row in rows if row.threads == 1), default=1.0)
    if busy < _ALONE:
        yield Line(
            f"other programs were running: one thread had {show_share(busy)} of a core, "
            "so times may be too long",
            "yellow",
        )
    if any(row.stopped_early for row in rows):
        yield Line("* fewer calls than asked for: the time budget was used up (--budget)", "dim")
    by_threads: dict[int, list[Measured]] = {}
    for row in rows:
        by_threads.setdefault(row.threads, []).append(row)
    for threads, (in_onnx, *in_torch) in by_threads.items():
        if in_torch:
            ratio = in_torch[0].p50_s / in_onnx.p50_s
            suffix = f"{threads} {'thread' if threads == 1 else 'threads'}: {ratio:.2f}"
            yield Line(f"p50 ratio, PyTorch in fp32 / ONNX Runtime in {result.precision}, {suffix}")
    if result.pytorch:
        yield Line(f"not compared with PyTorch: {result.pytorch}", "dim")


_OPERATORS = [
    Column("slowest operators", "node"),
    Column("type", "op", left=True),
    Column("time", "seconds", show_seconds),
    Column("share", "share", partial(show_share, digits=1)),
]
# A measurement's figures.
FIGURES = [
    Column("threads", "threads"),
    Column("load", "load_s", show_seconds),
    Column("p50", "p50_s", show_seconds),
    Column("p90", "p90_s", show_seconds),
    Column("p99", "p99_s", show_seconds),
    Column("samples/s", "images_per_s", _rate),
    Column("memory", "peak_bytes", show_bytes),
    Column("runs", lambda row: f"{row.runs:,}{'*' if row.stopped_early else ''}"),
]
# Before a time whose launch overhead is a guess, or missing.
_MARKS = {"assumed": "~", "none": ">"}
_MEANING = {
    "~": "launch overhead is assumed in the device's file; the time is no better than that guess",
    ">": "launch overhead unknown; the time is a lower bound, so it is listed last",
}

_LAUNCHES = "launch: the time to start kernels; a GPU takes no less than a CPU, however small they are"


def _devices(rows: Sequence[Predicted], *, quantised: bool) -> Iterator[RenderableType]:
    """The devices with a price, the fastest first; the others, by the reason why they have none."""
    priced = [(row, row.price) for row in rows if row.price]
    if priced:
        priced.sort(key=lambda one: (one[1].launch == "none", one[1].seconds))
        yield Table(_DEVICES, [row for row, _ in priced])
        marks = {_MARKS.get(price.launch) for _, price in priced}
        if any(
            row.category.endswith("gpu") and price.bounds.launch_s > price.seconds / 2
            for row, price in priced
        ):
            yield Line(_LAUNCHES, "dim")
        for mark, meaning in _MEANING.items():
            if mark in marks:
                yield Line(f"{mark} {meaning}", "dim")
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.unknown:
            reason = row.unknown.removeprefix(f"device {row.device!r} ").removeprefix("has ")
            reasons.setdefault(reason, []).append(row.device)
    for reason, names in reasons.items():
        yield Line(f" {', '.join(names)}: {reason}", "yellow")
    if quantised and any("int8" in reason for reason in reasons):
        yield Line(" --dtype fp32 prices the same graph in floats", "dim")


def _bound(price: Price) -> str:
    """What bounds most of the time, and its share."""
    bound, seconds = max(price.bounds._asdict().items(), key=lambda one: one[1])
    if not seconds:
        return MISSING
    return f"{bound.removesuffix('_s')} {show_share(seconds / price.seconds)}"


_DEVICES = [
    Column("predicted on", "device"),
    Column("time", lambda row: _MARKS.get(row.price.launch, "") + show_seconds(row.price.seconds)),
    Column("samples/s", "price.images_per_s", partial(_rate, digits=3)),
    Column("energy", "price.joules", show_joules, missing=UNKNOWN),
    Column("bound by", "price", _bound, left=True),
    Column("fits", "fits", fits, left=True, missing=UNKNOWN),
    Column("type", "price.dtype", left=True),
    Column("runtime", lambda row: row.price.figures or None, left=True),
]
