"""An exchange layer by layer: one table of work and memory, and one of time and energy for each device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from rich.console import Group, RenderableType

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
from edgefl.report.tables import MISSING, Cell, Fitted, Line, joules

AT_LEAST = ">"
"""Stands before a time that is a lower bound."""


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
        yield Fitted(work.layers, _LAYER, yields=("moved", "kernels"))
        yield Line(
            "FLOPs of forward, grad-input and grad-weight; weights, their gradients and kept results in fp32",
            "dim",
        )
    if work.other_work:
        yield Line()
        yield Fitted(work.other_work, _OTHER)
    for name, row in rows:
        yield Line()
        yield from _on(name, row)
    yield Line()


def _on(name: str, row: DeviceCost) -> Iterator[RenderableType]:
    if row.by_layer is None:
        yield Line(f"{name}: only times of whole steps are known, so none of layers", "yellow")
        return
    found, least = row.by_layer, AT_LEAST if row.launch == "none" else ""
    yield Line(name, "bold")
    if found.layers:
        yield Fitted(found.layers, {head: partial(cell, least) for head, cell in _PRICED.items()})
        yield Line()
    yield Fitted(_totals(found), {head: partial(cell, least) for head, cell in _OTHERS.items()})


def _totals(found: LayerPrices) -> list[OtherPrice]:
    """All layers as one row, everything else, and the sum of these."""
    seconds = sum(one.forward_s + one.grad_input_s + one.grad_weight_s for one in found.layers)
    layers = OtherPrice("all layers", seconds, total(*(one.joules for one in found.layers)))
    rows = [*([layers] if found.layers else []), *found.others]
    whole = OtherPrice("together", sum(row.seconds for row in rows), total(*(row.joules for row in rows)))
    return [*rows, whole]


def _count(value: int) -> str:
    """Operations without their unit, which the column has."""
    return show_flops(value).replace("FLOP", "").rstrip() if value else MISSING


def _bytes(value: int) -> str:
    return show_bytes(value) if value else MISSING


def _seconds(least: str, value: float) -> str:
    return f"{least}{show_seconds(value)}" if value else MISSING


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
_PRICED: dict[str, Callable[[str, LayerPrice], Cell]] = {
    "layer": lambda _, row: row.layer,
    "forward": lambda least, row: _seconds(least, row.forward_s),
    "grad\ninput": lambda least, row: _seconds(least, row.grad_input_s),
    "grad\nweight": lambda least, row: _seconds(least, row.grad_weight_s),
    "energy": lambda _, row: joules(row.joules),
    "memory": lambda _, row: _bytes(row.memory_bytes),
}
_TRANSFERS = ("download", "upload")
_OTHERS: dict[str, Callable[[str, OtherPrice], Cell]] = {
    "": lambda _, row: row.work,
    "time": lambda least, row: _seconds("" if row.work in _TRANSFERS else least, row.seconds),
    "energy": lambda _, row: joules(row.joules),
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
