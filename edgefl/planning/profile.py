"""What one round costs, before anything is trained: every exchange, on every model and device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgefl.compute.modules import layers
from edgefl.core import catalogue
from edgefl.core.cost import FORWARD, GRAD_INPUT, GRAD_WEIGHT, UPDATE, Cost, Work
from edgefl.core.devices import Board, DType
from edgefl.core.errors import UserError
from edgefl.core.fleet import Fleet
from edgefl.core.link import Link
from edgefl.core.price import Pricer, peak_bytes
from edgefl.core.scenario import Draft
from edgefl.planning.fit import fitted
from edgefl.planning.fleets import devices_of, fleet_of, link, named
from edgefl.planning.learning import DataAccess, Learning, data_of, learn_from
from edgefl.planning.pricing import phase_steps, traced
from edgefl.planning.probe import measured_exchange
from edgefl.protocol import Exchange

ALL = "all"


@dataclass(frozen=True)
class Ask:
    """What to show.

    Attributes:
        devices: names, or "all"; the fleet's own where there are none.
        link: a network class; each device's own in the fleet, or the fleet's first, where there is none.
        dtype: the number type that devices compute in; the fleet's own where there is none.
        layers: whether to add the counts of each layer.
        measure: whether to do each exchange once on this host, in a fresh process, beside the model.
    """

    devices: Sequence[str] = ()
    link: str | None = None
    dtype: DType | None = None
    layers: bool = False
    measure: bool = False


@dataclass
class _Desk:
    """What the rows of one scenario share.

    Attributes:
        draft: the scenario.
        learning: what it trains.
        samples: a client's.
        fleet: its fleet.
        devices: those to price on.
        ask: what to show.
        pricers: those made so far, with the device's reason where it cannot be priced.
    """

    draft: Draft
    learning: Learning
    samples: int
    fleet: Fleet
    devices: Mapping[str, Board]
    ask: Ask
    pricers: dict[str, Pricer | str] = field(default_factory=dict)

    def pricer(self, name: str) -> Pricer | str:
        """A device's pricer, or why it has none."""
        if name not in self.pricers:
            try:
                self.pricers[name] = Pricer(name, self.devices[name], self.dtype(name))
            except UserError as error:
                self.pricers[name] = error.what
        return self.pricers[name]

    def dtype(self, name: str) -> str:
        """The type that a device computes in: as asked; as in the fleet; fp32, or the first that it has."""
        members = [one.dtype for one in self.fleet.members if one.device == name]
        has = self.devices[name].dtypes()
        return self.ask.dtype or (members[0] if members else "fp32" if "fp32" in has else has[0])

    def link(self, name: str) -> Link:
        """The link that a device is behind."""
        if self.ask.link is not None:
            return self.fleet.links.get(self.ask.link) or link(self.ask.link, where="--link")
        member = next((one for one in self.fleet.members if one.device == name), self.fleet.members[0])
        return self.fleet.links[member.link]


def profile(draft: Draft, ask: Ask = Ask(), access: DataAccess | None = None) -> dict[str, Any]:
    """The cost of one client's share of each exchange; needs no data files and trains nothing.

    The client has the dataset's training images divided evenly. Times are without slowdown and jitter.

    Args:
        draft: the scenario.
        ask: what to show.
        access: holds the traces that the runs of a sweep share.

    Returns:
        "scenario", "method", "batch_size", "assumed", "exchanges" (a dict for each exchange and model, with
        a row for each device) and, where asked for, "layers".

    Raises:
        UserError: something in the scenario, or a name, is wrong.
    """
    access = access or DataAccess(need="nothing")
    learning = learn_from(draft, data_of(draft, access))
    fleet = fleet_of(draft)
    devices = _devices(fleet, ask.devices, str(draft.document.place(["fleet"])))
    samples = int(np.ceil(learning.federation.spec.train_size / draft.scenario.task.clients))
    draft = fitted(draft, learning, fleet, [samples])
    desk = _Desk(draft, learning, samples, fleet, devices, ask)
    found: dict[str, Any] = {
        "scenario": draft.scenario.name,
        "method": draft.scenario.method.name,
        "batch_size": draft.scenario.local.size,
        "assumed": [f"every client has {samples} samples, an even share of {learning.federation.spec.name}"],
        "exchanges": [
            row
            for place in range(len(learning.methods[0].exchanges))
            for row in _exchange(desk, place, access)
        ],
    }
    if ask.layers:
        found["layers"] = [layers(net) for net in learning.nets]
    return found


def _devices(fleet: Fleet, names: Sequence[str], where: str) -> dict[str, Board]:
    if ALL in names:
        return named(catalogue.entries("devices"), "--device")
    return named(names, "--device") or devices_of(fleet, where)


