"""What one round costs before anything is trained, by exchange, model and device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from edgefl.compute.meta import by_layer
from edgefl.compute.modules import layers
from edgefl.core.availability import DAY_S
from edgefl.core.components import resolve
from edgefl.core.cost import FORWARD, GRAD_INPUT, GRAD_WEIGHT, UPDATE, Cost, Trace, Work
from edgefl.core.dealing import Kind, kinds
from edgefl.core.devices import Board, DType
from edgefl.core.drafts import Draft, placed
from edgefl.core.errors import UserError
from edgefl.core.fleet import Fleet
from edgefl.core.layers import ExchangeLayers
from edgefl.core.link import Link
from edgefl.core.price import Price, peak_bytes
from edgefl.core.scenario import Task
from edgefl.core.traces import Steps
from edgefl.data import Federation
from edgefl.planning.assumed import assumptions, of_cells
from edgefl.planning.by_layer import priced, shown
from edgefl.planning.costs import DeviceCost, ExchangeCost, Intervals, Measured, Priced, Profile
from edgefl.planning.fit import fit_note, fitted
from edgefl.planning.fleets import devices_of, fleet_of, link, named
from edgefl.planning.learning import DataAccess, Learning, data_of, learn_from
from edgefl.planning.measuring import machines, measured
from edgefl.planning.memory import fits, fits_with_margin
from edgefl.planning.merging import merge_bounds, merge_costs, server_board, server_work
from edgefl.planning.pricing import phase_steps, traced
from edgefl.planning.repricing import Pricers
from edgefl.planning.sharing import Payload, SharedLink, shared_links
from edgefl.protocol import Exchange

# With more links than these, only some of a device's are shown.
_MOST_LINKS = 5


@dataclass(frozen=True)
class ProfileOptions:
    """What to profile.

    Attributes:
        devices: names, or "all"; empty for the fleet's own devices.
        link: a network class; None for each device's own in the fleet, or else the fleet's first.
        dtype: the number type that devices compute in; None for the fleet's own.
        layers: whether to add counts layer by layer.
        measure: what each exchange takes on this host, to be compared: "memory", "time"; empty for nothing.
            Times are compared with those of the devices given, or else of this machine.
    """

    devices: Sequence[str] = ()
    link: str | None = None
    dtype: DType | None = None
    layers: bool = False
    measure: Collection[str] = ()


def _setups(fleet: Fleet, devices: Mapping[str, Board], options: ProfileOptions) -> list[Kind]:
    """The devices given in the options, or every kind of client.

    Each has the given type, its clients', fp32, or the first that it supports; and the given link, its
    clients', or that of the fleet's first kind.
    """
    setups, known = [], kinds(fleet)
    for name, device in devices.items():
        own = [kind for kind in known if kind.device == name]
        own = own[:1] if options.devices else own
        supported = device.dtypes()
        dtype = "fp32" if "fp32" in supported else supported[0]
        setups += [
            Kind(name, options.dtype or kind.dtype, options.link or kind.link)
            for kind in own or [Kind(name, dtype, known[0].link)]
        ]
    return list(dict.fromkeys(setups))


def _few(setups: Sequence[Kind], links: Mapping[str, Link]) -> list[Kind]:
    """The same, but of a device on many links those of the slowest, the median and the fastest upload."""
    behind: dict[tuple[str, str], list[str]] = {}
    for device, dtype, name in setups:
        behind.setdefault((device, dtype), []).append(name)
    for key, names in behind.items():
        if len(names) > _MOST_LINKS:
            ordered = sorted(names, key=lambda name: links[name].up_bps)
            behind[key] = [ordered[0], ordered[(len(ordered) - 1) // 2], ordered[-1]]
    return [setup for setup in setups if setup.link in behind[setup.device, setup.dtype]]


@placed
def profile(
    draft: Draft, options: ProfileOptions = ProfileOptions(), access: DataAccess | None = None
) -> Profile:
    """The cost of one client's share of each exchange; needs no data files and trains nothing.

    The client has an even share of the dataset's training images, or the mean of ``task.samples``. Times are
    without slowdown and jitter.

    Args:
        draft: the scenario.
        options: what to profile.
        access: holds the traces that the runs of a sweep share.

    Raises:
        UserError: something in the scenario, or a name, is wrong.
    """
    access, scenario = access or DataAccess(need="nothing"), draft.scenario
    profiler, notes = _profiler(draft, options, access)
    learning = profiler.learning
    rounds_per_day = _rounds_per_day(draft)
    boards = profiler.devices if options.devices or "time" not in options.measure else machines()

    def on_host(index: int, model: int, cost: ExchangeCost) -> Measured | None:
        if not options.measure:
            return None
        steps, traces = profiler.traces(index, access)
        return measured(learning, cost, model, traces[model].cost(steps).work, options.measure, boards)

    exchanges = [
        replace(
            cost,
            measured=on_host(index, model, cost),
            jobs_per_day=rounds_per_day / when.every if rounds_per_day and when.at == "round" else None,
        )
        for index, when in enumerate(exchange.when for exchange in learning.methods[0].exchanges)
        for model, cost in enumerate(profiler.costs(index, access))
    ]
    server = server_work(draft, learning, server_board(draft))
    return Profile(
        scenario=scenario.name,
        method=scenario.method.name,
        batch_size=learning.spec.local.size,
        assumed=[*notes, *fit_note(scenario.local, learning.spec.local)],
        assumptions=(*assumptions(profiler.devices, profiler.links), *of_cells(profiler.fleet)),
        exchanges=exchanges,
        layers=[layers(net) for net in learning.nets] if options.layers else None,
        shared=_shared(draft, options, profiler, exchanges),
        server=None if server is None else merge_costs(draft, learning, server),
        server_intervals=None if server is None else merge_bounds(draft, learning, server) or None,
    )


def _shared(
    draft: Draft, options: ProfileOptions, profiler: _Profiler, costs: Sequence[ExchangeCost]
) -> list[SharedLink] | None:
    """What exchanges cost what clients share, by their costs for each model."""
    fleet, links = profiler.fleet, profiler.fleet.links
    if options.link:
        links = dict.fromkeys(links, link(options.link, where="--link"))
    _, policy = resolve("policies", draft.scenario.server.policy, draft.document, ["server", "policy"])
    payloads = []
    for one in profiler.learning.methods[0].exchanges:
        mine = [cost for cost in costs if cost.exchange == one.name]
        down, up = ([sum(getattr(cost, way).values()) for cost in mine] for way in ("down", "up"))
        payloads.append(Payload(one.name, one.who == "all", down, up))
    return shared_links(draft.scenario, policy, fleet, links, payloads)


def _rounds_per_day(draft: Draft) -> float | None:
    """A client's rounds a day in the mean over all clients; None where they depend on how long jobs take."""
    server, clients = draft.scenario.server, draft.scenario.task.clients
    policy, params = resolve("policies", server.policy, draft.document, ["server", "policy"])
    if not hasattr(policy, "round_s"):
        return None
    return float(DAY_S / policy.round_s(params) * (server.participants or clients) / clients)


