"""Scenarios turned into plans."""

import hashlib
import json
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch

from edgefl.compute.kernels import tensors
from edgefl.compute.meta import merge_trace
from edgefl.core import draws
from edgefl.core.arrays import Floats, Ints
from edgefl.core.availability import DAY_S
from edgefl.core.clients import Clients, kinds_of
from edgefl.core.corners import Interval
from edgefl.core.cost import Trace
from edgefl.core.devices import Board
from edgefl.core.drafts import Draft, placed
from edgefl.core.errors import Mistakes, ScenarioError, UserError
from edgefl.core.fleet import Fleet
from edgefl.core.merging import MergeCost, ServerWork
from edgefl.core.notes import note
from edgefl.core.plan import Plan
from edgefl.core.samplers import Sampler
from edgefl.core.scenario import LABELS, Scenario
from edgefl.core.units import show_bytes, show_seconds, show_share
from edgefl.core.user_code import returned
from edgefl.core.yamls import RESOLVED
from edgefl.data.federation import Federation
from edgefl.planning.assumed import assumed_numbers, assumptions, of_cells
from edgefl.planning.carbon import Carbon, carbon_notes, carbon_of, completed, with_carbon
from edgefl.planning.costs import tight
from edgefl.planning.dealing import DealtClients, assumption, dealt, kinds, share_cells
from edgefl.planning.fit import fit_note, fitted, lengths, lengths_note
from edgefl.planning.fleets import device, devices_of, fleet_of
from edgefl.planning.learning import DataAccess, Learning, check_measures, data_of, learn_from
from edgefl.planning.pricing import prices
from edgefl.planning.repricing import Pricer
from edgefl.protocol import Assignment, Ctx, Net


