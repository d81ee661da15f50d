"""What one round costs before anything is trained: the plan of a fleet with one client a kind.

A kind is a device, a number type and a link; it has a client for each model. They are traced and priced as a
run's clients are (``edgefl.planning.pricing``), without slowdown and jitter. But a device that cannot do one
exchange has prices of the others, and what does not fit its memory has a price all the same.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from edgefl.compute.measured import ClientWork, measure
from edgefl.compute.meta import LayerWork, by_layer
from edgefl.compute.steps import forward_counts
from edgefl.core import catalogue
from edgefl.core.availability import DAY_S
from edgefl.core.corners import Interval, known
from edgefl.core.cost import FORWARD, GRAD_INPUT, GRAD_WEIGHT, UPDATE, Cost, Work
from edgefl.core.devices import TRACED, Board, DType
from edgefl.core.drafts import Draft, placed
from edgefl.core.errors import UserError
from edgefl.core.fleet import Fleet
from edgefl.core.host import machine_title
from edgefl.core.link import Link
from edgefl.core.notes import note
from edgefl.core.plan import Plan
from edgefl.core.price import ENERGIES, Demand, above_idle_between, in_dtype, times
from edgefl.core.scenario import LearningSpec, TaskSpec
from edgefl.core.units import show_bytes
from edgefl.core.users import Named
from edgefl.data.batching import prepared
from edgefl.data.federation import Federation
from edgefl.planning.assumed import assumptions, of_cells
from edgefl.planning.costs import ForwardCounts, Profile, Row, shared_links, without_margin
from edgefl.planning.dealing import ClientKind, DealtClients, kinds
from edgefl.planning.fit import fit_note, fitted
from edgefl.planning.fleets import devices_of, fleet_of, link, named
from edgefl.planning.learning import DataAccess, Learning, data_of, learn_from
from edgefl.planning.plan import clients_of, merge_bounds, merge_costs, server_board, server_work
from edgefl.planning.pricing import worked
from edgefl.planning.repricing import Pricer, Repricer, priced, pricers_of, rows_of
from edgefl.planning.sensitivity import Records, Sensitivity, Side, check_factor, study
from edgefl.protocol import Phase

Figures: TypeAlias = Mapping[str, Any]
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
        measure: what each exchange takes on this host, to be compared: "memory", "time". Times are compared
            with those of the devices given, or else of this machine.
    """

    devices: Sequence[str] = ()
    link: str | None = None
    dtype: DType | None = None
    layers: bool = False
    measure: Collection[str] = ()


def _setups(fleet: Fleet, devices: Mapping[str, Board], options: ProfileOptions) -> list[ClientKind]:
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
            ClientKind(name, options.dtype or kind.dtype, options.link or kind.link)
            for kind in own or [ClientKind(name, dtype, known[0].link)]
        ]
    return list(dict.fromkeys(setups))


