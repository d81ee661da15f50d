"""Every client's prices: work is traced once per model, and priced once per kind of client."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

import numpy as np

from edgefl.compute import meta
from edgefl.core.cost import Cost, Trace
from edgefl.core.devices import Board
from edgefl.core.fleet import Fleet
from edgefl.core.plan import COLUMNS, Clients, Prices, Refusal
from edgefl.core.price import Demand, PowerDraw, Pricer, peak_bytes
from edgefl.core.scenario import LearningSpec
from edgefl.core.steps import step_sizes
from edgefl.planning.learning import Learning
from edgefl.protocol import Exchange


def traced(
    learning: Learning,
    place: int,
    kinds: Sequence[Sequence[Sequence[Counter[int]]]],
    known: dict[str, tuple[Trace, ...]],
) -> tuple[Trace, ...]:
    """The trace of the ``place``-th exchange for each model.

    Args:
        learning: what is trained.
        place: which exchange.
        kinds: each model's kinds of clients: for each phase, how many steps of each batch size.
        known: cache of traces, shared by runs.
    """
    key = _trace_key(learning.spec, place, kinds)
    if key not in known:
        wire = meta.Sizes(learning.down.sizes, learning.up.sizes)
        known[key] = tuple(
            meta.trace(method, method.exchanges[place], net, steps, wire)
            for method, net, steps in zip(learning.methods, learning.nets, kinds, strict=True)
        )
    return known[key]


def phase_steps(exchange: Exchange, samples: int, batch_size: int) -> tuple[Counter[int], ...]:
    """For each phase of an exchange, how many steps of each batch size a client takes."""
    return tuple(step_sizes(samples, batch_size, phase.passes) for phase in exchange.work.phases)


def prices(
    learning: Learning,
    clients: Clients,
    fleet: Fleet,
    devices: Mapping[str, Board],
    known: dict[str, tuple[Trace, ...]],
) -> tuple[tuple[Prices, ...], tuple[Refusal, ...]]:
    """Every exchange's prices for every client, and the refusals.

    A client that cannot do an exchange is refused before pricing and gets no times, so a number that is
    unknown for its device raises no error.

    Args:
        learning: what is trained.
        clients: all clients, before refusals.
        fleet: its fleet.
        devices: the fleet's devices.
        known: cache of traces, shared by runs.

    Raises:
        UserError: a number that pricing needs is unknown for a device.
    """
    batch_size = learning.spec.local.size
    exchanges = learning.methods[0].exchanges
    every = []
    for place, exchange in enumerate(exchanges):
        kinds = [
            [
                phase_steps(exchange, int(samples), batch_size)
                for samples in np.unique(clients.samples[clients.model == model])
            ]
            for model in range(len(learning.nets))
        ]
        every.append(traced(learning, place, kinds, known))
    refused = refusals(exchanges, every, clients, devices, batch_size)
    pricers, left_out = Pricers(devices), {refusal.client for refusal in refused}
    table = tuple(
        _priced(exchange, traces, clients, fleet, pricers, batch_size, left_out)
        for exchange, traces in zip(exchanges, every, strict=True)
    )
    return table, refused


def _trace_key(spec: LearningSpec, place: int, kinds: Sequence[Sequence[Sequence[Counter[int]]]]) -> str:
    """What an exchange's traces depend on; not the learning rate, which adds no kernel."""
    optimizer = spec.local.optimizer.model_dump(exclude={"lr", "schedule"})
    settings = (spec.task.dataset, spec.models, spec.method, spec.wire)
    steps = [[[sorted(counts.items()) for counts in kind] for kind in model] for model in kinds]
    return repr((settings, optimizer, place, steps))


class Pricers:
    """One pricer per device and number type, made on first use."""

    def __init__(self, devices: Mapping[str, Board]) -> None:
        self._devices = devices
        self._made: dict[tuple[str, str], Pricer] = {}

    def of(self, device: str, dtype: str) -> Pricer:
        """A device's pricer.

        Raises:
            UserError: a number that it needs is unknown.
        """
        key = device, dtype
        if key not in self._made:
            self._made[key] = Pricer(device, self._devices[device], dtype)
        return self._made[key]