class ClientRound(NamedTuple):
    """What a client does in every round.

    Attributes:
        name: the run's; with the model's, where there are several.
        costs: of each exchange.
        setups: what it is done on.
        devices: by name.
        links: by name.
    """

    name: str
    costs: Sequence[Cost]
    setups: Sequence[Kind]
    devices: Mapping[str, Board]
    links: Mapping[str, Link]


@placed
def client_rounds(draft: Draft, options: ProfileOptions, access: DataAccess) -> list[ClientRound]:
    """A client's round for each model, as ``profile`` takes it.

    Raises:
        UserError: something in the scenario, or a name, is wrong.
    """
    profiler, _ = _profiler(draft, options, access)
    learning, name = profiler.learning, draft.scenario.name
    whens = [exchange.when for exchange in learning.methods[0].exchanges]
    rounds = [index for index, when in enumerate(whens) if when.at == "round" and when.every == 1]
    traces = [profiler.traces(index, access) for index in rounds]
    return [
        ClientRound(
            name=name if len(learning.nets) == 1 else f"{name}, {net.name}",
            costs=[found[model].cost(steps) for steps, found in traces],
            setups=profiler.setups,
            devices=profiler.devices,
            links=profiler.links,
        )
        for model, net in enumerate(learning.nets)
    ]


def _profiler(draft: Draft, options: ProfileOptions, access: DataAccess) -> tuple[_Profiler, list[str]]:
    """What prices a scenario, and what is assumed of the profiled clients, as sentences."""
    scenario, document = draft.scenario, draft.document
    learning = learn_from(scenario.learning, document, data_of(scenario, document, access))
    fleet = fleet_of(draft)
    devices = _devices(fleet, options.devices, str(document.place(["fleet"])))
    samples, whence = _samples(learning.federation, scenario.task)
    learning = fitted(learning, document, fleet, [samples])
    whole = _setups(fleet, devices, options)
    links = {name: fleet.links.get(name) or link(name, where="--link") for _, _, name in whole}
    setups = _few(whole, links)
    notes = [f"every client has {samples} samples, {whence}"]
    if len(setups) < len(whole):
        notes.append(
            f"of {len(links)} links, those of each device's slowest, median and fastest upload are shown"
        )
    links = {name: links[name] for _, _, name in setups}
    return _Profiler(learning, samples, fleet, devices, links, setups, layers=options.layers), notes


