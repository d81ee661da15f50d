"""An exchange layer by layer, priced on devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from edgefl.core.cost import FORWARD, GRAD_INPUT, GRAD_WEIGHT, Work
from edgefl.core.layers import ExchangeLayers, LayerWork
from edgefl.core.ledger import total
from edgefl.core.price import Price, Pricer
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


def priced(found: ExchangeLayers, pricer: Pricer, price: Price) -> LayerPrices | None:
    """Every layer's times and energy, and what else the exchange takes; together, the exchange's price.

    A layer's energy is that of the whole device while it computes, idle power included.

    Args:
        found: the exchange layer by layer.
        pricer: of the device and number type.
        price: of the whole exchange.

    Returns:
        None where the device knows the times of whole steps alone.
    """
    if not pricer.times_kernels:
        return None
    layers, others = [], []
    for one in found.layers:
        times = _times(pricer, one.work)
        layers.append(
            LayerPrice(
                layer=one.name,
                forward_s=times.get(FORWARD, 0.0),
                grad_input_s=times.get(GRAD_INPUT, 0.0),
                grad_weight_s=times.get(GRAD_WEIGHT, 0.0),
                joules=price.working_j(sum(times.values())),
                memory_bytes=pricer.in_dtype(one.memory_bytes),
            )
        )
    for one in found.others:
        seconds = sum(_times(pricer, one.work).values())
        others.append(OtherPrice(one.name, seconds, price.working_j(seconds)))
    return LayerPrices(layers, [*others, *_transfers(price)])


def _times(pricer: Pricer, work: Mapping[str, Work]) -> dict[str, float]:
    """Seconds by role of the kernels."""
    return {role: pricer.seconds(kernels) for role, kernels in work.items()}


def _transfers(price: Price) -> Iterable[OtherPrice]:
    receive, _, transmit = price.charges
    yield OtherPrice("download", price.down_s, total(receive.active_j, receive.idle_j))
    yield OtherPrice("upload", price.up_s, total(transmit.active_j, transmit.idle_j))
    if price.energy.tail_j != 0:
        yield OtherPrice("radio tail", 0.0, price.energy.tail_j)