@dataclass(frozen=True)
class Planned:
    """A plan with its learning.

    Attributes:
        resolved: everything the result depends on, as plain data.
        data_notes: what the plan assumes of the data, and which of them nobody has, as sentences.
    """

    plan: Plan
    learning: Learning
    resolved: dict[str, Any]
    data_notes: tuple[str, ...] = ()

    @property
    def run_id(self) -> str:
        """A hash of ``resolved``: equal ids, equal results."""
        text = json.dumps(self.resolved, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@placed
def plan(draft: Draft, access: DataAccess) -> Planned:
    """Plans one run; nothing is trained. A ``UserError`` if the scenario, or a file it names, is wrong."""
    asked, document = draft.scenario, draft.document
    ground = ground_of(draft, access)
    learning = learn_from(asked.learning, document, data_of(asked, document, access), access.nets)
    learning = fitted(learning, document, ground.fleet, np.unique(learning.federation.samples).tolist())
    notes = [*_data_notes(learning.federation, asked), *_settings_notes(learning)]
    return planned(draft, learning, ground, access.traces, notes)


class Ground(NamedTuple):
    """What a plan's clients run on.

    Attributes:
        fleet: with all links that its members name, and its carbon record complete.
        assumed: what its devices and links assume, as sentences.
        server: the server's device; None where its work is free.
    """

    fleet: Fleet
    devices: Mapping[str, Board]
    assumed: tuple[str, ...]
    server: Board | None = None


@placed
def ground_of(draft: Draft, access: DataAccess) -> Ground:
    """The fleet and its devices, with all checks of a draft that come before anything is built.

    Raises:
        UserError: the first mistake, with all others.
    """
    mistakes = Mistakes()
    with mistakes.collected():
        check_server(draft)
    with mistakes.collected():
        fleet = fleet_of(draft, access.fleets)
        _check_draws(draft, fleet)
        devices = devices_of(fleet, draft.document.place(["fleet"]))
    with mistakes.collected():
        server = server_board(draft)
    mistakes.check()
    notes: list[str] = [*assumptions(devices, fleet.links)]
    if fleet.carbon is not None:
        given = Carbon.model_validate(fleet.carbon, context=RESOLVED)
        categories = {name: device.category for name, device in devices.items()}
        carbon = completed(given, fleet.links, categories, fleet.availability.start_h())
        fleet = with_carbon(fleet, carbon)
        notes += carbon_notes(carbon)
    return Ground(fleet, devices, tuple(notes), server)


@placed
def planned(
    draft: Draft,
    learning: Learning,
    ground: Ground,
    traces: dict[str, tuple[Trace, ...]],
    data_notes: Sequence[str],
    notes: Sequence[str] = (),
) -> Planned:
    """The plan of a learning, whose batch size is a number, on a fleet.

    Traces are added to the known ones, see ``DataAccess``; ``notes`` say what else is assumed.

    Raises:
        UserError: the learning and the fleet, or the server's settings, do not go together.
    """
    asked, document, server = draft.scenario, draft.document, draft.scenario.server
    fleet, devices = ground.fleet, ground.devices
    if server.until.rounds is None:
        assigned(learning, fleet, None)
    check_measures(learning.measures, learning.nets[0], document)
    exchanges = learning.methods[0].exchanges
    fresh = [each.name for each in exchanges if each.when.at == "round" and not each.stale]
    if fresh and server.policy.merges_stale():
        raise ScenarioError(
            f"the policy {server.policy.name!r} merges stale uploads, and {asked.method.name}'s exchange "
            f"{fresh[0]!r} cannot be stale",
            where=document.place(["server", "policy"]),
            hint="choose a synchronous policy, such as sync",
        )
    scenario = asked.model_copy(update=dict(learning.spec))
    if isinstance(asked.fleet, Fleet):
        own = with_carbon(asked.fleet, carbon_of(asked.fleet, document, ["fleet"]))
        scenario = scenario.model_copy(update={"fleet": own})
    clients = deal(scenario, fleet, devices, learning)
    clients, limits, each = lengths(learning, document, clients, fleet, devices, traces)
    table, refused = prices(learning, clients, limits, fleet, devices, traces)
    admitted = ~np.isin(clients.kind, list(refused))
    clients = replace(clients, admitted=admitted)
    server_ = server_work(draft, learning, ground.server)
    found = Plan(
        scenario=scenario,
        clients=clients,
        prices=table,
        refusals=refused,
        fleet=fleet,
        assumed=(
            *data_notes,
            *notes,
            *([assumption(fleet.users, len(clients))] if fleet.users is not None else []),
            *fit_note(asked.local, scenario.local),
            *([lengths_note(scenario.local, each[admitted])] if each is not None and admitted.any() else []),
            *tight(clients, table, devices),
            *ground.assumed,
            *server_notes(draft, learning, server_, devices),
            *of_cells(fleet),
            *fleet.availability.assumptions(clients),
            *(line for speed in fleet.speed for line in speed.assumptions(clients)),
        ),
        server_work=server_,
    )
    check_whole(found)
    return Planned(found, learning, _resolved(scenario, learning, ground), tuple(data_notes))


def _data_notes(data: Federation, scenario: Scenario) -> list[str]:
    """What is assumed of the data, and which of them nobody has, in words."""
    task, notes = scenario.task, list[str]()
    if data.assumed:
        notes.append(f"{data.spec.name}: no files, so labels are assumed balanced")
    if task.samples:
        notes.append("task.samples: clients have numbers of samples and no data")
    held = len(data.test) if scenario.evaluate.on == "holdout" or task.pooled else 0
    whole, given = len(data.train_y) - held - task.withheld, int(data.samples.sum())
    # What task.share leaves out is what was asked for.
    if data.parts and given < whole and not task.share:
        share = show_share((whole - given) / whole)
        left = f"{whole - given:,} of {whole:,} training samples ({share}) are left out"
        notes.append(f"task.partition: {left}")
    return notes


def _settings_notes(learning: Learning) -> Iterator[str]:
    """What augmentations do to the data's samples, and first weights that nobody keeps, in words."""
    spec, local = learning.federation.spec, learning.spec.local
    # Ascending values show what is blank, and what is turned round.
    x = torch.linspace(0.25, 0.75, math.prod(spec.shape)).view(spec.shape).repeat(16, 1, 1, 1)
    exchanges = (exchange for method in learning.methods for exchange in method.exchanges)
    phases = {repr(phase.augment): phase for each in exchanges for phase in each.work.phases}
    for phase in phases.values():
        if augment := learning.augment(phase):
            where = "method.augment" if phase.augment else "task.augment"
            found = augment(x.clone(), torch.Generator().manual_seed(0))
            if (found.amax((1, 2, 3)) == found.amin((1, 2, 3))).any():
                yield f"{where}: leaves nothing of some samples of {spec.shape[1]}x{spec.shape[2]}"
            if spec.signals and (found.diff().sign().sum((1, 2, 3)) < 0).any():
                yield f"{where}: mirrors signals, so that they run backwards"
    if local.first_weights == "own":
        made = zip(learning.methods, learning.nets, strict=True)
        kept = ([tensors(one.client(net.init(seed))) for seed in (0, 1)] for one, net in made)
        if all(all(map(torch.equal, *pair)) for pair in kept):
            yield f"local.first_weights: {learning.spec.method.name}'s clients keep no weights of their own"


def check_whole(plan: Plan) -> None:
    """What only a whole plan tells: that its rounds end, and what its policy and its selector refuse.

    Raises:
        ScenarioError: they never end, no counter holds their totals, or one of the two refuses the plan.
    """
    check_limits(plan)
    check_size(plan)
    plan.scenario.server.selector.check(plan)
    plan.scenario.server.policy.check(plan)


def deal(scenario: Scenario, fleet: Fleet, boards: Mapping[str, Board], learning: Learning) -> Clients:
    """Each client's device, link, model, kind and slowdown."""
    count, root = scenario.task.clients, scenario.seed
    found = dealt(fleet, count, root)
    if found.slowdown is None:
        drawn = draws.uniforms(draws.derive(root, "slowdown"), np.arange(count))
        found = found._replace(slowdown=_multipliers(fleet.slowdown, drawn))
    model, samples = scenario.model_of(np.arange(count)), learning.federation.samples
    cell, cells = share_cells(fleet, found.member)
    return replace(clients_of(found, model, samples, learning.nets, boards), cell=cell, cells=cells)


def clients_of(
    found: DealtClients, model: Ints, samples: Ints, nets: Sequence[Net], boards: Mapping[str, Board]
) -> Clients:
    """Clients in no cell, all admitted; ``model``, an index into the nets, and ``samples`` are (clients,)."""
    names = [net.name for net in nets]
    return Clients(
        device=found.device.place,
        link=found.link.place,
        dtype=found.dtype.place,
        model=model,
        samples=samples,
        kind=kinds_of(found.device.place, found.link.place, found.dtype.place, model, samples),
        slowdown=np.ones(len(model)) if found.slowdown is None else found.slowdown,
        admitted=np.ones(len(model), dtype=bool),
        cell=np.full(len(model), -1),
        user=found.user,
        devices=found.device.names,
        links=found.link.names,
        dtypes=found.dtype.names,
        models=tuple(
            name if names.count(name) == 1 else f"{name} #{place}" for place, name in enumerate(names, 1)
        ),
        cells=(),
        batteries=tuple(boards[name].battery for name in found.device.names),
        throttling=tuple(boards[name].throttling for name in found.device.names),
    )


def _multipliers(sampler: Sampler, uniform: Floats) -> Floats:
    return returned(sampler.draw(uniform), np.ndarray, type(sampler).draw, "an array of multipliers")


def _check_draws(draft: Draft, fleet: Fleet) -> None:
    """Refuses multipliers of which the largest draws are infinite."""
    ends = np.array([2.0**-53, 0.25, 0.5, 0.75, 1 - 2.0**-53])
    for key in ("slowdown", "jitter"):
        with np.errstate(all="ignore"):
            drawn = _multipliers(getattr(fleet, key), np.stack(np.meshgrid(ends, ends)).reshape(2, -1))
        if not np.isfinite(drawn).all():
            raise ScenarioError(
                f"draws of {key!r} can be infinite",
                where=draft.document.place(["fleet", key]),
                hint="choose a smaller spread or a lighter tail",
            )


def check_server(draft: Draft) -> None:
    """Refuses more participants than clients, and a schedule over a number of rounds that nobody knows."""
    scenario, server, mistakes = draft.scenario, draft.scenario.server, Mistakes()
    schedule, clients = scenario.local.optimizer.schedule, scenario.task.clients
    if (server.participants or 0) > clients:
        what = f"{server.participants} participants per round, but only {clients} clients"
        hint, where = "lower server.participants or raise task.clients", ["server", "participants"]
        mistakes.add(ScenarioError(what, where=draft.document.place(where), hint=hint))
    if server.until.rounds is None and schedule.NEEDS_ROUNDS:
        what = f"the schedule {schedule.name!r} needs to know the number of rounds"
        hint = "add rounds to server.until; the first limit that is met ends the run"
        mistakes.add(ScenarioError(what, where=draft.document.place(["server", "until"]), hint=hint))
    mistakes.check()


def assigned(
    learning: Learning, fleet: Fleet, rounds: int | None, round_: int = 0
) -> list[Mapping[str, float]]:
    """What the methods' exchanges set for jobs of a round, on each of the fleet's devices.

    Raises:
        ScenarioError: an exchange's settings need the number of rounds, and nobody knows it.
    """
    ctx = Ctx(client=0, round=round_, lr=1.0, steps=1, samples=1, class_counts=torch.ones(1))
    devices = dict.fromkeys(kind.device for kind in kinds(fleet))
    return [
        exchange.context(Assignment(ctx, rounds, device)).settings
        for method in learning.methods
        for exchange in method.exchanges
        for device in devices
    ]


def _resolved(scenario: Scenario, learning: Learning, ground: Ground) -> dict[str, Any]:
    """The scenario with all defaults written out and the contents of all named files."""
    data = scenario.resolved()
    if learning.federation.assumed:
        data["task"][LABELS] = "assumed"
    contents = {"data": learning.federation.spec.content, "public_data": learning.federation.public_content}
    return {
        **{key: content for key, content in contents.items() if content},
        "scenario": data,
        "fleet": ground.fleet.model_dump(mode="json"),
        "devices": {name: device.model_dump(mode="json") for name, device in ground.devices.items()},
        **({"server_device": ground.server.model_dump(mode="json")} if ground.server is not None else {}),
    }


_COUNTED = {"flops": "operations", "down_bytes": "bytes down", "up_bytes": "bytes up"}
_MOST = 2**63 - 1
# Assumed of the clock: measured by benchmarks/world.py, and of rounds of a job or none, on one core.
_JOBS_PER_S, _ROUNDS_PER_S = 20_000, 3_000
_LONG_S = 60.0


def check_limits(plan: Plan) -> None:
    """Refuses rounds without end: traffic or energy alone limit them, and no client's rounds add to these."""
    until = plan.scenario.server.until
    clients = plan.clients
    if until.rounds is not None or until.time is not None or not clients.admitted.any():
        return
    kinds = np.unique(clients.kind[clients.admitted])
    rounds = [prices.demand for prices in plan.prices if prices.at == "round"]
    moved = any((one.down_bytes[kinds] + one.up_bytes[kinds]).any() for one in rounds)
    # A client's energy counts if it is known in all exchanges.
    demands = (prices.demand.taken(kinds) for prices in plan.prices)
    powers = [np.stack((one.idle_w, one.compute_w, one.radio_w)) for one in demands]
    known = (~np.isnan(np.concatenate(powers))).all(axis=0).any()
    if (until.bytes is not None and moved) or (until.energy is not None and known):
        return
    reason = "no client's energy is known" if until.energy is not None else "the method sends nothing"
    raise ScenarioError(
        f"the rounds would never end: {reason}",
        where="server.until",
        hint="give rounds or time too",
    )


def _size(plan: Plan) -> tuple[float, dict[str, float]]:
    """About how many rounds a plan with clients has, or merges without rounds, and how many jobs by exchange.

    As its limits of rounds and of time say; inf where none does.
    """
    server, clients = plan.scenario.server, float(plan.clients.admitted.sum())
    asked = min(clients, server.policy.asks(server.participants) or clients)
    # An asynchronous policy merges what has arrived from those that are at work.
    merged = server.policy.merges(asked)
    rounds = float(server.until.rounds or math.inf)
    each_round = [prices for prices in plan.prices if prices.at == "round"]
    if server.until.time is not None and each_round:
        demands = [prices.demand.taken(plan.clients.kind[plan.clients.admitted]) for prices in each_round]
        job_s = float(np.mean([np.mean(one.down_s + one.work_s + one.up_s) for one in demands]))
        least_s, most_s = server.policy.lasts_s()
        length_s = min(max(job_s * merged / asked, least_s), most_s)
        rounds = min(rounds, server.until.time / max(length_s, 1e-12))
    return rounds, {
        prices.exchange: rounds / prices.every * (clients if prices.everyone else merged)
        if prices.at == "round"
        else clients
        for prices in plan.prices
    }


def check_size(plan: Plan) -> None:
    """Refuses totals of operations or bytes beyond 64 bits; a note tells if the clock takes over a minute."""
    if not plan.clients.admitted.any():
        return
    rounds, by_exchange = _size(plan)
    # Of other limits it is not known how many rounds they let through.
    only_rounds = plan.scenario.server.until.model_dump(exclude_none=True).keys() == {"rounds"}
    admitted = np.unique(plan.clients.kind[plan.clients.admitted])
    for name, words in _COUNTED.items():
        each = {
            prices.exchange: float(getattr(prices.demand, name)[admitted].max()) for prices in plan.prices
        }
        total = sum(jobs * each[exchange] for exchange, jobs in by_exchange.items())
        if only_rounds and total > _MOST:
            raise ScenarioError(
                f"all jobs have about {total:.2g} {words}; the most that can be counted is {_MOST:.2g}",
                where="local" if name == "flops" else "server",
                hint="lower the epochs or steps, or the rounds",
            )
    jobs = sum(by_exchange.values())
    seconds = jobs / _JOBS_PER_S + rounds / _ROUNDS_PER_S
    if math.isfinite(seconds) and seconds > _LONG_S:
        long = f"{seconds / DAY_S:,.0f} days" if seconds > 2 * DAY_S else show_seconds(seconds)
        note(
            f"{plan.scenario.name}: the clock alone takes about {long}, for {rounds:.2g} rounds with "
            f"{jobs:.2g} jobs (assumed: {_ROUNDS_PER_S:,} rounds and {_JOBS_PER_S:,} jobs a second)"
        )


def server_board(draft: Draft) -> Board | None:
    """The server's device; None where its work is free. A ``UserError`` if its file is missing or wrong."""
    name = draft.scenario.server.device
    return None if name is None else device(name, where=draft.document.place(["server", "device"]))


def server_work(draft: Draft, learning: Learning, board: Board | None) -> ServerWork | None:
    """The server's device and its merges; None where its work is free.

    Raises:
        UserError: a merge cannot be traced, or the device cannot do it or lacks a number that timing needs.
    """
    name, place = draft.scenario.server.device, draft.document.place(["server", "device"])
    if name is None or board is None:
        return None
    method, net, clients = learning.methods[0], learning.nets[0], draft.scenario.task.clients
    try:
        traces = {one.name: merge_trace(method, one, net, clients) for one in method.exchanges}
        found = ServerWork(name, board, traces)
        for exchange, cost in merge_costs(draft, learning, found).items():
            if reason := board.refusal(traces[exchange].work(cost.uploads), found.dtype):
                raise ScenarioError(f"merging in {exchange!r} is more than {name} can do: {reason}")
    except UserError as error:
        error.where, error.hint = error.where or place, error.hint or "without server.device, merging is free"
        raise
    return found


def merge_costs(draft: Draft, learning: Learning, server: ServerWork) -> dict[str, MergeCost]:
    """What a merge of each exchange costs, with the uploads of all clients that are asked at a time."""
    clients, server_ = draft.scenario.task.clients, draft.scenario.server
    exchanges = learning.methods[0].exchanges
    asked = {one.name: clients if one.who == "all" else server_.participants or clients for one in exchanges}
    return {name: server.price(name, uploads) for name, uploads in asked.items()}


def merge_bounds(draft: Draft, learning: Learning, server: ServerWork) -> dict[str, dict[str, Interval]]:
    """The bounds of its seconds and joules by exchange; none where no number is open."""
    pricer = Pricer(server.name, server.board, server.dtype)
    if pricer.corners is None:
        return {}
    works = (replace(server, board=end.device) for end in pricer.corners)
    cheap, costly = (merge_costs(draft, learning, work) for work in works)
    found = {}
    for name, low in cheap.items():
        open_ = pricer.is_lower_bound and low.seconds
        high_s, high_j = (None, None) if open_ else (costly[name].seconds, costly[name].joules)
        found[name] = {"seconds": Interval.of(low.seconds, high_s), "joules": Interval.of(low.joules, high_j)}
    return found


def server_notes(
    draft: Draft, learning: Learning, server: ServerWork | None, clients: Container[str]
) -> Iterator[str]:
    """What its numbers assume, if its device is none of its clients', and where its memory is too small."""
    if server is None:
        return
    if server.name not in clients:
        yield from assumed_numbers("server", server.name, server.board)
    room = server.board.usable_memory_bytes
    for name, cost in merge_costs(draft, learning, server).items():
        if room is not None and cost.peak_bytes > room:
            needs = f"merging {cost.uploads:,} uploads in {name!r} needs {show_bytes(cost.peak_bytes)}"
            yield f"server.device: {needs}, and {server.name} has {show_bytes(room)}"
