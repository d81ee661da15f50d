"""What fits: the largest batch into memory, and each client's epochs or steps into a time.

``batch_size: fit`` is one number for all clients, since a batch size is part of the learning.

``local.epochs: {fit: TIME}``: in FedProx (Li et al., 2020, "Federated Optimization in Heterogeneous
Networks", sections 3.2 and 5.2) clients do as much as they can within one global clock cycle. There the
amounts are drawn at random; here they follow from each client's device and link. Our choice: what has to fit
is a job's predicted time, without jitter: download, work at the device's speed times the client's slowdown,
and upload. A client's number is the same in all rounds, and where several exchanges train, it fits in each of
them. A job's steps are a prefix of its phases, so local training has to be an exchange's last phase.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from edgefl.compute import meta
from edgefl.core.arrays import Floats, Ints
from edgefl.core.clients import Clients, kinds_of
from edgefl.core.cost import Cost, Steps, Trace, Work
from edgefl.core.devices import TRACED, WIDTHS, Board, Bounds
from edgefl.core.errors import ScenarioError, UserError
from edgefl.core.fleet import Fleet
from edgefl.core.plan import Assumption
from edgefl.core.price import Demand
from edgefl.core.scenario import LocalTraining
from edgefl.core.steps import batch_sizes, step_count
from edgefl.core.units import show_bytes, show_seconds
from edgefl.core.yamls import Document
from edgefl.planning.costs import without_margin
from edgefl.planning.dealing import kinds
from edgefl.planning.fleets import devices_of
from edgefl.planning.learning import Learning, methods_of
from edgefl.planning.pricing import refusals, worked
from edgefl.planning.repricing import Pricer, pricers_of, rows_of
from edgefl.protocol import Exchange, Method, Net

FIT = "fit"
# The most different lengths that the note lists.
_FEW = 6


def fitted(learning: Learning, document: Document, fleet: Fleet, samples: Iterable[int]) -> Learning:
    """The learning with a number where its batch size is "fit".

    The largest with which every exchange fits each device, with the margin for libraries, on every model that
    fits the device at all; the smallest where that has no margin. A device that cannot do the work, or cannot
    hold a model's smallest batch, is disregarded for it, since its clients are refused at any batch size; so
    is a device whose memory is unknown.

    Raises:
        ScenarioError: not even the smallest batch fits, or no memory is known.
    """
    if learning.spec.local.batch_size != FIT:
        return learning
    where = document.place(["local", "batch_size"])
    needs = [_Needs(method, net) for method, net in zip(learning.methods, learning.nets, strict=True)]
    rooms = list(_rooms(fleet, devices_of(fleet, where), [work for one in needs for work in one.works]))
    if not rooms:
        raise ScenarioError(
            "cannot fit a batch: no device that can do the work has a known memory",
            where=where,
            hint="give a batch size, or a fleet with known memory",
        )
    # A model's limit is the smallest memory that can hold it at all.
    tight = [(one, [room for room in rooms if room >= one.bytes(one.smallest)]) for one in needs]
    held = [(one, min(able)) for one, able in tight if able]
    if not held:
        least = min(one.bytes(one.smallest) for one in needs)
        raise ScenarioError(
            f"not even a batch of {needs[0].smallest} fits: it needs {show_bytes(least)}, "
            f"and the largest device has {show_bytes(max(rooms))}",
            where=where,
            hint="choose a smaller model, or a fleet with more memory",
        )
    batch_size = min(_largest(one, without_margin(room), set(samples)) for one, room in held)
    local = learning.spec.local.model_copy(update={"batch_size": batch_size})
    spec = learning.spec.model_copy(update={"local": local})
    return replace(
        learning, spec=spec, methods=methods_of(spec, document, learning.nets, learning.federation)
    )


def fit_note(asked: LocalTraining, found: LocalTraining) -> list[Assumption]:
    """The batch size that "fit" gave, in words; nothing where the scenario has a number."""
    where = "the largest that every device able to train can hold"
    return [fitted_size(found.size, where)] if asked.batch_size == FIT else []


def fitted_size(size: int, where: str) -> Assumption:
    """A fitted batch size in words, and where it comes from."""
    return Assumption(FIT, "batch_size", f"fit is {size}, {where}")


def _rooms(fleet: Fleet, devices: Mapping[str, Board], works: Sequence[Work]) -> Iterator[float]:
    """The memory of each device that can do the work, in bytes as if in fp32: narrower types need less."""
    for name, dtype in dict.fromkeys((kind.device, kind.dtype) for kind in kinds(fleet)):
        device = devices[name]
        room = device.usable_memory_bytes
        if room is not None and not any(device.refusal(work, dtype) for work in works):
            yield room * WIDTHS[TRACED] / WIDTHS[dtype]


def _largest(needs: "_Needs", room: float, samples: set[int]) -> int:
    """By bisection, as memory never falls with the batch. A remainder of 1 joins a batch, which must fit."""
    low, high = needs.smallest, max(*samples, needs.smallest) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if needs.bytes(middle) <= room else (low, middle)
    joined = any(count > low > 1 and count % low == 1 for count in samples)
    return max(low - joined, needs.smallest)


class _Needs:
    """The peak memory of a method's exchanges on one model, by batch size.

    Attributes:
        bytes: the largest of all exchanges, of a batch size.
        smallest: the smallest batch that trains: 1, or 2 if a norm needs more than one value.
        works: one step of each exchange.
    """

    def __init__(self, method: Method, net: Net) -> None:
        def costs(size: int) -> list[Cost]:
            every = ((one, [{size: 1}] * len(one.work.phases)) for one in method.exchanges)
            return [meta.trace(method, one, net, [steps]).cost(steps) for one, steps in every]

        self.bytes = cache(lambda size: max(cost.peak_bytes for cost in costs(size)))
        # Two samples, which every model can train on.
        self.works, self.smallest = [cost.work for cost in costs(2)], 1
        try:
            self.bytes(1)
        except UserError:
            self.smallest = 2


def lengths(
    learning: Learning,
    document: Document,
    clients: Clients,
    fleet: Fleet,
    devices: Mapping[str, Board],
    known: dict[str, tuple[Trace, ...]],
) -> tuple[Clients, Sequence[Ints | None] | None, Ints | None]:
    """How long each client trains, so that it fits; one that is refused later counts as doing the most.

    Returns:
        All clients, those of different lengths of different kinds; for each exchange, the most steps of each
        kind of client (kinds,), None for no limit; every client's epochs or steps (clients,), None where all
        do the same.

    Raises:
        ScenarioError: an exchange has another phase after local training.
        UserError: a number that pricing needs is unknown for a device.
    """
    local, exchanges = learning.spec.local, learning.methods[0].exchanges
    if local.fit is None:
        return clients, None, None
    trains = [_trains(exchange, local, document) for exchange in exchanges]
    each_kind, pricers = clients.one_of_each_kind(), pricers_of(devices)
    works = worked(learning, each_kind, known)
    refused = refusals(works, each_kind, devices)
    members = np.split(np.argsort(clients.kind, kind="stable"), np.cumsum(np.bincount(clients.kind))[:-1])
    each = np.full(len(clients), local.fit.most, dtype=np.int64)
    for kind, (device, link, dtype) in enumerate(rows_of(each_kind)):
        if kind in refused:
            continue
        own, pricer, samples = members[kind], pricers(device, dtype), int(each_kind.samples[kind])
        for prices, costs in (one for one, does in zip(works, trains, strict=True) if does):
            trace, taken = prices.traces[int(each_kind.model[kind])], prices.taken[kind]
            route = Demand.of(costs[kind], Bounds(), fleet.links[link])
            left_s = (local.fit.fit - (route.down_s + route.up_s)) / clients.slowdown[own]
            each[own] = np.minimum(each[own], _most(trace, taken, samples, local, pricer, left_s))
    clients = replace(clients, kind=kinds_of(clients.kind, each))
    first = np.unique(clients.kind, return_index=True)[1]
    rows = list(zip(clients.samples[first].tolist(), each[first].tolist(), strict=True))
    limits = [
        np.array([_steps(exchange, local, *row) for row in rows], dtype=np.int64) if does else None
        for exchange, does in zip(exchanges, trains, strict=True)
    ]
    return clients, limits, each


def lengths_note(local: LocalTraining, each: Ints) -> str:
    """The lengths of the clients that are not refused, in words."""
    unit, fit = "steps" if local.epochs is None else "epochs", local.fit
    counts = sorted(Counter(each.tolist()).items())
    if len(counts) > _FEW:
        does = f"clients do {counts[0][0]:,} to {counts[-1][0]:,}, {each.mean():.1f} on average"
    else:
        each_does = (f"{n:,} {'does' if n == 1 else 'do'} {length:,}" for length, n in counts)
        does = f"of the clients, {', '.join(each_does)}"
    return f"local.{unit} fitted to {show_seconds(fit.fit if fit else 0)}: {does}"


def _trains(exchange: Exchange, local: LocalTraining, document: Document) -> bool:
    """Whether an exchange has local training, which is a phase of its length."""
    is_local = [phase.passes == local.passes for phase in exchange.work.phases]
    if any(is_local[:-1]):
        raise ScenarioError(
            f"'fit' needs local training to be the last phase of an exchange, and {exchange.name!r} has "
            "another one after it",
            where=document.place(["local", "epochs" if local.steps is None else "steps"]),
            hint="give a number",
        )
    return any(is_local)


def _steps(exchange: Exchange, local: LocalTraining, samples: int, length: int) -> int:
    """All steps of a job whose last phase has a length."""
    before = [phase.passes for phase in exchange.work.phases[:-1]]
    return sum(step_count(samples, local.size, passes) for passes in [*before, local.lasting(length)])


def _most(
    trace: Trace, taken: Steps, samples: int, local: LocalTraining, pricer: Pricer, left_s: Floats
) -> Ints:
    """The epochs or steps that fit into times for an exchange's work at full speed (n,), in bounds: (n,)."""
    if local.fit is None:
        raise AssertionError("only what fits is fitted")
    *before, last = taken
    step_s = {size: pricer.time(Cost(steps=trace.phases[-1].work({size: 1}))).seconds for size in last}
    # The steps of one epoch, one after another, added up.
    pass_s = np.cumsum([step_s[size] for size in batch_sizes(samples, local.size) if size in step_s])
    if not pass_s.size or not pass_s[-1]:
        return np.full(len(left_s), local.fit.most, dtype=np.int64)
    room_s = left_s - pricer.time(Cost(steps=trace.work([*before, {}]))).seconds
    # What fits exactly must not be lost to rounding.
    passes, rest_s = np.divmod(room_s * (1 + 1e-9), pass_s[-1])
    if local.steps is not None:
        passes = passes * len(pass_s) + np.searchsorted(pass_s, rest_s, side="right")
    return np.clip(passes, local.fit.least, local.fit.most).astype(np.int64)