def _priced(
    exchange: Exchange,
    traced: tuple[Trace, ...],
    clients: Clients,
    fleet: Fleet,
    pricers: Pricers,
    batch_size: int,
    left_out: Container[int],
) -> Prices:
    """One exchange's quantities, computed once per kind of client."""
    known: dict[tuple[int, ...], tuple[Cost, Demand, int]] = {}
    rows = []
    kinds = (clients.device, clients.link, clients.dtype, clients.model, clients.samples)
    for client, kind in enumerate(zip(*(column.tolist() for column in kinds), strict=True)):
        device, link, dtype, model, samples = kind
        key = (*kind, client in left_out)
        if key not in known:
            steps = phase_steps(exchange, samples, batch_size)
            cost, count = traced[model].cost(steps), sum(sum(counts.values()) for counts in steps)
            dtype_name, route = clients.dtypes[dtype], fleet.links[clients.links[link]]
            if client in left_out:
                demand = Demand.of(cost, math.nan, _NO_DRAW, route, count)
            else:
                demand = pricers.of(clients.devices[device], dtype_name).price(cost, route, count).demand
            known[key] = cost, demand, peak_bytes(cost, dtype_name)
        rows.append(known[key])
    demands = [demand for _, demand, _ in rows]
    columns = {name: [getattr(demand, name) for demand in demands] for name in Demand._fields[:-1]}
    draws = zip(*(demand.draw for demand in demands), strict=True)
    columns |= dict(zip(PowerDraw._fields, map(list, draws), strict=True))
    columns["peak_bytes"] = [peak for _, _, peak in rows]
    return Prices(
        exchange=exchange.name,
        at=exchange.when.at,
        every=exchange.when.every,
        everyone=exchange.who == "all",
        stateful=exchange.stateful,
        traces=traced,
        **{name: column(columns[name]) for name, column in COLUMNS.items()},
    )


_NO_DRAW = PowerDraw(*[math.nan] * len(PowerDraw._fields))


def refusals(
    exchanges: Sequence[Exchange],
    every: Sequence[tuple[Trace, ...]],
    clients: Clients,
    devices: Mapping[str, Board],
    batch_size: int,
) -> tuple[Refusal, ...]:
    """The clients whose device cannot do an exchange, each with the first such exchange.

    A device of unknown memory is not refused for its size; the plan lists that among its assumptions.

    Args:
        exchanges: the method's exchanges.
        every: each exchange's trace for each model.
        clients: all clients, before refusals.
        devices: the fleet's devices.
        batch_size: of local training.
    """
    known: dict[tuple[int, ...], Refusal | None] = {}
    refused = []
    columns = (clients.device, clients.dtype, clients.model, clients.samples)
    for client, key in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        if key not in known:
            device, dtype, model, samples = key
            name = clients.devices[device]
            reasons = (
                _refusal(
                    exchange,
                    traces[model].cost(phase_steps(exchange, samples, batch_size)),
                    name,
                    devices[name],
                    clients.dtypes[dtype],
                )
                for exchange, traces in zip(exchanges, every, strict=True)
            )
            known[key] = next((refusal for refusal in reasons if refusal), None)
        refusal = known[key]
        if refusal is not None:
            refused.append(replace(refusal, client=client))
    return tuple(refused)


def _refusal(exchange: Exchange, cost: Cost, name: str, device: Board, dtype: str) -> Refusal | None:
    room, needs = device.usable_memory_bytes, peak_bytes(cost, dtype)
    reason = device.refusal(cost.work, dtype)
    if not reason and (room is None or needs <= room):
        return None
    has = None if room is None else int(room)
    return Refusal(-1, name, exchange.name, needs_bytes=needs, has_bytes=has, parts=cost.peak, reason=reason)