def _few(setups: Sequence[ClientKind], links: Mapping[str, Link]) -> list[ClientKind]:
    """The same, but of a device on many links those of the slowest, the median and the fastest upload."""
    behind: dict[tuple[str, str], list[str]] = {}
    for device, dtype, name in setups:
        behind.setdefault((device, dtype), []).append(name)
    for key, names in behind.items():
        if len(names) > _MOST_LINKS:
            ordered = sorted(names, key=lambda name: links[name].up_bps)
            behind[key] = [ordered[0], ordered[(len(ordered) - 1) // 2], ordered[-1]]
    return [setup for setup in setups if setup.link in behind[setup.device, setup.dtype]]


class _Kinds:
    """A scenario's kinds of clients, planned.

    Attributes:
        setups: the kinds; ``plan`` has a client of each model for each, one kind after another.
        samples: of each client.
        notes: what is assumed of the clients, as sentences.
        works: by exchange, the clients' work.
        why_not: by exchange and client, why it has no price; empty where it has one.
    """

    def __init__(self, draft: Draft, options: ProfileOptions, access: DataAccess) -> None:
        self.scenario, document = draft.scenario, draft.document
        learning = learn_from(self.scenario.learning, document, data_of(self.scenario, document, access))
        self.fleet, where = fleet_of(draft), document.place(["fleet"])
        self.devices = named(options.devices, "--device") or devices_of(self.fleet, where)
        self.samples, whence = _samples(learning.federation, self.scenario.task)
        self.learning = fitted(learning, document, self.fleet, [self.samples])
        whole = _setups(self.fleet, self.devices, options)
        links = {name: self.fleet.links.get(name) or link(name, where="--link") for _, _, name in whole}
        self.setups = _few(whole, links)
        self.links = {name: links[name] for _, _, name in self.setups}
        self.notes = [f"every client has {self.samples} samples, {whence}"]
        if len(self.setups) < len(whole):
            few = "those of each device's slowest, median and fastest upload"
            self.notes.append(f"of {len(links)} links, {few} are shown")
        self.notes += fit_note(self.scenario.local, self.learning.spec.local)
        models, count = len(learning.nets), len(learning.nets) * len(self.setups)
        columns = (
            np.unique(np.repeat(one, models), return_inverse=True) for one in zip(*self.setups, strict=True)
        )
        device, dtype, route = (Named(places, tuple(names.tolist())) for names, places in columns)
        each = np.arange(count)
        found = DealtClients(each, device, route, dtype, slowdown=None, user=each)
        samples = np.full(count, self.samples)
        clients = clients_of(found, each % models, samples, learning.nets, self.devices)
        # In the order of the setups.
        clients, self.pricers = replace(clients, kind=each), pricers_of(self.devices)
        self.models = clients.models
        self.works = worked(self.learning, clients, access.traces)
        self.why_not = [
            [self._why_not(*row, cost) for row, cost in zip(rows_of(clients), work.costs, strict=True)]
            for work in self.works
        ]
        left_out = [{kind for kind, reason in enumerate(each) if reason} for each in self.why_not]
        works = zip(self.works, left_out, strict=True)
        table = tuple(priced(work, clients, self.links, self.pricers, without) for work, without in works)
        self.plan = Plan(self.scenario, clients, table, self.fleet)

    def _why_not(self, device: str, _: str, dtype: str, cost: Cost) -> str:
        if refusal := self.devices[device].refusal(cost.work, dtype):
            return refusal
        try:
            self.pricers(device, dtype)
        except UserError as error:
            return error.what
        return ""

    def exchange(self, index: int, model: int) -> dict[str, Any]:
        """The work of an exchange on a model, which is that of every kind's client."""
        prices, cost = self.plan.prices[index], self.works[index].costs[model]
        return {
            **{name: getattr(prices, name) for name in ("exchange", "at", "every", "everyone")},
            "model": self.models[model],
            "samples": self.samples,
            "steps": int(prices.demand.steps[model]),
            **{name: dict(getattr(cost, name)) for name in ("down", "up", "peak")},
            "flops": _flops(cost.work),
            "flops_by_part": _flops(cost.work, "part"),
            "kernels": cost.work.launches,
            "moved_bytes": cost.work.bytes,
        }

    def tables(self, index: int, model: int, layered: Sequence[LayerWork] | None) -> dict[str, list[Row]]:
        """What an exchange on a model costs each kind; what each of its parts does, and costs."""
        prices, cost = self.plan.prices[index], self.works[index].costs[model]
        names = {"exchange": prices.exchange, "model": self.models[model]}
        whole, priced_parts = list[Row](), list[Row]()
        for place, setup in enumerate(self.setups):
            client, board = place * len(self.models) + model, self.devices[setup.device]
            room, needs = board.usable_memory_bytes, int(prices.demand.peak_bytes[client])
            why, figures = self.why_not[index][client], dict[str, Any].fromkeys(_FIGURES)
            if not why:
                pricer = self.pricers(setup.device, setup.dtype)
                ends = [
                    one.taken(client) for one in (prices.demand, *(prices.corners or [prices.demand] * 2))
                ]
                figures |= _priced(ends, pricer, cost)
                if layered is not None:
                    found = _part_prices(ends, pricer, self.links[setup.link], layered)
                    priced_parts += [{**names, **setup._asdict(), **part} for part in found]
            row = {**names, **setup._asdict(), "unknown": why, "launch": board.launch_known()}
            row |= {"peak_bytes": needs, "memory_share": needs / room if room else None}
            row["fits"] = None if room is None else needs <= room
            row["fits_with_margin"] = None if room is None else needs <= without_margin(room)
            whole.append(row | figures)
        parts: list[Row] = [{**names, **part} for part in _part_works(layered or ())]
        return {"prices": whole, "parts": parts, "part_prices": priced_parts}

    def sides(self, setup: ClientKind) -> Iterator[Side]:
        """The rounds of a kind's clients that have a price, to be studied."""
        for model, name in enumerate(self.models if setup in self.setups else ()):
            one = [self.setups.index(setup) * len(self.models) + model]
            rounds = (each for each in self.plan.prices if (each.at, each.every) == ("round", 1))
            prices = tuple(
                replace(each, demand=each.demand.taken(one), taken=(each.taken[one[0]],)) for each in rounds
            )
            if not any(np.isnan(each.demand.work_s[0]) for each in prices):
                title = f"{self.scenario.name}, {name}" if len(self.models) > 1 else self.scenario.name
                plan = replace(self.plan, clients=self.plan.clients.taken(one), prices=prices)
                yield Side(title, partial(_round, Repricer(plan), setup))


def _alone(demand: Demand) -> dict[str, Any]:
    """Seconds and joules of a job alone, at full speed; NaN for unknown ones."""
    down_s, work_s, up_s, energy = demand.down_s, demand.work_s, demand.up_s, demand.energy()
    seconds = {"down_s": down_s, "work_s": work_s, "up_s": up_s, "seconds": down_s + work_s + up_s}
    return {**seconds, **energy, "joules": sum(energy.values())}


_BOUND_BY = ("compute_bound_s", "memory_bound_s", "launch_bound_s")
_FIGURES = ("down_s", "work_s", "up_s", "seconds", *_BOUND_BY, *ENERGIES, "joules", "battery_share")


def _priced(ends: Sequence[Demand], pricer: Pricer, cost: Cost) -> dict[str, Any]:
    """A client's figures of an exchange, from what it asks for: as its numbers are, then at both corners."""
    found = [_alone(demand) for demand in ends]
    pricers = pricer, *(pricer.corners or (pricer, pricer))
    for each, at in zip(found, pricers, strict=True):
        capacity_j = at.device.battery and at.device.battery.capacity.value
        each["battery_share"] = each["joules"] / capacity_j if capacity_j else None
    here, cheap, costly = found
    if not here == cheap == costly:
        cheap["compute_j"], costly["compute_j"] = above_idle_between(*ends[1:])
    return {**dict(zip(_BOUND_BY, pricer.time(cost), strict=True)), **_bounded(here, cheap, costly)}


def _bounded(here: Figures, cheap: Figures, costly: Figures) -> dict[str, Any]:
    """Figures, and the bounds of those that have any."""
    found = {name: known(figure) for name, figure in here.items()}
    bounds = {name: Interval.of(cheap[name], costly[name]) for name in found}
    apart = {name: each for name, each in bounds.items() if each != Interval.of(found[name], found[name])}
    return {**found, "intervals": apart} if apart else found


def _part_works(layered: Sequence[LayerWork]) -> Iterator[dict[str, Any]]:
    """What each part of an exchange does on any device."""
    for one in layered:
        every = Work(dict(kernel for work in one.work.values() for kernel in work))
        done = {"flops": _flops(every), "kernels": every.launches, "moved_bytes": every.bytes}
        yield {"what": one.what, "part": one.name, "module": one.kind, **done, **one.memory}


_TAIL = "radio tail"
_ROLES = {"forward_s": FORWARD, "grad_input_s": GRAD_INPUT, "grad_weight_s": GRAD_WEIGHT}


def _part_prices(
    ends: Sequence[Demand], pricer: Pricer, route: Link, layered: Sequence[LayerWork]
) -> Iterator[dict[str, Any]]:
    """What each part takes, and each transfer; together, the exchange's seconds and joules.

    A part's energy is that of the whole device while it computes, idle power included.
    """
    for one in layered:
        timed = {role: pricer.demands(Cost(steps=((work, 1),)), route) for role, work in one.work.items()}
        found = []
        for end, demand in enumerate(ends):
            each = {role: demands[end % len(demands)].work_s for role, demands in timed.items()}
            seconds = {name: each.get(role, 0.0) for name, role in _ROLES.items()}
            whole = sum(each.values())
            joules = times(demand.compute_w + demand.idle_w, whole)
            found.append({**seconds, "seconds": whole, "joules": joules})
        memory = {"memory_bytes": in_dtype(sum(one.memory.values()), pricer.dtype)}
        yield {"what": one.what, "part": one.name, **_bounded(*found), **memory}
    for part, lasts, takes in (
        ("download", "down_s", "receive_j"),
        ("upload", "up_s", "transmit_j"),
        (_TAIL, "", "tail_j"),
    ):
        found = []
        for demand in ends:
            lasts_s = getattr(demand, lasts) if lasts else 0.0
            joules = demand.energy()[takes] + times(demand.idle_w, lasts_s)
            found.append({"seconds": lasts_s, "joules": joules})
        if part != _TAIL or found[0]["joules"] != 0:
            yield {"what": "transfer", "part": part, **_bounded(*found)}


@placed
def profile(
    draft: Draft, options: ProfileOptions = ProfileOptions(), access: DataAccess | None = None
) -> Profile:
    """The cost of one client's share of each exchange; needs no data files and trains nothing.

    The client has an even share of the dataset's training images, or the mean of ``task.samples``. Times are
    without slowdown and jitter. What is wrong in the scenario, or a wrong name, is a ``UserError``.
    """
    found = _Kinds(draft, options, access or DataAccess(need="nothing"))
    server = draft.scenario.server
    learning, rounds_per_day, clients = found.learning, None, draft.scenario.task.clients
    round_s, most_s = server.policy.lasts_s()
    if round_s == most_s:
        rounds_per_day = float(DAY_S / round_s * (server.participants or clients) / clients)
    boards = found.devices if options.devices or "time" not in options.measure else machines()
    tables = defaultdict[str, list[Row]](list)
    for index, model in product(range(len(found.plan.prices)), range(len(found.models))):
        method, net, work = learning.methods[model], learning.nets[model], found.exchange(index, model)
        prices = found.works[index].prices
        steps, trace = prices.taken[model], prices.traces[model]
        layered = by_layer(method, method.exchanges[index], net, steps, trace) if options.layers else None
        own = found.tables(index, model, layered)
        if rounds_per_day and work["at"] == "round":
            work["jobs_per_day"] = rounds_per_day / work["every"]
        if options.measure:
            kernels = trace.cost(steps).work
            work["measured"] = measured(
                learning, work, model, own["prices"], kernels, options.measure, boards
            )
        tables["exchanges"].append(work)
        for name, rows in own.items():
            tables[name] += rows
    links = found.fleet.links
    if options.link:
        links = dict.fromkeys(links, link(options.link, where="--link"))
    merging = server_work(draft, learning, server_board(draft))
    counts = [ForwardCounts(net.name, *forward_counts(net)) for net in learning.nets if options.layers]
    return Profile(
        scenario=found.scenario.name,
        method=found.scenario.method.name,
        batch_size=learning.spec.local.size,
        assumed=found.notes,
        assumptions=(*assumptions(found.devices, found.links), *of_cells(found.fleet)),
        **tables,
        layers=counts if options.layers else None,
        shared=shared_links(draft.scenario, found.fleet, links, tables["exchanges"]),
        server=None if merging is None else merge_costs(draft, learning, merging),
        server_intervals=None if merging is None else merge_bounds(draft, learning, merging) or None,
    )


def swept_rounds(
    drafts: Sequence[Draft], options: ProfileOptions, access: DataAccess, factor: float
) -> list[Sensitivity]:
    """What the time and the energy of a client's round depend on: a study for each kind.

    Its sides are the runs and models that have a price there. It raises as ``study`` does.
    """
    check_factor(factor)
    every = [_Kinds(draft, options, access) for draft in drafts]
    found = []
    for setup in dict.fromkeys(setup for each in every for setup in each.setups):
        sides, records = list[Side](), dict[str, Any]()
        for each in every:
            if own := list(each.sides(setup)):
                sides += own
                records[setup.device] = each.devices[setup.device]
                records[f"link {setup.link}"] = each.links[setup.link]
        if sides:
            name = f"{setup.device}, {setup.dtype}, {setup.link}"
            found.append(study(sides, ["energy", "time"], records, factor, name))
    return found


def _round(repricer: Repricer, setup: ClientKind, records: Records) -> dict[str, float]:
    """The energy and the time of a round on other numbers; NaN for an unknown energy."""
    links = {setup.link: records[f"link {setup.link}"]}
    prices = repricer.prices({setup.device: records[setup.device]}, links)
    found = [_alone(one.demand.taken(0)) for one in prices]
    names = {"energy": "joules", "time": "seconds"}
    return {name: math.fsum(one[key] for one in found) for name, key in names.items()}


def _samples(federation: Federation, task: TaskSpec) -> tuple[int, str]:
    """The profiled client's number of samples, and what it is, in words."""
    if task.samples is not None:
        return int(np.ceil(federation.samples.mean())), "the mean of task.samples"
    share = int(np.ceil((federation.spec.train_size - task.withheld) / task.clients))
    rest = " without the public images" if task.withheld else ""
    return share, f"an even share of {federation.spec.name}{rest}"


def _flops(work: Work, by: str = "role") -> dict[str, int]:
    """Operations by role, or by the part of the model whose weights they use; "other" uses none."""
    found = Counter[str]()
    for kernel, count in work:
        found[getattr(kernel, by) or "other"] += kernel.flops * count
    roles = FORWARD, GRAD_INPUT, GRAD_WEIGHT, UPDATE
    return {role: found[role] for role in roles} if by == "role" else {k: n for k, n in found.items() if n}


# Steps of one size take the same time and memory.
_MOST_STEPS = 10
_LAPTOP = "laptop-cpu"

TOLERANCE = 0.25
"""The largest error of a prediction that agrees with the measurement."""

PROCESS_BYTES = 16_000_000
"""What a process may take besides its tensors, mostly code that libraries generate.

Measured as ``MARGIN``: 7.6 MB for an MLP's steps, 14.7 MB for a CNN's.
"""


def measured(
    learning: Learning,
    work: Row,
    model: int,
    rows: Sequence[Row],
    kernels: Work,
    what: Collection[str],
    boards: Mapping[str, Board],
) -> dict[str, Any]:
    """One client's share run on this host: the figures of ``MeasuredExchange``, and those of the model.

    These are under ``memory``, see ``memory_check``, and ``time``, where there are steps: a step's time on
    one thread of this host, the mean over all; by device the predicted one in fp32, and its error, predicted
    over measured, less 1. Devices without a figure for fp32, or a number, have none.

    Raises:
        RunError: the measuring process failed.
    """
    given = learning.spec.resolved(), work["exchange"], model, work["samples"]
    host = measure(partial(client_work, *given), _MOST_STEPS)
    found = asdict(host)
    if "memory" in what:
        found["memory"] = memory_check(sum(work["peak"].values()), host.added_bytes, rows)
    if "time" in what and host.steps:
        step_s, predicted_s = host.cpu_s / host.steps, dict[str, float]()
        for name, board in boards.items():
            with suppress(UserError):
                predicted_s[name] = board.clock(name, TRACED).time(kernels).seconds / work["steps"]
        errors = {name: one / step_s - 1 for name, one in predicted_s.items()}
        found["time"] = {"measured_s": step_s, "predicted_s": predicted_s, "errors": errors}
    return found


def machines() -> dict[str, Board]:
    """The devices that were calibrated on this machine, by name; the laptop, with a note, if none was."""
    title, shipped = machine_title(), catalogue.shipped("devices")
    own = [one for one in catalogue.entries("devices").values() if not one.path.is_relative_to(shipped)]
    names = [one.name for one in own if catalogue.summary(one) == title]
    if not names:
        note(f"no device was calibrated on this machine, so {_LAPTOP} stands for it: edgefl calibrate NAME")
    return named(names or [_LAPTOP], "")


def client_work(resolved: Mapping[str, Any], exchange_name: str, model: int, samples: int) -> ClientWork:
    """The work of a client, in the process that runs it, from a resolved ``LearningSpec`` alone."""
    spec, document = LearningSpec.of_resolved(resolved, "scenario")
    learning = learn_from(spec, document, data_of(spec, document, DataAccess(need="nothing")))
    method, net = learning.methods[model], learning.nets[model]
    (exchange,) = (one for one in method.exchanges if one.name == exchange_name)

    def prepare(phase: Phase, size: int, generator: torch.Generator) -> Tensor:
        data = learning.federation.spec
        shape = size, *data.shape
        x = torch.rand(shape) if data.signals else torch.randint(256, shape, dtype=torch.uint8)
        return prepared(data, phase, learning.augment(phase), x, generator)

    return ClientWork(net, method, exchange, samples, spec.local.size, spec.local.optimizer.lr, prepare)


def memory_check(predicted: int, measured: int, rows: Iterable[Row]) -> dict[str, Any]:
    """Holds the traced peak in fp32 against what the work added to a process, and both against the devices.

    Returns:
        Both; ``error``, predicted over measured, less 1, None where nothing was added; ``verdict``, whether
        they agree, or what explains the difference; ``limits``, by device that computes in fp32, which of the
        two fits its memory.
    """
    rooms = {
        row["device"]: row["peak_bytes"] / row["memory_share"]
        for row in rows
        if row["dtype"] == TRACED and row["memory_share"]
    }
    limits = {name: _FITTING[predicted <= room, measured <= room] for name, room in rooms.items()}
    error = predicted / measured - 1 if measured else None
    both = {"predicted_bytes": predicted, "measured_bytes": measured, "error": error}
    return {**both, "verdict": _verdict(predicted, measured), "limits": limits}


def _verdict(predicted: int, measured: int) -> str:
    if measured and abs(predicted / measured - 1) <= TOLERANCE:
        return f"agree within {TOLERANCE:.0%}"
    apart = show_bytes(abs(measured - predicted))
    if predicted > measured:
        return f"{apart} less than predicted: the process used memory that it held already"
    if measured - predicted <= PROCESS_BYTES:
        return f"{apart} more than predicted: a process takes that much besides its tensors"
    return f"{apart} more than predicted: the library's own buffers, such as a convolution's, are not traced"


_FITTING = {
    (True, True): "both fit",
    (True, False): "the predicted fits, the measured does not",
    (False, True): "the measured fits, the predicted does not",
    (False, False): "neither fits",
}
