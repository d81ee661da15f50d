"""An exchange layer by layer: one table of work and memory, and one of time and energy for each device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.console import Group, RenderableType

from edgefl.core.corners import Interval, together
from edgefl.core.cost import FORWARD, GRAD_INPUT, GRAD_WEIGHT
from edgefl.core.layers import ModelLayers
from edgefl.core.ledger import total
from edgefl.core.units import show_bytes, show_flops, show_seconds
from edgefl.planning.costs import (
    DeviceCost,
    ExchangeCost,
    ExchangeLayer,
    LayerPrice,
    LayerPrices,
    OtherPrice,
    OtherWork,
)
from edgefl.show.table import MISSING, Cell, Line, Table
from edgefl.show.values import AT_LEAST, between


def by_layer(work: ExchangeCost, rows: Sequence[tuple[str, DeviceCost]]) -> Iterator[RenderableType]:
    """An exchange's layers: what they do, and what they take on each device.

    Args:
        work: the exchange, with its layers.
        rows: the devices that have a price, by the names to show.
    """
    if not work.layers and not work.other_work:
        return
    if work.layers:
        yield Line(f"{work.exchange}, {work.model}, layer by layer: {work.steps:,} steps", "bold")
        yield Table(_LAYER.items(), work.layers)
        yield Line(
            "FLOPs of forward, grad-input and grad-weight; weights, their gradients and kept results in fp32",
            "dim",
        )
    if work.other_work:
        yield Line()
        yield Table(_OTHER.items(), work.other_work)
    for name, row in rows:
        if row.by_layer:
            yield Line()
            yield from _on(name, row.by_layer)
    yield Line()


def _on(name: str, found: LayerPrices) -> Iterator[RenderableType]:
    yield Line(name, "bold")
    if found.layers:
        yield Table(_PRICED.items(), found.layers)
        yield Line()
    yield Table(_OTHERS.items(), _totals(found))


def _totals(found: LayerPrices) -> list[OtherPrice]:
    """All layers as one row, everything else, and the sum of these."""
    layers = _sum("all layers", [(one, _TIMES) for one in found.layers])
    rows = [*([layers] if found.layers else []), *found.others]
    return [*rows, _sum("together", [(row, ("seconds",)) for row in rows])]


_TIMES = ("forward_s", "grad_input_s", "grad_weight_s")


def _sum(name: str, parts: Sequence[tuple[LayerPrice | OtherPrice, Sequence[str]]]) -> OtherPrice:
    """Parts as one row, each with the names of its times."""
    seconds = sum(getattr(part, time) for part, times in parts for time in times)
    joules = total(*(part.joules for part, _ in parts))
    if all(part.intervals is None for part, _ in parts):
        return OtherPrice(name, seconds, joules)
    bounds = {
        "seconds": together(_bounds(part, time) for part, times in parts for time in times),
        "joules": together(_bounds(part, "joules") for part, _ in parts),
    }
    return OtherPrice(name, seconds, joules, bounds)


def _bounds(part: LayerPrice | OtherPrice, name: str) -> Interval:
    """The bounds of a part's figure; of no width where it has none."""
    value = getattr(part, name)
    return part.intervals[name] if part.intervals else Interval.of(value, value)


def _count(value: int) -> str:
    """Operations without their unit, which the column has."""
    return show_flops(value).replace("FLOP", "").rstrip() if value else MISSING


def _bytes(value: int) -> str:
    return show_bytes(value) if value else MISSING


def _seconds(part: LayerPrice, name: str) -> str:
    """A layer's time; as a lower bound where it is one. Other bounds stand in the totals, to be short."""
    value, bounds = getattr(part, name), part.intervals[name] if part.intervals else None
    least = AT_LEAST if bounds is not None and bounds.high is None else ""
    return f"{least}{show_seconds(value)}" if value else MISSING


def _joules(part: LayerPrice) -> str:
    """A layer's energy; its bounds where it is unknown."""
    bounds = part.intervals["joules"] if part.intervals and part.joules is None else None
    return between(part.joules, bounds, "J")


def _time(part: OtherPrice) -> str:
    bounds = part.intervals["seconds"] if part.intervals else None
    return between(part.seconds, bounds, "s") if part.seconds else MISSING


def _energy(part: OtherPrice) -> str:
    return between(part.joules, part.intervals["joules"] if part.intervals else None, "J")


_LAYER: dict[str, Callable[[ExchangeLayer], Cell]] = {
    "layer": lambda row: row.layer,
    "forward": lambda row: _count(row.flops[FORWARD]),
    "grad\ninput": lambda row: _count(row.flops[GRAD_INPUT]),
    "grad\nweight": lambda row: _count(row.flops[GRAD_WEIGHT]),
    "kernels": lambda row: f"{row.kernels:,}",
    "moved": lambda row: _bytes(row.moved_bytes),
    "weights": lambda row: _bytes(row.parameter_bytes),
    "gradients": lambda row: _bytes(row.gradient_bytes),
    "kept": lambda row: _bytes(row.activation_bytes),
}
_OTHER: dict[str, Callable[[OtherWork], Cell]] = {
    "other work": lambda row: row.work,
    "FLOPs": lambda row: _count(row.flops),
    "kernels": lambda row: f"{row.kernels:,}",
    "moved": lambda row: _bytes(row.moved_bytes),
    "kept": lambda row: _bytes(row.activation_bytes),
}
_PRICED: dict[str, Callable[[LayerPrice], Cell]] = {
    "layer": lambda row: row.layer,
    "forward": lambda row: _seconds(row, "forward_s"),
    "grad\ninput": lambda row: _seconds(row, "grad_input_s"),
    "grad\nweight": lambda row: _seconds(row, "grad_weight_s"),
    "energy": _joules,
    "memory": lambda row: _bytes(row.memory_bytes),
}
_OTHERS: dict[str, Callable[[OtherPrice], Cell]] = {
    "": lambda row: row.work,
    "time": _time,
    "energy": _energy,
}


def checked(models: Sequence[ModelLayers]) -> RenderableType:
    """Each model's forward pass on one sample, as fvcore and as the tracer count it."""
    return Group(
        *(
            Line(
                f"{model.model}, forward, one sample, convolutions and linear layers: "
                f"fvcore {show_flops(model.fvcore_flops)}, traced {show_flops(model.traced_flops)}"
            )
            for model in models
        )
    )
