"""Traces: interpolation over batch sizes, and memory derived by hand."""

from __future__ import annotations

from dataclasses import replace

import torch
from builders import build_method, build_net
from torch.utils.checkpoint import checkpoint

from edgefl.compute import meta
from edgefl.compute.tracer import INPUT, Tracer
from edgefl.core.cost import Kernel, Work, between
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.training import LocalTraining


def kernel(m: int, flops: int, op: str = "mm") -> Kernel:
    return Kernel(op, "dense", "forward", "", m, 8, 8, 1, flops, 4 * m)


def test_affine_kernels_are_interpolated():
    """Halfway between two sizes every number is halfway; bytes too."""
    low, high = [kernel(4, 400), kernel(1, 7, "relu")], [kernel(10, 1000), kernel(1, 7, "relu")]
    assert between(low, high, 4, 10, 7) == [kernel(7, 700), kernel(1, 7, "relu")]


def test_other_kernels_are_not_interpolated():
    """Other kernels, or a number that would be fractional, cannot be interpolated."""
    assert between([kernel(4, 400)], [kernel(4, 400, "relu")], 4, 10, 7) is None
    assert between([kernel(4, 400)], [], 4, 10, 7) is None
    assert between([kernel(4, 400)], [kernel(10, 401)], 4, 10, 7) is None


def direct(name: str, sizes: range, **settings) -> dict[int, Work]:
    """Every size traced on its own."""
    net = build_net("mlp", (1, 3, 4), 5, hidden=(8,))
    method = build_method(name, net, **settings)
    (found,) = method.exchanges
    return {size: meta.trace(method, found, net, [[{size: 1}]]).phases[0].steps[size] for size in sizes}


def together(name: str, sizes: range, **settings) -> dict[int, Work]:
    """All sizes at once, as pricing asks for them."""
    net = build_net("mlp", (1, 3, 4), 5, hidden=(8,))
    method = build_method(name, net, **settings)
    return dict(meta.trace(method, method.exchanges[0], net, [[dict.fromkeys(sizes, 1)]]).phases[0].steps)


def test_affine_work_is_interpolated_exactly(monkeypatch):
    """Of thirty sizes, two are traced besides the whole; the others equal what tracing gives."""
    traced = []
    original = meta.step_kernels

    def counted(*args):
        traced.append(args[-1])
        return original(*args)

    monkeypatch.setattr(meta, "step_kernels", counted)
    found = together("fedavg", range(2, 32))
    assert len(traced) == 2
    assert found == direct("fedavg", range(2, 32))


def test_quadratic_work_is_traced_size_by_size():
    """SupCon compares all pairs: its kernels grow with the square, so every size is traced."""
    sizes = range(2, 12)
    found = together("fedclassavg", sizes)
    assert found == direct("fedclassavg", sizes)
    # The similarities alone: 2 * (2B)^2 * l forward.
    similar = {size: 2 * (2 * size) ** 2 * 8 for size in sizes}
    for size, work in found.items():
        assert similar[size] in {one.flops for one, _ in work}


def test_memory_counts_operands_and_results_together():
    """X (100 bytes) -> y -> z, each dropped once used: two of them are alive while an operator runs."""
    with torch.device("meta"):
        x = torch.empty(25)
        tracer = Tracer()
        with tracer:
            tracer.watch(x, INPUT)
            y = x + 1
            del x
            z = y * 2
            del y
            z.neg()
    assert sum(tracer.peak().values()) == 200


