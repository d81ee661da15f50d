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
from typing import NamedTuple

import numpy as np

from edgefl.core.cost import Cost, Trace
from edgefl.core.devices import Board, Bounds
from edgefl.core.errors import ScenarioError
from edgefl.core.fleet import Fleet
from edgefl.core.link import Link
from edgefl.core.plan import Clients, Floats, Ints, kinds_of
from edgefl.core.price import Demand, PowerDraw
from edgefl.core.pricer import Pricer
from edgefl.core.steps import batch_sizes, step_count
from edgefl.core.training import Fit, Local
from edgefl.core.units import show_seconds
from edgefl.core.yamls import Document
from edgefl.planning.learning import Learning
from edgefl.planning.pricing import Traced, refusals
from edgefl.planning.repricing import Pricers, rows_of
from edgefl.protocol import Exchange

# The most different lengths that the note lists.
_FEW = 6


class Lengths(NamedTuple):
    """How much each client does.

    Attributes:
        clients: all clients, those of different lengths of different kinds.
        limits: for each exchange, the most steps of each kind of client (kinds,); None for no limit.
        each: every client's epochs or steps (clients,); None where all do the same.
    """

    clients: Clients
    limits: Sequence[Ints | None]
    each: Ints | None


def lengths(
    learning: Learning,
    document: Document,
    clients: Clients,
    fleet: Fleet,
    devices: Mapping[str, Board],
    known: dict[str, tuple[Trace, ...]],
) -> Lengths:
    """What fits for each client.

    A client whose device cannot do the work is refused later; it counts as doing the most.

    Args:
        learning: what is trained.
        document: the scenario's file.
        clients: all clients, before refusals.
        fleet: its fleet.
        devices: the fleet's devices.
        known: cache of traces, shared by runs.

    Raises:
        ScenarioError: an exchange has another phase after local training.
        UserError: a number that pricing needs is unknown for a device.
    """
    local, exchanges = learning.spec.local, learning.methods[0].exchanges
    in_full: list[Ints | None] = [None] * len(exchanges)
    if local.fit is None:
        return Lengths(clients, in_full, None)
    trains = [_trains(exchange, local, document) for exchange in exchanges]
    work = Traced(learning, clients.one_of_each_kind(), in_full, known)
    refused, pricers = refusals(work, devices), Pricers(devices)
    members = np.split(np.argsort(clients.kind, kind="stable"), np.cumsum(np.bincount(clients.kind))[:-1])
    each = np.full(len(clients), local.fit.most, dtype=np.int64)
    for kind, (device, link, dtype) in enumerate(rows_of(work.kinds)):
        if kind in refused:
            continue
        own, pricer = members[kind], pricers.of(device, dtype)
        for place in np.flatnonzero(trains).tolist():
            times = _Times.of(work, place, kind, local, pricer, fleet.links[link])
            room_s = (local.fit.fit - times.transfer_s) / clients.slowdown[own] - times.other_s
            each[own] = np.minimum(each[own], times.most(room_s, local.fit))
    clients = replace(clients, kind=kinds_of(clients.kind, each))
    first = np.unique(clients.kind, return_index=True)[1]
    rows = list(zip(clients.samples[first].tolist(), each[first].tolist(), strict=True))
    limits = [
        np.array([_steps(exchange, local, *row) for row in rows], dtype=np.int64) if does else None
        for exchange, does in zip(exchanges, trains, strict=True)
    ]
    return Lengths(clients, limits, each)


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


class _Times(NamedTuple):
    """A job's times at full speed.

    Attributes:
        transfer_s: download and upload.
        other_s: work outside of local training.
        pass_s: the steps of one epoch of local training, one after another, added up (steps,).
        epochs: whether local training is as long as a number of epochs.
    """

    transfer_s: float
    other_s: float
    pass_s: Floats
    epochs: bool

    @classmethod
    def of(cls, work: Traced, place: int, kind: int, local: Local, pricer: Pricer, link: Link) -> _Times:
        """Of a kind of client in an exchange."""
        model, samples = int(work.kinds.model[kind]), int(work.kinds.samples[kind])
        trace, (*before, last) = work.traces[place][model], work.steps[place][kind]
        demand = Demand.of(work.costs[place][kind], 0.0, PowerDraw.of(pricer.device, link, Bounds()), link)
        step_s = {size: pricer.time(Cost(steps=trace.phases[-1].work({size: 1}))).seconds for size in last}
        return cls(
            demand.down_s + demand.up_s,
            pricer.time(Cost(steps=trace.work([*before, {}]))).seconds,
            np.cumsum([step_s[size] for size in batch_sizes(samples, local.size) if size in step_s]),
            local.steps is None,
        )

    def most(self, room_s: Floats, fit: Fit) -> Ints:
        """The epochs or steps that fit into times for local training (n,), within the bounds: (n,)."""
        if not self.pass_s.size or not self.pass_s[-1]:
            return np.full(len(room_s), fit.most, dtype=np.int64)
        # What fits exactly must not be lost to rounding.
        passes, rest_s = np.divmod(room_s * (1 + 1e-9), self.pass_s[-1])
        if not self.epochs:
            passes = passes * len(self.pass_s) + np.searchsorted(self.pass_s, rest_s, side="right")
        return np.clip(passes, fit.least, fit.most).astype(np.int64)
