"""Prices by kind of client: work is traced once per model, and priced once per kind."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from edgefl.compute import meta
from edgefl.core.cost import Cost, Trace
from edgefl.core.devices import Board
from edgefl.core.fleet import Fleet
from edgefl.core.link import Link
from edgefl.core.plan import COLUMNS, Clients, Ints, Plan, Prices, Refusal, refusals_of
from edgefl.core.price import Demand, PowerDraw, peak_bytes
from edgefl.core.pricer import Pricer
from edgefl.core.scenario import LearningSpec
from edgefl.core.steps import limited, step_sizes
from edgefl.core.traces import Steps
from edgefl.planning.learning import Learning
from edgefl.planning.memory import fits
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
        coded = not learning.down.lossless, not learning.up.lossless
        wire = meta.Sizes(learning.down.sizes, learning.up.sizes, coded)
        known[key] = tuple(
            meta.trace(method, method.exchanges[place], net, steps, wire, learning.augment)
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
    refused, pricers = refusals(work, devices), Pricers(devices)
    table = tuple(_priced(work, place, fleet, pricers, refused) for place in range(len(work.exchanges)))
    return table, refusals_of(clients, refused)


def _trace_key(spec: LearningSpec, place: int, kinds: Sequence[Sequence[Sequence[Counter[int]]]]) -> str:
    """What an exchange's traces depend on; not the learning rate, which adds no kernel."""
    optimizer = spec.local.optimizer.model_dump(exclude={"lr", "schedule"})
    settings = (spec.task.dataset, spec.task.augment, spec.models, spec.method, spec.wire)
    steps = [[[sorted(counts.items()) for counts in kind] for kind in model] for model in kinds]
    return repr((settings, optimizer, place, steps))


class Pricers:
    """One pricer per device and number type, made on first use."""

    def __init__(
        self, devices: Mapping[str, Board], made: dict[tuple[str, str], Pricer] | None = None
    ) -> None:
        self._devices = devices
        self._made = {} if made is None else made

    def of(self, device: str, dtype: str) -> Pricer:
        """A device's pricer.

        Raises:
            UserError: a number that it needs is unknown.
        """
        key = device, dtype
        if key not in self._made:
            self._made[key] = Pricer(device, self._devices[device], dtype)
        return self._made[key]


def _priced(work: Traced, place: int, fleet: Fleet, pricers: Pricers, left_out: Container[int]) -> Prices:
    """One exchange's quantities for each kind of client."""
    exchange, steps = work.exchanges[place], tuple(work.steps[place])
    here, *ends = _quantities(work.kinds, steps, work.costs[place], fleet.links, pricers, left_out)
    found = Prices(
        exchange=exchange.name,
        at=exchange.when.at,
        every=exchange.when.every,
        everyone=exchange.who == "all",
        stateful=exchange.stateful,
        traces=work.traces[place],
        taken=steps,
        **here,
    )
    return _cornered(found, ends)


class Repricer:
    """Prices a plan's exchanges on other numbers; neither data nor the method's code is needed.

    Who is refused stays as it was.
    """

    def __init__(self, plan: Plan) -> None:
        """Takes a plan with its traces."""
        self._prices, self._kinds = plan.prices, plan.clients.one_of_each_kind()
        self._costs = [_costs(prices, self._kinds) for prices in plan.prices]
        self._refused = {int(plan.clients.kind[refusal.client]) for refusal in plan.refusals}
        self._made: dict[tuple[str, str], Pricer] = {}

    def prices(self, devices: Mapping[str, Board], links: Mapping[str, Link]) -> tuple[Prices, ...]:
        """The prices on these devices and links, by name.

        Raises:
            UserError: a number that pricing needs is unknown for a device.
        """
        # The times of a device that is the same record as before are known.
        same = {key: made for key, made in self._made.items() if made.device is devices[key[0]]}
        pricers = Pricers(devices, same)
        table = []
        for prices, costs in zip(self._prices, self._costs, strict=True):
            taken = prices.taken
            here, *ends = _quantities(self._kinds, taken, costs, links, pricers, self._refused)
            table.append(_cornered(replace(prices, corners=None, **here), ends))
        self._made = same
        return tuple(table)


def _costs(prices: Prices, kinds: Clients) -> list[Cost]:
    """What an exchange costs each kind of client, from its traces."""
    known: dict[str, Cost] = {}
    found = []
    for model, steps in zip(kinds.model.tolist(), prices.taken, strict=True):
        key = repr((model, steps))
        if key not in known:
            known[key] = prices.traces[model].cost(steps)
        found.append(known[key])
    return found


def _quantities(
    kinds: Clients,
    steps: Sequence[Steps],
    costs: Sequence[Cost],
    links: Mapping[str, Link],
    pricers: Pricers,
    left_out: Container[int],
) -> list[dict[str, Any]]:
    """The columns of an exchange's ``Prices``; where some kind's corners differ, theirs too."""
    places, peaks = [], []
    for kind, ((device, link, dtype), taken, cost) in enumerate(
        zip(rows_of(kinds), steps, costs, strict=True)
    ):
        count, route = sum(map(Counter.total, taken)), links[link]
        if kind in left_out:
            places.append([Demand.of(cost, math.nan, _NO_DRAW, route, count)])
        else:
            places.append(pricers.of(device, dtype).demands(cost, route, count))
        peaks.append(peak_bytes(cost, dtype))
    # A kind without corners is at its only price there.
    ends = range(max(map(len, places), default=1))
    return [_columns([demands[end % len(demands)] for demands in places], peaks) for end in ends]


def _cornered(here: Prices, ends: Sequence[dict[str, Any]]) -> Prices:
    """Prices with their corners, where there are any."""
    if not ends:
        return here
    bare = replace(here, traces=(), taken=())
    cheap, costly = (replace(bare, **end) for end in ends)
    return replace(here, corners=(cheap, costly))


def _columns(demands: Sequence[Demand], peaks: Sequence[int]) -> dict[str, Any]:
    """The columns of ``Prices``."""
    found: dict[str, Any] = {
        name: [getattr(demand, name) for demand in demands] for name in Demand._fields[:-1]
    }
    draws = zip(*(demand.draw for demand in demands), strict=True)
    found |= dict(zip(PowerDraw._fields, map(list, draws), strict=True))
    found["peak_bytes"] = peaks
    return {name: column(found[name]) for name, column in COLUMNS.items()}


_NO_DRAW = PowerDraw(*[math.nan] * len(PowerDraw._fields))


def rows_of(kinds: Clients) -> Iterator[tuple[str, str, str]]:
    """The names of each one's device, link and dtype."""
    columns = (kinds.device, kinds.link, kinds.dtype)
    for device, link, dtype in zip(*(column.tolist() for column in columns), strict=True):
        yield kinds.devices[device], kinds.links[link], kinds.dtypes[dtype]


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
