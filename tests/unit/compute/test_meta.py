"""Traces: memory and backward passes, derived by hand."""

import torch
from builders import build_method, build_net
from torch.utils.checkpoint import checkpoint

from edgefl.compute import meta
from edgefl.compute.tracer import Tracer
from edgefl.core.cost import Work
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.scenario import LocalTraining


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

    assert _backwards(lambda x: x.sin().sum().backward()) == 1
    assert _backwards(two) == 2
    assert _backwards(second_order) == 2
    assert _backwards(recomputed) == 2
