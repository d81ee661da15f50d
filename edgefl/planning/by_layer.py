"""An exchange layer by layer, priced on devices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

from edgefl.core.corners import Interval
from edgefl.core.cost import FORWARD, GRAD_INPUT, GRAD_WEIGHT, Work
from edgefl.core.layers import ExchangeLayers, LayerWork
from edgefl.core.ledger import total
from edgefl.core.price import Price
from edgefl.core.pricer import Pricer
from edgefl.planning.costs import ExchangeLayer, LayerPrice, LayerPrices, OtherPrice, OtherWork


def shown(found: ExchangeLayers) -> tuple[list[ExchangeLayer], list[OtherWork]]:
    """The layers, and the work outside of them, as records without a device."""
    layers = [
        ExchangeLayer(
            layer=one.name,
            kind=one.kind,
            flops={role: one.work.get(role, Work()).flops for role in (FORWARD, GRAD_INPUT, GRAD_WEIGHT)},
            kernels=_launches(one),
            moved_bytes=_moved(one),
            parameter_bytes=one.parameter_bytes,
            gradient_bytes=one.gradient_bytes,
            activation_bytes=one.activation_bytes,
            memory_bytes=one.memory_bytes,
        )
        for one in found.layers
    ]
    others = [
        OtherWork(
            work=one.name,
            flops=sum(work.flops for work in one.work.values()),
            kernels=_launches(one),
            moved_bytes=_moved(one),
            activation_bytes=one.activation_bytes,
        )
        for one in found.others
    ]
    return layers, others


def _launches(one: LayerWork) -> int:
    return sum(work.launches for work in one.work.values())


def _moved(one: LayerWork) -> int:
    return sum(work.bytes for work in one.work.values())


def priced(found: ExchangeLayers, pricer: Pricer, price: Price) -> LayerPrices:
    """Every layer's times and energy, and what else the exchange takes; together, the exchange's price.

    A layer's energy is that of the whole device while it computes, idle power included.

    Args:
        found: the exchange layer by layer.
        pricer: of the device and number type.
        price: of the whole exchange.
    """
    layers, others = [], []
    for one in found.layers:
        figures, intervals = _figures(pricer, price, partial(_in_layer, one=one))
        memory_bytes = pricer.in_dtype(one.memory_bytes)
        layers.append(LayerPrice(one.name, **figures, memory_bytes=memory_bytes, intervals=intervals))
    for one in found.others:
        figures, intervals = _figures(pricer, price, partial(_outside, one=one))
        others.append(OtherPrice(one.name, **figures, intervals=intervals))
    return LayerPrices(layers, [*others, *_transfers(pricer, price)])


Figures: TypeAlias = dict[str, Any]
"""Seconds and joules by name; None for unknown ones."""
Bounded: TypeAlias = Mapping[str, Interval] | None


def _figures(
    pricer: Pricer, price: Price, figures: Callable[[Pricer, Price], Figures]
) -> tuple[Figures, Bounded]:
    """The figures of a part of an exchange, and their bounds where the corners differ."""
    here = figures(pricer, price)
    if price.corners is None:
        return here, None
    cheap, costly = map(figures, pricer.corners or (pricer, pricer), price.corners)
    # A lower bound of the whole is one of each part.
    bounded = not math.isnan(price.corners[1].compute_s)
    return here, {key: Interval.of(cheap[key], costly[key] if bounded else None) for key in here}


def _in_layer(pricer: Pricer, price: Price, one: LayerWork) -> Figures:
    times = {role: pricer.seconds(work) for role, work in one.work.items()}
    return {
        "forward_s": times.get(FORWARD, 0.0),
        "grad_input_s": times.get(GRAD_INPUT, 0.0),
        "grad_weight_s": times.get(GRAD_WEIGHT, 0.0),
        "joules": price.working_j(sum(times.values())),
    }


def _outside(pricer: Pricer, price: Price, one: LayerWork) -> Figures:
    seconds = sum(pricer.seconds(work) for work in one.work.values())
    return {"seconds": seconds, "joules": price.working_j(seconds)}


def _transfers(pricer: Pricer, price: Price) -> Iterable[OtherPrice]:
    for name, part in _TRANSFERS.items():
        figures, intervals = _figures(pricer, price, part)
        if name != _TAIL or figures["joules"] != 0:
            yield OtherPrice(name, **figures, intervals=intervals)


def _downloading(_: Pricer, price: Price) -> Figures:
    receive = price.charges[0]
    return {"seconds": price.down_s, "joules": total(receive.active_j, receive.idle_j)}


def _uploading(_: Pricer, price: Price) -> Figures:
    transmit = price.charges[2]
    return {"seconds": price.up_s, "joules": total(transmit.active_j, transmit.idle_j)}


def _tails(_: Pricer, price: Price) -> Figures:
    return {"seconds": 0.0, "joules": price.energy.tail_j}


_TAIL = "radio tail"
_TRANSFERS: Mapping[str, Callable[[Pricer, Price], Figures]] = {
    "download": _downloading,
    "upload": _uploading,
    _TAIL: _tails,
}
