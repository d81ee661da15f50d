"""``local.epochs: {fit: TIME}``: each client trains for as many epochs, or steps, as fit into a time.

In FedProx (Li et al., 2020, "Federated Optimization in Heterogeneous Networks", sections 3.2 and 5.2) clients
do as much as they can within one global clock cycle. There the amounts are drawn at random; here they follow
from each client's device and link. Our choice: what has to fit is a job's predicted time, without jitter:
download, work at the device's speed times the client's slowdown, and upload. A client's number is the same in
all rounds, and where several exchanges train, it fits in each of them.

A job's steps are a prefix of its phases, so local training has to be an exchange's last phase.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from edgefl.core.cost import Cost, Trace
from edgefl.core.devices import Board
from edgefl.core.errors import ScenarioError
from edgefl.core.fleet import Fleet
from edgefl.core.plan import Clients, Floats, Ints, kinds_of
from edgefl.core.price import Demand
from edgefl.core.pricer import Pricer
from edgefl.core.steps import batch_sizes, step_count
from edgefl.core.traces import Steps
from edgefl.core.training import Local
from edgefl.core.units import show_seconds
from edgefl.core.yamls import Document
from edgefl.planning.learning import Learning
from edgefl.planning.pricing import refusals, worked
from edgefl.planning.repricing import NO_DRAW, Pricers, rows_of
from edgefl.protocol import Exchange

# The most different lengths that the note lists.
_FEW = 6


def lengths(
    learning: Learning,
    document: Document,
    clients: Clients,
    fleet: Fleet,
    devices: Mapping[str, Board],
    known: dict[str, tuple[Trace, ...]],
) -> tuple[Clients, Sequence[Ints | None], Ints | None]:
    """What fits for each client.

    A client whose device cannot do the work is refused later; it counts as doing the most.

    Args:
        learning: what is trained.
        document: the scenario's file.
        clients: all clients, before refusals.
        fleet: its fleet.
        devices: the fleet's devices.
        known: cache of traces, shared by runs.

    Returns:
        All clients, those of different lengths of different kinds; for each exchange, the most steps of each
        kind of client (kinds,), None for no limit; every client's epochs or steps (clients,), None where all
        do the same.

    Raises:
        ScenarioError: an exchange has another phase after local training.
        UserError: a number that pricing needs is unknown for a device.
    """
    local, exchanges = learning.spec.local, learning.methods[0].exchanges
    in_full: list[Ints | None] = [None] * len(exchanges)
    if local.fit is None:
        return clients, in_full, None
    trains = [_trains(exchange, local, document) for exchange in exchanges]
    kinds, pricers = clients.one_of_each_kind(), Pricers(devices)
    works = worked(learning, kinds, in_full, known)
    refused = refusals(works, kinds, devices)
    members = np.split(np.argsort(clients.kind, kind="stable"), np.cumsum(np.bincount(clients.kind))[:-1])
    each = np.full(len(clients), local.fit.most, dtype=np.int64)
    for kind, (device, link, dtype) in enumerate(rows_of(kinds)):
        if kind in refused:
            continue
        own, pricer, samples = members[kind], pricers.of(device, dtype), int(kinds.samples[kind])
        for work in (one for one, does in zip(works, trains, strict=True) if does):
            trace, cost = work.traces[int(kinds.model[kind])], work.costs[kind]
            route = Demand.of(cost, 0.0, NO_DRAW, fleet.links[link])
            left_s = (local.fit.fit - (route.down_s + route.up_s)) / clients.slowdown[own]
            each[own] = np.minimum(each[own], _most(trace, work.taken[kind], samples, local, pricer, left_s))
    clients = replace(clients, kind=kinds_of(clients.kind, each))
    first = np.unique(clients.kind, return_index=True)[1]
    rows = list(zip(clients.samples[first].tolist(), each[first].tolist(), strict=True))
    limits = [
        np.array([_steps(exchange, local, *row) for row in rows], dtype=np.int64) if does else None
        for exchange, does in zip(exchanges, trains, strict=True)
    ]
    return clients, limits, each


def note(local: Local, each: Ints) -> str:
    """The lengths of the clients that are not refused, in words."""
    unit, fit = "steps" if local.epochs is None else "epochs", local.fit
    counts = sorted(Counter(each.tolist()).items())
    if len(counts) > _FEW:
        does = f"clients do {counts[0][0]:,} to {counts[-1][0]:,}, {each.mean():.1f} on average"
    else:
        each_does = (f"{n:,} {'does' if n == 1 else 'do'} {length:,}" for length, n in counts)
        does = f"of the clients, {', '.join(each_does)}"
    return f"local.{unit} fitted to {show_seconds(fit.fit if fit else 0)}: {does}"


def _trains(exchange: Exchange, local: Local, document: Document) -> bool:
    """Whether an exchange has local training, which is a phase of its length.

    Raises:
        ScenarioError: another phase follows.
    """
    is_local = [phase.passes == local.passes for phase in exchange.work.phases]
    if any(is_local[:-1]):
        raise ScenarioError(
            f"'fit' needs local training to be the last phase of an exchange, and {exchange.name!r} has "
            "another one after it",
            where=str(document.place(["local", "epochs" if local.steps is None else "steps"])),
            hint="give a number",
        )
    return any(is_local)


def _steps(exchange: Exchange, local: Local, samples: int, length: int) -> int:
    """All steps of a job whose last phase has a length."""
    before = [phase.passes for phase in exchange.work.phases[:-1]]
    return sum(step_count(samples, local.size, passes) for passes in [*before, local.lasting(length)])


def _most(trace: Trace, taken: Steps, samples: int, local: Local, pricer: Pricer, left_s: Floats) -> Ints:
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
