"""Clients trained together have the results of clients trained alone: every method, on ragged groups."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from builders import MOMENTUM, NETS, arrival, build_method, build_net
from made_methods import MADE
from nightly import paired, sampled

from edgefl.compute import gradients, loop
from edgefl.compute.job import Group, Outcome, Size, Task
from edgefl.compute.vmapped import Vmapped
from edgefl.core import catalogue
from edgefl.core.event import TrainingJob
from edgefl.core.optimizers.adam import Params as Adam
from edgefl.core.optimizers.adamw import Params as AdamW
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.scenario import LocalTraining
from edgefl.protocol import Assignment, Batch, Ctx, Exchange, Method, Net, Phase, Tree, flatten, tree_map

pytestmark = pytest.mark.usefixtures("as_engines_work")

NAMES = tuple(catalogue.entries("methods"))


# Two passes each: other numbers of full batches, other rests, one of them equal for two clients, one joined.
SIZES = ([6, 6, 4] * 2, [6, 6, 6, 4] * 2, [6, 3] * 2, [6, 7] * 2)
DEVICES = ("raspberry-pi-4b", "laptop-cpu", "raspberry-pi-5")
TEMPERATURES = {
    "device": {"values": {"raspberry-pi-4b": 0.3, "laptop-cpu": 0.7}},
    "model": {"values": {"mlp": 0.3}},
    "round": {"start": 0.3, "end": 2.0},
    "work": {},
    "sample": {},
}
OPTIMIZERS = {
    "plain": Sgd(lr=0.1),
    "all of it": Sgd(lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3, clip_norm=0.5),
    "adam": Adam(lr=0.01),
    "adamw": AdamW(lr=0.01),
}


@dataclass
class Feed:
    """Prepared batches, stacked on demand."""

    batches: list[list[Batch]]

    @property
    def sizes(self) -> list[list[int]]:
        """Of every client's steps."""
        return [[len(batch.y) for batch in each] for each in self.batches]

    def take(self, chosen, done) -> Batch:
        """The next batches of the chosen."""
        found = [self.batches[place][done[place]] for place in chosen]
        return Batch(torch.stack([one.x for one in found]), torch.stack([one.y for one in found]))


def batches_of(phase: Phase, net: Net, client: int, sizes=SIZES, dtype=torch.float64) -> list[Batch]:
    generator = torch.Generator().manual_seed(client)
    views = (phase.views,) if phase.views > 1 else ()
    found, samples = [], 0
    for size in sizes[client]:
        x = torch.randn(*views, size, *net.shape, generator=generator, dtype=dtype)
        y = torch.randint(net.classes, (size,), generator=generator)
        if phase.data == "public":
            y = torch.arange(samples, samples + size) % phase.passes.samples
        found.append(Batch(x, y))
        samples += size
    return found


def group(
    exchange: Exchange, net: Net, server: Any, states: list[Any], sizes=SIZES, dtype=torch.float64
) -> Group:
    tasks = []
    for client, state in enumerate(states):
        steps = len(sizes[client]) * len(exchange.work.phases)
        job = TrainingJob(client, client, exchange.name, 0, 0, 0, client, steps)
        counts = torch.full((net.classes,), 1.0 + client)
        ctx = Ctx(client, client, 0.1, steps, sum(sizes[client]), counts, 1 / (1 + client))
        ctx = exchange.context(Assignment(ctx, len(states), DEVICES[client % len(DEVICES)]))
        batches = lambda phase, client=client: iter(batches_of(phase, net, client, sizes, dtype))  # noqa: E731
        tasks.append(Task(job, exchange.work, exchange.down(server, client), state, ctx, batches))

    def feed(place: int) -> Feed:
        phase = exchange.work.phases[place]
        return Feed([batches_of(phase, net, client, sizes, dtype) for client in range(len(states))])

    return Group(tuple(tasks), feed)


def together(trainer: Vmapped, given: Group) -> list[Outcome]:
    found = list(trainer.work(given))
    return sorted(found, key=lambda outcome: outcome.job.id)