def _samples(federation: Federation, task: Task) -> tuple[int, str]:
    """The profiled client's number of samples, and what it is, in words."""
    if task.samples is not None:
        return int(np.ceil(federation.samples.mean())), "the mean of task.samples"
    share = int(np.ceil((federation.spec.train_size - task.withheld) / task.clients))
    rest = " without the public images" if task.withheld else ""
    return share, f"an even share of {federation.spec.name}{rest}"


def _devices(fleet: Fleet, names: Sequence[str], where: str) -> dict[str, Board]:
    return named(names, "--device") or devices_of(fleet, where)


@dataclass
class _Profiler:
    """Prices the exchanges of one scenario.

    Attributes:
        learning: what is trained.
        samples: of one client.
        fleet: the scenario's.
        devices, links: by name.
        setups: what to price on.
        layers: whether to price layer by layer too.
    """

    learning: Learning
    samples: int
    fleet: Fleet
    devices: Mapping[str, Board]
    links: Mapping[str, Link]
    setups: Sequence[Kind]
    layers: bool

    def __post_init__(self) -> None:
        self._pricers = Pricers(self.devices)

    def costs(self, index: int, access: DataAccess) -> Iterator[ExchangeCost]:
        """The exchange at an index on each model."""
        learning = self.learning
        steps, traces = self.traces(index, access)
        for method, net, trace in zip(learning.methods, learning.nets, traces, strict=True):
            cost, exchange = trace.cost(steps), method.exchanges[index]
            found = by_layer(method, exchange, net, steps, trace) if self.layers else None
            layers, others = shown(found) if found else (None, None)
            yield ExchangeCost(
                exchange=trace.exchange,
                when=_when(exchange),
                model=net.name,
                samples=self.samples,
                steps=sum(map(Counter.total, steps)),
                down=dict(cost.down),
                up=dict(cost.up),
                flops=_by_role(cost.work),
                flops_by_part=_by_part(cost.work),
                kernels=cost.work.launches,
                moved_bytes=cost.work.bytes,
                peak=dict(cost.peak),
                devices=[self._device_cost(setup, cost, found) for setup in self.setups],
                layers=layers,
                other_work=others,
            )

    def traces(self, index: int, access: DataAccess) -> tuple[Steps, tuple[Trace, ...]]:
        """The steps of the exchange at an index, and its trace for each model."""
        learning = self.learning
        steps = phase_steps(learning.methods[0].exchanges[index], self.samples, learning.spec.local.size)
        return steps, traced(learning, index, [[steps]] * len(learning.nets), access.traces)

    def _device_cost(self, setup: Kind, cost: Cost, found: ExchangeLayers | None) -> DeviceCost:
        device = self.devices[setup.device]
        room, needs = device.usable_memory_bytes, peak_bytes(cost, setup.dtype)
        unknown, price, layers = device.refusal(cost.work, setup.dtype), None, None
        if not unknown:
            try:
                pricer = self._pricers.of(setup.device, setup.dtype)
                price = pricer.price(cost, self.links[setup.link])
                layers = priced(found, pricer, price) if found else None
            except UserError as error:
                unknown = error.what
        return DeviceCost(
            device=setup.device,
            dtype=setup.dtype,
            link=setup.link,
            unknown=unknown,
            launch=device.launch_known(),
            price=_priced(price) if price else None,
            memory_bytes=needs,
            memory_share=needs / room if room else None,
            fits=fits(needs, room),
            fits_with_margin=fits_with_margin(needs, room),
            by_layer=layers,
        )


def _priced(price: Price) -> Priced:
    """Time and energy, with their bounds."""
    return Priced(
        down_s=price.down_s,
        compute_s=price.compute_s,
        up_s=price.up_s,
        bounds=price.bounds,
        energy=price.energy,
        joules=price.energy.joules,
        battery_share=price.battery_share,
        intervals=_intervals(price),
    )


def _intervals(price: Price) -> Intervals | None:
    if price.corners is None:
        return None
    has_battery = any(corner.capacity_j is not None for corner in price.corners)
    return Intervals(
        down_s=price.between(lambda one: one.down_s),
        compute_s=price.between(lambda one: one.compute_s),
        up_s=price.between(lambda one: one.up_s),
        energy=price.energy_between(),
        joules=price.between(lambda one: one.energy.joules),
        battery_share=price.between(lambda one: one.battery_share) if has_battery else None,
    )


def _by_role(work: Work) -> dict[str, int]:
    flops = dict.fromkeys((FORWARD, GRAD_INPUT, GRAD_WEIGHT, UPDATE), 0)
    for kernel, count in work:
        flops[kernel.role] += kernel.flops * count
    return flops


def _by_part(work: Work) -> dict[str, int]:
    """Operations by the part of the model whose weights they use; "other" uses none."""
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
