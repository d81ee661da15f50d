"""What every client's work costs: traced once for each model, priced once for each kind of client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from edgefl.compute import meta
from edgefl.core.cost import Cost, Trace
from edgefl.core.device import Device
from edgefl.core.fleet import Fleet
from edgefl.core.plan import Clients, Prices, Refusal
from edgefl.core.price import Price, Pricer
from edgefl.core.scenario import Draft
from edgefl.core.steps import step_sizes
from edgefl.planning.learning import Learning
from edgefl.protocol import Exchange


def traces(
    learning: Learning, place: int, steps: Sequence[Sequence[Sequence[Counter[int]]]]
) -> tuple[Trace, ...]:
    """The trace of the ``place``-th exchange for each model; ``steps`` lists its kinds of clients."""
    wire = meta.Sizes(learning.down.sizes, learning.up.sizes)
    return tuple(
        meta.trace(method, method.exchanges[place], net, kinds, wire)
        for method, net, kinds in zip(learning.methods, learning.nets, steps, strict=True)
    )


def phase_steps(exchange: Exchange, samples: int, batch_size: int) -> tuple[Counter[int], ...]:
    """For each phase of an exchange, how many steps of each batch size a client takes."""
    return tuple(step_sizes(samples, batch_size, phase.passes) for phase in exchange.work.phases)


def prices(
    draft: Draft,
    learning: Learning,
    clients: Clients,
    fleet: Fleet,
    devices: Mapping[str, Device],
    known: dict[str, tuple[Trace, ...]],
) -> tuple[Prices, ...]:
    """Every exchange's prices for every client; ``known`` holds and takes the traces that runs share.

    Raises:
        UserError: a device lacks a number that pricing needs.
    """
    pricers = {name: Pricer(name, devices[name]) for name in clients.devices}
    batch_size = draft.scenario.local.batch_size
    table = []
    for place, exchange in enumerate(learning.methods[0].exchanges):
        kinds = [
            [
                phase_steps(exchange, int(samples), batch_size)
                for samples in np.unique(clients.samples[clients.model == model])
            ]
            for model in range(len(learning.nets))
        ]
        key = _trace_key(draft, learning, place, kinds)
        if key not in known:
            known[key] = traces(learning, place, kinds)
        table.append(_priced(exchange, known[key], clients, fleet, pricers, batch_size))
    return tuple(table)


def _trace_key(
    draft: Draft, learning: Learning, place: int, kinds: Sequence[Sequence[Sequence[Counter[int]]]]
) -> str:
    """Everything that an exchange's traces depend on; not the rate, which adds no kernel."""
    optimizer = draft.scenario.local.optimizer.model_dump(exclude={"lr", "schedule"})
    settings = {key: learning.settings[key] for key in ("dataset", "models", "method", "wire")}
    steps = [[[sorted(counts.items()) for counts in kind] for kind in model] for model in kinds]
    return repr((settings, optimizer, place, steps))


def _priced(
    exchange: Exchange,
    traced: tuple[Trace, ...],
    clients: Clients,
    fleet: Fleet,
    pricers: Mapping[str, Pricer],
    batch_size: int,
) -> Prices:
    costs: dict[tuple[int, int], Cost] = {}
    known: dict[tuple[int, int, int, int], Price] = {}
    rows: list[tuple[Cost, Price, int]] = []
    for device, link, model, samples in zip(
        clients.device.tolist(),
        clients.link.tolist(),
        clients.model.tolist(),
        clients.samples.tolist(),
        strict=True,
    ):
        steps = phase_steps(exchange, samples, batch_size)
        cost = costs.get((model, samples))
        if cost is None:
            cost = costs[model, samples] = traced[model].cost(steps)
        price = known.get((device, link, model, samples))
        if price is None:
            price = pricers[clients.devices[device]].price(cost, fleet.links[clients.links[link]])
            known[device, link, model, samples] = price
        rows.append((cost, price, sum(count for counts in steps for count in counts.values())))
    return Prices(
        exchange=exchange.name,
        at=exchange.when.at,
        every=exchange.when.every,
        everyone=exchange.who == "all",
        down_s=_floats([price.down_s for _, price, _ in rows]),
        compute_s=_floats([price.compute_s for _, price, _ in rows]),
        up_s=_floats([price.up_s for _, price, _ in rows]),
        receive_j=_floats([price.receive_j for _, price, _ in rows]),
        compute_j=_floats([price.compute_j for _, price, _ in rows]),
        transmit_j=_floats([price.transmit_j for _, price, _ in rows]),
        down_bytes=_ints([cost.down_bytes for cost, _, _ in rows]),
        up_bytes=_ints([cost.up_bytes for cost, _, _ in rows]),
        flops=_ints([cost.work.flops for cost, _, _ in rows]),
        steps=_ints([steps for _, _, steps in rows]),
        peak_bytes=_ints([cost.peak_bytes for cost, _, _ in rows]),
        traces=traced,
    )


def _floats(values: Sequence[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _ints(values: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def refusals(
    table: Sequence[Prices],
    clients: Clients,
    devices: Mapping[str, Device],
    batch_size: int,
    exchanges: Sequence[Exchange],
) -> tuple[Refusal, ...]:
    """The clients whose device cannot hold an exchange, each with the first such exchange and its parts.

    A device whose memory is unknown is not refused; the plan says so among what it assumes.
    """
    refused = []
    for client in range(len(clients)):
        name = clients.devices[clients.device[client]]
        room = devices[name].usable_memory_bytes
        for priced, exchange in zip(table, exchanges, strict=True):
            if room is not None and priced.peak_bytes[client] > room:
                steps = phase_steps(exchange, int(clients.samples[client]), batch_size)
                parts = priced.traces[int(clients.model[client])].cost(steps).peak
                needs = int(priced.peak_bytes[client])
                refused.append(Refusal(client, name, priced.exchange, needs, int(room), parts))
                break
    return tuple(refused)