def test_the_peak_of_a_two_layer_net_by_hand():
    """Linear 12 -> 8, ReLU, linear 8 -> 5, cross-entropy, plain SGD, batch 1000: activations rule.

    With 4 bytes a number and B = 1000, in units of 4 B: the input holds 12 and labels 2 (int64). The forward
    pass leaves 8 (the first layer's output, which is not saved and goes with the ReLU's), 8 (the ReLU's,
    saved) and 5 log-probabilities (saved; the logits go). The worst moment is in the backward pass at the
    ReLU: saved 8, its incoming gradient 8 and its result 8, while the log-probabilities and the logits'
    gradient are gone. Weights: 12 * 8 + 8 + 8 * 5 + 5 = 149 numbers, and the head's 45 gradients are there.
    Three single numbers: the loss, its normaliser, and the carry's sum of losses.
    """
    net = build_net("mlp", (1, 3, 4), 5, hidden=(8,))
    method = build_method("fedavg", net, LocalTraining(optimizer=Sgd(lr=0.1)))
    size = 1000
    peak = meta.trace(method, method.exchanges[0], net, [[{size: 1}]]).peaks[size,]
    assert peak == {
        "parameters": 4 * 149,
        "gradients": 4 * 45,
        "input": 4 * 12 * size + 8 * size,
        "activations": 4 * 8 * size + 2 * 4,
        "transient": 4 * 16 * size + 4,
    }


def test_a_later_phase_starts_where_the_earlier_one_ends():
    """A phase may read what the previous phase put into the carry."""
    net = build_net("mlp", (1, 3, 4), 5, hidden=(8,))
    method = build_method("fedavg", net)
    (found,) = method.exchanges
    (train,) = found.work.phases

    def first(carry, batch):
        return {**train.step(carry, batch), "kept": batch.x.mean()}

    def second(carry, batch):
        return {**carry, "kept": carry["kept"] * batch.x.sum()}

    phases = (replace(train, step=first), replace(train, step=second))
    two = replace(found, work=replace(found.work, phases=phases))
    traced = meta.trace(method, two, net, [[{4: 1}, {4: 1}]])
    assert [one.op for one, _ in traced.phases[1].steps[4]] == ["sum", "mul"]


def passes(name: str, **settings) -> dict[str, list[int]]:
    """By exchange of a method: the backward passes before the first step, in a step, and after the last."""
    net = build_net("mlp", (1, 3, 4), 5, hidden=(8,))
    method = build_method(name, net, **settings)
    found = {}
    for exchange in method.exchanges:
        taken = [{4: 1} for _ in exchange.work.phases]
        trace = meta.trace(method, exchange, net, [taken])
        works = [trace.start, *(phase.steps[4] for phase in trace.phases), trace.finish]
        found[exchange.name] = [work.backwards for work in works]
    return found


def test_backward_passes_of_methods():
    """One a step wherever it trains, however many terms its objective has; none where nothing is trained."""
    for name in ("fedavg", "fedprox", "fedclassavg", "flexchill"):
        assert passes(name) == {"train": [0, 1, 0]}
    sphere = passes("spherefed")
    assert sphere.pop("train") == [0, 1, 0]
    assert sphere.keys() == {"announce", "calibrate", "deliver"}
    assert not any(map(any, sphere.values()))


def _backwards(step) -> int:
    """The backward passes of a function of meta tensors."""
    with torch.device("meta"):
        tracer = Tracer()
        with tracer:
            step(torch.ones(3, requires_grad=True))
    return Work.of(tracer.kernels).backwards


def test_every_backward_pass_is_counted():
    """Also two with no operator between them, one through another's graph, and one inside of another."""

    def two(x):
        y, z, ones = x.sin(), x.cos(), torch.ones(3)
        torch.autograd.grad(y, x, ones)
        torch.autograd.grad(z, x, ones)

    def second_order(x):
        (slope,) = torch.autograd.grad(x.sin().sum(), x, create_graph=True)
        torch.autograd.grad(slope.sum(), x)

    def recomputed(x):
        checkpoint(torch.sin, x, use_reentrant=True).sum().backward()

    assert _backwards(lambda x: x.sin()) == 0
    assert _backwards(lambda x: x.sin().sum().backward()) == 1
    assert _backwards(two) == 2
    assert _backwards(second_order) == 2
    assert _backwards(recomputed) == 2


def test_sizes_between_keep_the_backward_pass():
    """Interpolated steps have as many backward passes as traced ones."""
    assert {work.backwards for work in together("fedavg", range(2, 32)).values()} == {1}
