"""Prices by kind of client: work is traced once per model, and priced once per kind."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from edgefl.compute import meta
from edgefl.core.arrays import Ints
from edgefl.core.clients import Clients
from edgefl.core.cost import Trace
from edgefl.core.devices import Board
from edgefl.core.fleet import Fleet
from edgefl.core.plan import Prices, Refusal
from edgefl.core.price import in_dtype
from edgefl.core.scenario import LearningSpec
from edgefl.core.steps import limited, step_sizes
from edgefl.planning.learning import Learning
from edgefl.planning.repricing import TracedExchange, priced, pricers_of, rows_of
from edgefl.protocol import Exchange

Taken: TypeAlias = Sequence[Sequence[Sequence[Counter[int]]]]
"""By model and kind of its clients: for each phase, how many steps of each batch size."""


def traced(
    learning: Learning, place: int, kinds: Taken, known: dict[str, tuple[Trace, ...]]
) -> tuple[Trace, ...]:
    """The trace of the ``place``-th exchange for each model."""
    key = trace_key(learning.spec, place, kinds)
    if key not in known:
        wire = learning.down, learning.up
        known[key] = tuple(
            meta.trace(method, method.exchanges[place], net, steps, wire, learning.made_of)
            for method, net, steps in zip(learning.methods, learning.nets, kinds, strict=True)
        )
    return known[key]


def phase_steps(
    exchange: Exchange, samples: int, batch_size: int, limit: int | None = None
) -> tuple[Counter[int], ...]:
    """For each phase of an exchange, how many steps of each batch size a client takes, at most ``limit``."""
    phases = [phase.passes for phase in exchange.work.phases]
    if limit is not None:
        phases = limited(samples, batch_size, phases, limit)
    return tuple(step_sizes(samples, batch_size, passes) for passes in phases)


def trace_key(spec: LearningSpec, place: int, kinds: Taken) -> str:
    """What an exchange's traces depend on; not the learning rate, which adds no kernel."""
    optimizer = {**spec.local.optimizer.model_dump(), "lr": None, "schedule": None}
    # As plain data, since a run that is read has components as they are written.
    task = spec.task.model_dump(mode="json", include={"dataset", "augment", "clients", "public"})
    settings = {"task": task, **spec.model_dump(mode="json", include={"model", "method", "wire"})}
    # Fleets order kinds of clients differently, and a trace depends on none of that.
    steps = [sorted({tuple(tuple(sorted(one.items())) for one in kind) for kind in model}) for model in kinds]
    return repr((json.dumps(settings, sort_keys=True), optimizer, place, steps))


def worked(
    learning: Learning,
    kinds: Clients,
    known: dict[str, tuple[Trace, ...]],
    limits: Sequence[Ints | None] | None = None,
) -> list[TracedExchange]:
    """Each exchange's work for every kind of client; the arguments are those of ``prices``."""
    found = []
    for place, exchange in enumerate(learning.methods[0].exchanges):
        limit = limits[place] if limits else None
        bounds = [None] * len(kinds) if limit is None else limit.tolist()
        rows = list(zip(kinds.model.tolist(), kinds.samples.tolist(), bounds, strict=True))
        size = learning.spec.local.size
        taken = {row: phase_steps(exchange, row[1], size, row[2]) for row in dict.fromkeys(rows)}
        models = range(len(learning.nets))
        by_model = [[steps for row, steps in taken.items() if row[0] == model] for model in models]
        traces = traced(learning, place, by_model, known)
        costs = {row: traces[row[0]].cost(steps) for row, steps in taken.items()}
        unpriced = Prices(
            exchange=exchange.name,
            at=exchange.when.at,
            every=exchange.when.every,
            everyone=exchange.who == "all",
            stateful=exchange.stateful,
            traces=traces,
            taken=tuple(taken[row] for row in rows),
        )
        found.append(TracedExchange(unpriced, [costs[row] for row in rows]))
    return found


def prices(
    learning: Learning,
    clients: Clients,
    limits: Sequence[Ints | None] | None,
    fleet: Fleet,
    devices: Mapping[str, Board],
    known: dict[str, tuple[Trace, ...]],
) -> tuple[tuple[Prices, ...], dict[int, Refusal]]:
    """Every exchange's prices by kind of client, and the refusals, by kind.

    A client that cannot do an exchange is refused before pricing and gets no times, so a number that is
    unknown for its device raises no error. ``limits`` has for each exchange the most steps of each kind of
    client (kinds,), None for no limit; ``known`` is ``DataAccess.traces``.

    Raises:
        UserError: a number that pricing needs is unknown for a device.
    """
    kinds, pricers = clients.one_of_each_kind(), pricers_of(devices)
    works = worked(learning, kinds, known, limits)
    refused = refusals(works, kinds, devices)
    table = tuple(priced(work, kinds, fleet.links, pricers, refused) for work in works)
    return table, refused


def refusals(
    works: Sequence[TracedExchange], kinds: Clients, devices: Mapping[str, Board]
) -> dict[int, Refusal]:
    """The kinds of clients whose device cannot do an exchange, each with the first such exchange.

    A device of unknown memory is not refused for its size; the plan lists that among its assumptions.
    """
    refused: dict[int, Refusal] = {}
    for work in works:
        for kind, ((name, _, dtype), cost) in enumerate(zip(rows_of(kinds), work.costs, strict=True)):
            device, needs = devices[name], in_dtype(cost.peak_bytes, dtype)
            room, reason = device.usable_memory_bytes, device.refusal(cost.work, dtype)
            if kind not in refused and (reason or (room is not None and needs > room)):
                has = None if room is None else int(room)
                refused[kind] = Refusal(name, work.prices.exchange, needs, has, cost.peak, reason)
    return refused