def assert_alike(one: list[Outcome], other: list[Outcome]) -> None:
    assert [outcome.job for outcome in one] == [outcome.job for outcome in other]
    for left, right in zip(one, other, strict=True):
        assert left.scalars == pytest.approx(right.scalars, rel=1e-9)
        for mine, theirs in ((left.upload, right.upload), (left.state, right.state)):
            assert (mine is None) == (theirs is None)
            found, expected = flatten(mine or {}), flatten(theirs or {})
            assert found.keys() == expected.keys()
            for key, leaf in found.items():
                # Training at a rate this high amplifies rounding, in three dozen steps to some 1e-9.
                torch.testing.assert_close(
                    leaf, expected[key], rtol=1e-7, atol=1e-8, msg=lambda m, k=key: f"{k}: {m}"
                )


def initial_of(net: Net, seed: int = 0) -> Tree:
    return tree_map(torch.Tensor.double, net.init(seed))


def check(method: Method, net: Net, sizes=SIZES) -> None:
    initial = initial_of(net)
    server, states = method.server(initial), [method.client(initial) for _ in sizes]
    for exchange in method.exchanges:
        given = group(exchange, net, server, states, sizes)
        alone = [loop.work(task) for task in given.tasks]
        assert_alike(together(Vmapped(64, 10**9), given), alone)
        states = [state if one.state is None else one.state for one, state in zip(alone, states, strict=True)]
        arrivals = [
            arrival(one.upload, task.ctx, task.payload) for one, task in zip(alone, given.tasks, strict=True)
        ]
        server = exchange.merge(server, arrivals)


@sampled(8, ("method", "net"), paired(NAMES, NETS))
def test_clients_together_are_clients_alone(method, net):
    """Uploads, states and scalars agree with the loop's up to rounding."""
    name, shape, settings = NETS[net]
    built = build_net(name, shape, 10, **settings)
    check(build_method(method, built, MOMENTUM, len(SIZES)), built)


@sampled(
    1,
    ("method", "settings"),
    [
        ("ffc", {"calibrate": "personal", "ridge": 0.1}),
        ("spherefed", {"calibrate": "personal_sgd", "head": "tammes"}),
        ("fedproto", {"predict": "head"}),
    ],
)
def test_variants_stack(method, settings):
    net = build_net("mlp", (1, 8, 8), 10, hidden=(24,))
    check(build_method(method, net, MOMENTUM, len(SIZES), **settings), net)


@sampled(3, ("made", "net"), paired(MADE, NETS))
def test_what_methods_are_made_of_stacks(made, net):
    """Terms on inner layers, shifts, several phases and models, and extensions agree with the loop's."""
    name, shape, settings = NETS[net]
    built = build_net(name, shape, 10, **settings)
    check(MADE[made](built), built)


@sampled(5, ("by", "base"), paired(TEMPERATURES, NAMES))
def test_every_temperature_stacks(by, base):
    """Clients of other devices, rounds and shares of work have temperatures of their own, on every base."""
    net = build_net("mlp", (1, 8, 8), 10, hidden=(24,))
    chilled = {"temperature": {"by": by, **TEMPERATURES[by]}, "base": {"name": base}}
    check(build_method("flexchill", net, MOMENTUM, len(SIZES), **chilled), net)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_stacks(optimizer):
    """Each client has its own norm to clip and, under Adam, its own number of steps."""
    net = build_net("mlp", (1, 8, 8), 10, hidden=(24,))
    check(build_method("fedavg", net, LocalTraining(optimizer=OPTIMIZERS[optimizer])), net)


