"""Prices by kind of client: work is traced once per model, and priced once per kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence

from edgefl.compute import meta
from edgefl.core.cost import Cost, Trace
from edgefl.core.devices import Board
from edgefl.core.fleet import Fleet
from edgefl.core.link import Link
from edgefl.core.plan import Clients, Ints, Prices, Refusal, refusals_of
from edgefl.core.price import peak_bytes
from edgefl.core.scenario import LearningSpec
from edgefl.core.steps import limited, step_sizes
from edgefl.planning.learning import Learning
from edgefl.planning.memory import fits
from edgefl.planning.repricing import Pricers, cornered, quantities, rows_of
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
    key = trace_key(learning.spec, place, kinds)
    if key not in known:
        coded = not learning.down.lossless, not learning.up.lossless
        wire = meta.Sizes(learning.down.sizes, learning.up.sizes, coded)
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


class Traced:
    """Every exchange's work for every kind of client, before any price.

    Attributes:
        exchanges: the method's.
        kinds: a client of each kind.
        steps: by exchange and kind: for each phase, how many steps of each batch size.
        traces: by exchange, for each model.
        costs: by exchange and kind.
    """

    def __init__(
        self,
        learning: Learning,
        kinds: Clients,
        limits: Sequence[Ints | None],
        known: dict[str, tuple[Trace, ...]],
    ) -> None:
        """Takes the arguments of ``prices``."""
        self.exchanges, self.kinds = learning.methods[0].exchanges, kinds
        batch_size, models = learning.spec.local.size, range(len(learning.nets))
        self.steps: list[list[tuple[Counter[int], ...]]] = []
        self.traces: list[tuple[Trace, ...]] = []
        self.costs: list[list[Cost]] = []
        for place, (exchange, limit) in enumerate(zip(self.exchanges, limits, strict=True)):
            bounds = [None] * len(kinds) if limit is None else limit.tolist()
            rows = list(zip(kinds.model.tolist(), kinds.samples.tolist(), bounds, strict=True))
            taken = {row: phase_steps(exchange, row[1], batch_size, row[2]) for row in dict.fromkeys(rows)}
            by_model = [[steps for row, steps in taken.items() if row[0] == model] for model in models]
            traces = traced(learning, place, by_model, known)
            costs = {row: traces[row[0]].cost(steps) for row, steps in taken.items()}
            self.traces.append(traces)
            self.steps.append([taken[row] for row in rows])
            self.costs.append([costs[row] for row in rows])


def prices(
    learning: Learning,
    clients: Clients,
    limits: Sequence[Ints | None],
    fleet: Fleet,
    devices: Mapping[str, Board],
    known: dict[str, tuple[Trace, ...]],
) -> tuple[tuple[Prices, ...], tuple[Refusal, ...]]:
    """Every exchange's prices by kind of client, and each refused client's refusal.

    A client that cannot do an exchange is refused before pricing and gets no times, so a number that is
    unknown for its device raises no error.

    Args:
        learning: what is trained.
        clients: all clients, before refusals.
        limits: for each exchange, the most steps of each kind of client (kinds,); None for no limit.
        fleet: its fleet.
        devices: the fleet's devices.
        known: cache of traces, shared by runs.

    Raises:
        UserError: a number that pricing needs is unknown for a device.
    """
    work = Traced(learning, clients.one_of_each_kind(), limits, known)
    refused = refusals(work, devices)
    table = priced(work, fleet.links, Pricers(devices), [refused] * len(work.exchanges))
    return table, refusals_of(clients, refused)


def trace_key(spec: LearningSpec, place: int, kinds: Sequence[Sequence[Sequence[Counter[int]]]]) -> str:
    """What an exchange's traces depend on; not the learning rate, which adds no kernel."""
    optimizer = spec.local.optimizer.model_dump(exclude={"lr", "schedule"})
    task = spec.task
    settings = (task.dataset, task.augment, task.clients, task.public, spec.models, spec.method, spec.wire)
    # Fleets order kinds of clients differently, and a trace depends on none of that.
    steps = [sorted({tuple(tuple(sorted(one.items())) for one in kind) for kind in model}) for model in kinds]
    return repr((settings, optimizer, place, steps))


def priced(
    work: Traced, links: Mapping[str, Link], pricers: Pricers, left_out: Sequence[Container[int]]
) -> tuple[Prices, ...]:
    """Every exchange's quantities for each kind of client.

    Args:
        work: of all kinds.
        links: by name.
        pricers: of the devices.
        left_out: by exchange, the kinds that get no times.

    Raises:
        UserError: a number that pricing needs is unknown for a device.
    """
    table = []
    for exchange, traces, taken, costs, without in zip(
        work.exchanges, work.traces, work.steps, work.costs, left_out, strict=True
    ):
        here, *ends = quantities(work.kinds, taken, costs, links, pricers, without)
        found = Prices(
            exchange=exchange.name,
            at=exchange.when.at,
            every=exchange.when.every,
            everyone=exchange.who == "all",
            stateful=exchange.stateful,
            traces=traces,
            taken=tuple(taken),
            **here,
        )
        table.append(cornered(found, ends))
    return tuple(table)


def refusals(work: Traced, devices: Mapping[str, Board]) -> dict[int, Refusal]:
    """The kinds of clients whose device cannot do an exchange, each with the first such exchange.

    A device of unknown memory is not refused for its size; the plan lists that among its assumptions.

    Args:
        work: of all kinds.
        devices: the fleet's devices.
    """
    refused: dict[int, Refusal] = {}
    for place, exchange in enumerate(work.exchanges):
        rows = zip(rows_of(work.kinds), work.costs[place], strict=True)
        for kind, ((device, _, dtype), cost) in enumerate(rows):
            refusal = None if kind in refused else _refusal(exchange, cost, device, devices[device], dtype)
            if refusal:
                refused[kind] = refusal
    return refused


def _refusal(exchange: Exchange, cost: Cost, name: str, device: Board, dtype: str) -> Refusal | None:
    room, needs = device.usable_memory_bytes, peak_bytes(cost, dtype)
    reason = device.refusal(cost.work, dtype)
    if not reason and fits(needs, room) is not False:
        return None
    has = None if room is None else int(room)
    return Refusal(-1, name, exchange.name, needs_bytes=needs, has_bytes=has, parts=cost.peak, reason=reason)
