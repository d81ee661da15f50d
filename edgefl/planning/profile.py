"""What one round costs, before anything is trained: every exchange, on every model and device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

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
from edgefl.planning.assumptions import assumptions
from edgefl.planning.costs import DeviceCost, ExchangeCost, Measured, Priced, Profile, Ratios
from edgefl.planning.fit import fit_note, fitted
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


class _Place(NamedTuple):
    """A row: a device in a number type behind a link."""

    device: str
    dtype: str
    link: str


@dataclass
class _Desk:
    """What the rows of one scenario share.

    Attributes:
        learning: what is trained.
        samples: a client's.
        devices: those to price on.
        links: those that they are behind.
        places: the rows.
        ask: what to show.
        pricers: those made so far.
    """

    learning: Learning
    samples: int
    devices: Mapping[str, Board]
    links: Mapping[str, Link]
    places: Sequence[_Place]
    ask: Ask
    pricers: dict[tuple[str, str], Pricer] = field(default_factory=dict)

    def pricer(self, place: _Place) -> Pricer:
        """A device's pricer.

        Raises:
            UserError: a number that timing needs is unknown.
        """
        key = place.device, place.dtype
        if key not in self.pricers:
            self.pricers[key] = Pricer(place.device, self.devices[place.device], place.dtype)
        return self.pricers[key]


def _places(fleet: Fleet, devices: Mapping[str, Board], ask: Ask) -> list[_Place]:
    """The rows: the devices asked for, or every kind of member.

    A device's type is the one asked for, its members', fp32, or the first that it has; its link the one asked
    for, its members', or that of the fleet's first member.
    """
    rows = []
    for name, device in devices.items():
        members = [one for one in fleet.members if one.device == name]
        members = members[:1] if ask.devices else members
        has = device.dtypes()
        own: list[tuple[str, str]] = [(one.dtype, one.link) for one in members] or [
            ("fp32" if "fp32" in has else has[0], fleet.members[0].link)
        ]
        rows += [_Place(name, ask.dtype or dtype, ask.link or link_) for dtype, link_ in own]
    return list(dict.fromkeys(rows))


def profile(draft: Draft, ask: Ask = Ask(), access: DataAccess | None = None) -> Profile:
    """The cost of one client's share of each exchange; needs no data files and trains nothing.

    The client has the dataset's training images divided evenly. Times are without slowdown and jitter.

    Args:
        draft: the scenario.
        ask: what to show.
        access: holds the traces that the runs of a sweep share.

    Raises:
        UserError: something in the scenario, or a name, is wrong.
    """
    access = access or DataAccess(need="nothing")
    scenario, document = draft.scenario, draft.document
    learning = learn_from(scenario.learning, document, data_of(scenario, document, access))
    fleet = fleet_of(draft)
    devices = _devices(fleet, ask.devices, str(document.place(["fleet"])))
    samples = int(np.ceil(learning.federation.spec.train_size / scenario.task.clients))
    learning = fitted(learning, document, fleet, [samples])
    places = _places(fleet, devices, ask)
    links = {one.link: fleet.links.get(one.link) or link(one.link, where="--link") for one in places}
    desk = _Desk(learning, samples, devices, links, places, ask)
    return Profile(
        scenario=scenario.name,
        method=scenario.method.name,
        batch_size=learning.spec.local.size,
        assumed=[
            f"every client has {samples} samples, an even share of {learning.federation.spec.name}",
            *fit_note(scenario.local, learning.spec.local),
        ],
        assumptions=assumptions(devices, links),
        exchanges=[
            row
            for place in range(len(learning.methods[0].exchanges))
            for row in _exchange(desk, place, access)
        ],
        layers=[layers(net) for net in learning.nets] if ask.layers else None,
    )


def _devices(fleet: Fleet, names: Sequence[str], where: str) -> dict[str, Board]:
    if ALL in names:
        return named(catalogue.entries("devices"), "--device")
    return named(names, "--device") or devices_of(fleet, where)


def _exchange(desk: _Desk, place: int, access: DataAccess) -> list[ExchangeCost]:
    """One exchange on each model."""
    learning, batch_size = desk.learning, desk.learning.spec.local.size
    steps = phase_steps(learning.methods[0].exchanges[place], desk.samples, batch_size)
    traces = traced(learning, place, [[steps]] * len(learning.nets), access.traces)
    rows = []
    for model, (method, net, trace) in enumerate(zip(learning.methods, learning.nets, traces, strict=True)):
        row = _row(desk, method.exchanges[place], net.name, steps, trace.cost(steps))
        if desk.ask.measure:
            row = replace(row, measured=_measured(desk, row, model))
        rows.append(row)
    return rows


def _measured(desk: _Desk, row: ExchangeCost, model: int) -> Measured:
    """What one client's share really takes on this host, and the model's figures over it.

    Memory is the traced peak over what the work added to a fresh process. Time is a device's compute time
    over this host's on one thread: near 1 for a device that was calibrated here.

    Raises:
        RunError: the measuring process failed.
    """
    found = measured_exchange(
        desk.learning.spec, row.exchange, model=model, samples=desk.samples, limit=_MOST_STEPS
    )
    done = found.steps / row.steps if row.steps else 1.0
    added, seconds = found.added_bytes, found.cpu_s
    times = {
        one.device: one.price.compute_s * done / seconds
        for one in row.devices
        if one.price and one.price.compute_s and seconds
    }
    return Measured(found, Ratios(sum(row.peak.values()) / added if added else None, times))


# Steps of one size take the same time and memory.
_MOST_STEPS = 10


def _row(
    desk: _Desk, exchange: Exchange, model: str, steps: Sequence[Counter[int]], cost: Cost
) -> ExchangeCost:
    return ExchangeCost(
        exchange=exchange.name,
        when=_when(exchange),
        model=model,
        samples=desk.samples,
        steps=sum(count for counts in steps for count in counts.values()),
        down=dict(cost.down),
        up=dict(cost.up),
        flops=_by_role(cost.work),
        flops_by_part=_by_part(cost.work),
        kernels=cost.work.launches,
        moved_bytes=cost.work.bytes,
        peak=dict(cost.peak),
        devices=[_on(desk, place, cost) for place in desk.places],
    )


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


def _on(desk: _Desk, place: _Place, cost: Cost) -> DeviceCost:
    device = desk.devices[place.device]
    room, needs = device.usable_memory_bytes, peak_bytes(cost, place.dtype)
    unknown, price = device.refusal(cost.work, place.dtype), None
    if not unknown:
        try:
            price = _price(desk, place, cost)
        except UserError as error:
            unknown = error.what
    return DeviceCost(
        device=place.device,
        dtype=place.dtype,
        link=place.link,
        unknown=unknown,
        launch=device.launch_known(),
        price=price,
        memory_bytes=needs,
        memory_share=needs / room if room else None,
        fits=None if room is None else needs <= room,
    )


def _price(desk: _Desk, place: _Place, cost: Cost) -> Priced:
    """Time and energy.

    Raises:
        UserError: the device cannot be priced.
    """
    price = desk.pricer(place).price(cost, desk.links[place.link])
    joules, battery = price.energy.joules, desk.devices[place.device].battery
    return Priced(
        price.down_s,
        price.compute_s,
        price.up_s,
        price.bounds,
        price.energy,
        joules,
        None if joules is None or not battery or battery.value is None else joules / battery.value,
    )