def _exchange(desk: _Desk, place: int, access: DataAccess) -> list[dict[str, Any]]:
    """One exchange on each model."""
    learning, batch_size = desk.learning, desk.draft.scenario.local.size
    steps = phase_steps(learning.methods[0].exchanges[place], desk.samples, batch_size)
    traces = traced(desk.draft, learning, place, [[steps]] * len(learning.nets), access.traces)
    rows = []
    for model, (method, net, trace) in enumerate(zip(learning.methods, learning.nets, traces, strict=True)):
        row = _row(desk, method.exchanges[place], net.name, steps, trace.cost(steps))
        if desk.ask.measure:
            row["measured"] = _measured(desk, row, model)
        rows.append(row)
    return rows


def _measured(desk: _Desk, row: Mapping[str, Any], model: int) -> dict[str, Any]:
    """What one client's share really takes on this host, and the model's figures over it.

    Memory is the traced peak over what the work added to a fresh process. Time is a device's compute time
    over this host's on one thread: near 1 for a device that was calibrated here.

    Raises:
        RunError: the measuring process failed.
    """
    found = measured_exchange(
        desk.draft, row["exchange"], model=model, samples=desk.samples, limit=_MOST_STEPS
    )
    done = found["steps"] / row["steps"] if row["steps"] else 1.0
    added, seconds = found["added_bytes"], found["cpu_s"]
    return {
        **found,
        "modelled_over_measured": {
            "memory": sum(row["peak"].values()) / added if added else None,
            "time": {
                one["device"]: one["compute_s"] * done / seconds
                for one in row["devices"]
                if one["compute_s"] and seconds
            },
        },
    }


# Steps of one size take the same time and memory.
_MOST_STEPS = 10


def _row(
    desk: _Desk, exchange: Exchange, model: str, steps: Sequence[Counter[int]], cost: Cost
) -> dict[str, Any]:
    return {
        "exchange": exchange.name,
        "when": _when(exchange),
        "model": model,
        "samples": desk.samples,
        "steps": sum(count for counts in steps for count in counts.values()),
        "down": dict(cost.down),
        "up": dict(cost.up),
        "flops": _by_role(cost.work),
        "flops_by_part": _by_part(cost.work),
        "kernels": cost.work.launches,
        "moved_bytes": cost.work.bytes,
        "peak": dict(cost.peak),
        "devices": [_on(desk, name, cost) for name in desk.devices],
    }


def _by_role(work: Work) -> dict[str, int]:
    flops = dict.fromkeys((FORWARD, GRAD_INPUT, GRAD_WEIGHT, UPDATE), 0)
    for kernel, count in work:
        flops[kernel.role] += kernel.flops * count
    return flops


def _by_part(work: Work) -> dict[str, int]:
    """Operations by the part of the model whose weights a product has; "other" has none."""
    flops: Counter[str] = Counter()
    for kernel, count in work:
        flops[kernel.part or "other"] += kernel.flops * count
    return {part: amount for part, amount in flops.items() if amount}


def _when(exchange: Exchange) -> str:
    """In words: "every round", "every 10 rounds, all clients", "once at the end, all clients"."""
    when = exchange.when
    words = {"start": "once at the start", "end": "once at the end"}.get(when.at) or (
        "every round" if when.every == 1 else f"every {when.every} rounds"
    )
    return words + (", all clients" if exchange.who == "all" else "")


def _on(desk: _Desk, name: str, cost: Cost) -> dict[str, Any]:
    """One device's row; what is unknown, and all of what the device cannot do, is None."""
    device, dtype, connection = desk.devices[name], desk.dtype(name), desk.link(name)
    row: dict[str, Any] = {
        "device": name,
        "dtype": dtype,
        "link": connection.title,
        "unknown": device.refusal(cost.work, dtype),
        **dict.fromkeys((*_TIMES, "bounds", "energy", "joules", "battery_share")),
    }
    room, needs, battery = device.usable_memory_bytes, peak_bytes(cost, dtype), device.battery
    row |= {
        "memory_bytes": needs,
        "memory_share": needs / room if room else None,
        "fits": None if room is None else needs <= room,
    }
    pricer = desk.pricer(name)
    if row["unknown"] or isinstance(pricer, str):
        return {**row, "unknown": row["unknown"] or pricer}
    try:
        price = pricer.price(cost, connection)
    except UserError as error:
        return {**row, "unknown": error.what}
    joules = price.energy.joules
    capacity_j = battery.value if battery else None
    return {
        **row,
        **{key: getattr(price, key) for key in _TIMES},
        "bounds": price.bounds._asdict(),
        "energy": price.energy._asdict(),
        "joules": joules,
        "battery_share": None if joules is None or capacity_j is None else joules / capacity_j,
    }


_TIMES = ("down_s", "compute_s", "up_s")
