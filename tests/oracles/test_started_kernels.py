"""What operators start, by torch's profiler: those that methods, models and augmentations call."""

from functools import cache

import pytest
import torch
from builders import MOMENTUM, NETS, build_method, build_net
from torch.utils._python_dispatch import TorchDispatchMode

from edgefl.compute.kernels import COMPOSED, FREE, MOVES, PRODUCTS
from edgefl.compute.process import one_thread
from edgefl.core import catalogue
from edgefl.core.optimizers.adam import Params as Adam
from edgefl.core.scenario import LocalTraining
from edgefl.protocol import Assignment, Batch, Ctx

# Ways to say "as large as", and copies of operands that are not contiguous or of numbers.
ASIDE = FREE | {
    "contiguous",
    "to",
    "resolve_conj",
    "real",
    "result_type",
    "reshape",
    "flatten",
    "expand_as",
    "empty",
}
DRAWS = {"normal_", "uniform_"}
# Operators that hand all of their work to another one.
HANDED = {
    "_to_copy", "clone", "full", "full_like", "new_full", "new_ones", "new_zeros", "ones", "ones_like", "pow",
    "zeros", "zeros_like",
}  # fmt: skip


def inside(event):
    """The names of the operators that an operator calls to work on tensors, in order."""
    names = []
    for child in event.cpu_children:
        name = child.name.removeprefix("aten::")
        if name in ASIDE or not child.name.startswith("aten::"):
            continue
        deeper = inside(child)
        wraps = name in COMPOSED or name in HANDED or name == event.name.removeprefix("aten::")
        names += deeper if wraps and deeper else [name]
    return names


class Profiled(TorchDispatchMode):
    """Runs each operator, and those that are new under the profiler."""

    def __init__(self):
        super().__init__()
        self.found = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name, kwargs = func.overloadpacket.__name__, kwargs or {}
        if name in self.found or name in FREE | PRODUCTS.keys() or name.startswith("_foreach_"):
            return func(*args, **kwargs)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            result = func(*args, **kwargs)
        (event,) = [one for one in profile.events() if one.name == f"aten::{name}" and one.cpu_parent is None]
        self.found[name] = inside(event)
        return result


def work(name, net, local=MOMENTUM):
    """A client's share of every exchange of a method, a step of each phase."""
    method, initial = build_method(name, net, local), net.init(0)
    for exchange in method.exchanges:
        ctx = Ctx(client=0, round=0, lr=0.1, steps=1, samples=6, class_counts=torch.ones(net.classes))
        ctx, fold = exchange.context(Assignment(ctx)), exchange.work
        carry = fold.start(exchange.down(method.initial(initial), 0), method.client(initial), ctx)
        for phase in fold.phases:
            views = (phase.views,) if phase.views > 1 else ()
            x, y = torch.rand(*views, 6, *net.shape), torch.arange(6) % net.classes
            carry = phase.step(carry, Batch(x, y))
        fold.finish(carry, ctx)


def augment(name):
    """An augmentation of a few images."""
    module = catalogue.load("augmentations", name)
    module.Params().augment(torch.rand(2, 3, 8, 8), torch.Generator().manual_seed(0))


@cache
def started():
    """What torch starts inside of every operator."""
    nets = [build_net(name, shape, **settings) for name, shape, settings in NETS.values()]
    with one_thread(), Profiled() as profiled:
        for name in catalogue.entries("methods"):
            work(name, nets[-1])
        for net in nets:
            work("fedavg", net, LocalTraining(optimizer=Adam(lr=0.01)))
        for name in catalogue.entries("augmentations"):
            augment(name)
        # Of methods of users.
        rows, x = torch.tensor([1, 2]), torch.rand(4, 5)
        x.index_put((rows,), x[:2])
        x.scatter(0, rows[:, None], x[:2])
    return profiled.found


def handed(names, name):
    """Whether what an operator calls is all of its work, or what its own kernel starts from."""
    return set(names) <= {"fill_"} or (
        len(names) == 1 and (name in HANDED or names[0] not in {"copy_", "zero_"})
    )


@pytest.mark.nightly
def test_every_operator_starts_what_torch_reports():
    """Each operator of the tables, as its entry says or alone."""
    found = {name: names for name, names in started().items() if name in (MOVES - DRAWS) | COMPOSED.keys()}
    assert found.keys() >= COMPOSED.keys()
    for name, names in found.items():
        if name in COMPOSED:
            steps = [step.partition(":")[0].replace("clone", "copy_") for step in COMPOSED[name].split()]
            own = {name, f"{name}_"}
            assert [one for one in names if one not in own] == [one for one in steps if one not in own], name
        else:
            assert handed(names, name), (name, names)
