"""ONNX files: how they were verified, what they cost here and on devices, and what they make of images."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.console import Group, RenderableType

from edgefl.core.devices import Bounds
from edgefl.core.documents import INLINE
from edgefl.core.units import show_bytes, show_count, show_flops, show_joules, show_seconds, show_share
from edgefl.show.table import MISSING, UNKNOWN, Column, Line, Table, fits

_to_tenths, _to_hundredths = partial(show_share, digits=1), partial(show_share, digits=2)


@dataclass(frozen=True)
class Parity:
    """How an exported model compares with a reference: PyTorch, except where two files are compared.

    Attributes:
        max_error: of the logits, over all samples and the batch sizes 1, 2, 7 and 64.
        agreement: the share of samples with the same largest logit.
        passed: whether both compute the same: errors within the tolerances, and the same class everywhere.
    """

    samples: int
    max_error: float
    within: bool
    rtol: float
    atol: float
    agreement: float
    accuracy: float
    torch_accuracy: float
    passed: bool


@dataclass(frozen=True)
class Compact:
    """How a smaller model compares with the float32 one, both in ONNX Runtime.

    Attributes:
        latency_ms, fp32_latency_ms: median times of one image on one thread here, measured in alternation.
        calibrated_on: training samples that gave the ranges of activations; None without calibration.
        drop: the accuracy lost; negative if some was gained.
    """

    samples: int
    accuracy: float
    fp32_accuracy: float
    agreement: float
    fp32_bytes: int
    latency_ms: float
    fp32_latency_ms: float
    calibrated_on: int | None
    drop: float


@dataclass(frozen=True)
class Exported:
    """A verified model in a file.

    Attributes:
        client: the client whose model it is; None for the global model.
        parity: float32 ONNX model against PyTorch.
        reported: the accuracy that the run reported for this model; None if it reported none.
        precision: of the file's weights.
        compact: the file against the float32 model; None for a float32 file.
        standing: caveats, such as that the client never trained; empty if there are none.
    """

    path: Path
    card: Path
    client: int | None
    size_bytes: int
    parity: Parity
    reported: float | None
    precision: str = "fp32"
    compact: Compact | None = None
    standing: str = ""


def exports(models: Sequence[Exported]) -> RenderableType:
    """Tables with a row for each model; where smaller files were written, float32 ones are references."""
    smaller = [one for one in models if one.compact]
    first = "float32, not written" if smaller else "float32"
    named = Column(first, lambda one: _whose(one) if one.compact else one.path.name)
    parts: list[RenderableType] = [Table([named, *_PARITY], models)]
    if smaller:
        against = "same class, drop and in float32: compared with the float32 model, both in ONNX Runtime"
        parts += [Line(), Table(_COMPACT, smaller), Line(against, "dim")]
    standings: dict[str, list[str]] = {}
    for one in models:
        standings.setdefault(one.standing, []).append(_whose(one))
    told = (f"{', '.join(whose)}: {standing}" for standing, whose in standings.items() if standing)
    return Group(*parts, *(Line(text, "yellow") for text in told))


_PARITY = [
    Column("size", lambda one: one.compact.fp32_bytes if one.compact else one.size_bytes, show_bytes),
    Column("samples", "parity.samples", "{:,}".format),
    Column("max error", "parity.max_error", "{:.1e}".format),
    # Always 100%: no other model passes.
    Column("same class", "parity.agreement", show_share),
    Column("accuracy", "parity.accuracy", _to_hundredths),
    Column("PyTorch", "parity.torch_accuracy", _to_hundredths),
    Column("reported", "reported", _to_hundredths),
]
_COMPACT = [
    Column("file", "path.name"),
    Column("size", "size_bytes", show_bytes),
    Column("of float32", lambda one: one.size_bytes / one.compact.fp32_bytes, show_share),
    Column("same class", "compact.agreement", _to_tenths),
    Column("accuracy", "compact.accuracy", _to_hundredths),
    Column("drop", "compact.drop", _to_hundredths),
    Column("1 image", lambda one: one.compact.latency_ms / 1000, show_seconds),
    Column("in float32", lambda one: one.compact.fp32_latency_ms / 1000, show_seconds),
]


def _whose(one: Exported) -> str:
    return "global" if one.client is None else f"client {one.client}"


class MemoryFigures(NamedTuple):
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
class MeasuredCalls:
    """Calls of a model in one fresh process.

    Attributes:
        load_s: None if loading the model was not timed.
        p50_s, p90_s, p99_s: percentiles of a call's seconds.
        images_per_s: samples per second, over all calls.
        peak_bytes: the most that the process grew by, from just before the model was loaded.
        core_share: CPU time over wall time; more than 1 on several threads.
        warmup, runs: calls before those that count, and those.
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
class BoardPrice:
    """The time and energy of one call on a device.

    Attributes:
        dtype: the number types that the kernels run in.
        figures: the runtime whose figures are used; "training" if the file has none of inference.
        launch: the status of the launch overhead, or "none".
        bounds: the seconds by what bounds the kernels.
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
        category: such as "phone" or "edge-gpu".
        unknown: why the device cannot price the model, which has no price then; empty if it can.
        memory_share: of the device's usable memory; None, as ``fits``, if that is unknown.
    """

    device: str
    category: str
    unknown: str
    price: BoardPrice | None = field(metadata={INLINE: BoardPrice})
    memory_bytes: int
    memory_share: float | None
    fits: bool | None