@sampled(8, ("method", "net"), paired(NAMES, NETS))
def test_a_recorded_step_has_the_bits_of_one_that_is_not(monkeypatch, method, net):
    """What was recorded depends on what a process has done before; in single precision, as runs train."""
    name, shape, settings = NETS[net]
    built = build_net(name, shape, 10, **settings)
    method, initial, sizes = build_method(method, built, MOMENTUM, 3), built.init(0), ([6] * 3,) * 3
    server, states = method.server(initial), [method.client(initial) for _ in sizes]
    for exchange in method.exchanges:
        given = group(exchange, built, server, states, sizes, torch.float32)
        found = []
        for calls in (0, 10**9):
            monkeypatch.setattr(gradients, "_FREQUENT", calls)
            found.append(together(Vmapped(64, 10**9), given))
        for left, right in zip(*found, strict=True):
            assert left.scalars == right.scalars
            for mine, theirs in ((left.upload, right.upload), (left.state, right.state)):
                expected = flatten(theirs or {})
                assert all(torch.equal(leaf, expected[key]) for key, leaf in flatten(mine or {}).items())
        states = [
            state if one.state is None else one.state for one, state in zip(found[0], states, strict=True)
        ]
        pairs = zip(found[0], given.tasks, strict=True)
        server = exchange.merge(server, [arrival(one.upload, task.ctx, task.payload) for one, task in pairs])


def test_earlier_training_changes_no_bit():
    net = build_net("mlp", (1, 8, 8), 10, hidden=(24,))
    method = build_method("fedprox", net, MOMENTUM)
    server, (train,) = method.server(initial_of(net)), method.exchanges
    sizes = ([6] * 12, [6] * 12, [6] * 12 + [4])
    fresh, old = Vmapped(64, 10**9), Vmapped(64, 10**9)
    together(old, group(train, net, server, [None] * 3, sizes))
    assert any(tape for *_, tape in old._gradients._known.values())  # noqa: SLF001 - else nothing is tested
    for given in (sizes, ([6] * 3,) * 3, ([6] * 12,)):
        one, other = (
            together(trainer, group(train, net, server, [None] * len(given), given))
            for trainer in (fresh, old)
        )
        for left, right in zip(one, other, strict=True):
            assert left.scalars == right.scalars
            for key, leaf in flatten(left.upload).items():
                assert torch.equal(leaf, flatten(right.upload)[key])


def test_of_many_kinds_of_steps_the_latest_are_known(monkeypatch):
    """A number in the carry that changes every round makes new kinds for as long as a run takes."""
    monkeypatch.setattr(gradients, "_MOST_KINDS", 2)
    net = build_net("mlp", (1, 8, 8), 10, hidden=(24,))
    method, trainer = build_method("fedavg", net, MOMENTUM), Vmapped(64, 10**9)
    server, (train,) = method.server(initial_of(net)), method.exchanges
    together(trainer, group(train, net, server, [None] * 3, ([6, 5], [6, 4], [3])))
    assert len(trainer._gradients._known) == 2  # noqa: SLF001


def test_another_rate_is_no_new_kind_of_step():
    """Under a schedule, what was recorded in one round is replayed in the next."""
    net = build_net("mlp", (1, 8, 8), 10, hidden=(24,))
    method, trainer = build_method("fedavg", net, MOMENTUM), Vmapped(64, 10**9)
    server, (train,) = method.server(initial_of(net)), method.exchanges
    given = group(train, net, server, [None] * 2, ([6] * 3, [6] * 3))
    slower = tuple(replace(task, ctx=replace(task.ctx, lr=task.ctx.lr / 2)) for task in given.tasks)
    one, other = together(trainer, given), together(trainer, Group(slower, given.feed))
    assert one[0].scalars != other[0].scalars
    assert len(trainer._gradients._known) == 1  # noqa: SLF001


def test_groups_are_bounded_by_number_and_memory():
    """Units are even, within the bounds, and of one kind of job; together they are all jobs."""
    jobs = [TrainingJob(n, n, "train", 0, 0, 0, n, steps=5) for n in range(10)]

    def size(job: TrainingJob) -> Size:
        return Size(("train", job.id >= 8), job.steps, 10, 100)

    assert [len(unit) for unit in Vmapped(3, 10**9).units(jobs, size)] == [2, 3, 3, 2]
    assert [len(unit) for unit in Vmapped(64, 400).units(jobs, size)] == [4, 4, 2]
    assert [len(unit) for unit in Vmapped(64, 1).units(jobs, size)] == [1] * 10
    found = [job for unit in Vmapped(3, 10**9).units(jobs, size) for job in unit]
    assert sorted(found, key=lambda job: job.id) == jobs