@dataclass(frozen=True)
class BenchResult:
    """What ``edgefl bench`` reports of a model.

    Attributes:
        quantised: whether products run in int8.
        flops, kernels, moved_bytes, memory: of one call, which has ``batch`` samples.
        pytorch: why the model is not compared with PyTorch; empty if it is, or if nothing is measured.
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
    memory: MemoryFigures
    measured: Sequence[MeasuredCalls]
    pytorch: str
    slowest: Sequence[OperatorTime]
    devices: Sequence[Predicted]


def _rate(per_second: float, digits: int = 4) -> str:
    """Rates of four digits are shown without decimals."""
    return f"{per_second:,.0f}" if per_second >= 1000 else f"{per_second:,.{digits}g}"  # noqa: PLR2004


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
_OPERATORS = [
    Column("slowest operators", "node"),
    Column("type", "op", left=True),
    Column("time", "seconds", show_seconds),
    Column("share", "share", _to_tenths),
]
# Before a time whose launch overhead is a guess, or missing.
_MARKS = {"assumed": "~", "none": ">"}
_MEANING = {
    "~": "launch overhead is assumed in the device's file; the time is no better than that guess",
    ">": "launch overhead unknown; the time is a lower bound, so it is listed last",
}
_LAUNCHES = "launch: the time to start kernels; a GPU takes no less than a CPU, however small they are"
# Below this share of a core, other programs were busy.
_ALONE = 0.9


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
        blocks += [Line(), table, *_about_measured(result)]
    if result.slowest:
        blocks += [Line(), Table(_OPERATORS, result.slowest)]
    if result.devices:
        blocks += [Line(), *_devices(result.devices, quantised=result.quantised)]
    return Group(*blocks)


def _about_measured(result: BenchResult) -> Iterator[Line]:
    rows = result.measured
    warm = min(row.warmup for row in rows)
    how = f"each in a fresh process after at least {warm} warm-up calls; memory: growth of the process"
    yield Line(how, "dim")
    busy = min((row.core_share for row in rows if row.threads == 1), default=1.0)
    if busy < _ALONE:
        had = f"one thread had {show_share(busy)} of a core, so times may be too long"
        yield Line(f"other programs were running: {had}", "yellow")
    if any(row.stopped_early for row in rows):
        yield Line("* fewer calls than asked for: the time budget was used up (--budget)", "dim")
    by_threads: dict[int, list[MeasuredCalls]] = {}
    for row in rows:
        by_threads.setdefault(row.threads, []).append(row)
    for threads, (in_onnx, *in_torch) in by_threads.items():
        if in_torch:
            ratio = f"{show_count(threads, 'thread')}: {in_torch[0].p50_s / in_onnx.p50_s:.2f}"
            yield Line(f"p50 ratio, PyTorch in fp32 / ONNX Runtime in {result.precision}, {ratio}")
    if result.pytorch:
        yield Line(f"not compared with PyTorch: {result.pytorch}", "dim")


def _devices(rows: Sequence[Predicted], *, quantised: bool) -> Iterator[RenderableType]:
    """The devices with a price, the fastest first; the others, by the reason why they have none."""
    priced = [(row, row.price) for row in rows if row.price]
    if priced:
        priced.sort(key=lambda one: (one[1].launch == "none", one[1].seconds))
        yield Table(_DEVICES, [row for row, _ in priced])
        gpus = (price for row, price in priced if row.category.endswith("gpu"))
        if any(price.bounds.launch_s > price.seconds / 2 for price in gpus):
            yield Line(_LAUNCHES, "dim")
        marks = {_MARKS.get(price.launch) for _, price in priced}
        yield from (Line(f"{mark} {told}", "dim") for mark, told in _MEANING.items() if mark in marks)
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.unknown:
            reason = row.unknown.removeprefix(f"device {row.device!r} ").removeprefix("has ")
            reasons.setdefault(reason, []).append(row.device)
    yield from (Line(f" {', '.join(names)}: {reason}", "yellow") for reason, names in reasons.items())
    if quantised and any("int8" in reason for reason in reasons):
        yield Line(" --dtype fp32 prices the same graph in floats", "dim")


def _bound(price: BoardPrice) -> str:
    """What bounds most of the time, and its share."""
    bound, seconds = max(price.bounds._asdict().items(), key=lambda one: one[1])
    return f"{bound.removesuffix('_s')} {show_share(seconds / price.seconds)}" if seconds else MISSING


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


class ClassProbability(NamedTuple):
    """A class by its name, and the probability the model gives it."""

    name: str
    probability: float


@dataclass(frozen=True)
class ImageClasses:
    """An image's file, what was done to it to fit the model, if anything was, and its likeliest classes."""

    file: str
    changes: str
    classes: Sequence[ClassProbability]


@dataclass(frozen=True)
class Inference:
    """A model's file, the (channels, height, width) that it takes, and what it made of images."""

    model: str
    shape: tuple[int, int, int]
    images: Sequence[ImageClasses]


def inference(results: Inference) -> RenderableType:
    """A table with a row for each image, named below the innermost folder that holds all of them."""
    above = os.path.commonpath([Path(image.file).absolute().parent for image in results.images])
    columns = [
        Column("image", lambda image: Path(image.file).absolute().relative_to(above)),
        Column("class", lambda image: image.classes[0].name, left=True),
        Column("probability", lambda image: image.classes[0].probability, _to_tenths),
        Column("next", _next, left=True),
        Column("changed", lambda image: image.changes or None, left=True),
    ]
    return Table(columns, results.images)


def _next(image: ImageClasses) -> str | None:
    return ", ".join(f"{name} {_to_tenths(share)}" for name, share in image.classes[1:]) or None
