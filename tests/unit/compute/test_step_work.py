"""The traced work of a step of any network of modules."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from edgefl.calibrate.workloads import MethodStep, Network
from edgefl.compute.steps import forward_pass, training_step
from edgefl.core.cost import ELEMENTWISE, GRAD_INPUT, GRAD_WEIGHT, UPDATE
from edgefl.core.optimizers.sgd import Params as Sgd

PLAIN = Sgd(lr=0.1)


def two_layers():
    """5 inputs, 4 hidden units, 3 classes."""
    return nn.Sequential(nn.Flatten(), nn.Linear(5, 4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 3))


def products(work, role):
    """The FLOPs of the products of a role."""
    return sum(kernel.flops * count for kernel, count in work if kernel.role == role)


def updates(work):
    """The bytes of each update."""
    return sorted(kernel.bytes for kernel, count in work for _ in range(count) if kernel.role == UPDATE)


def test_a_step_is_forward_backward_and_update():
    """Of 7 samples: 2*7*(5*4 + 4*3) forward, as much for weights, 2*7*3*4 for the hidden layer's input."""
    work = training_step(two_layers, 7, (1, 1, 5), PLAIN)
    assert products(work, "forward") == 2 * 7 * (20 + 12)
    assert work.flops == 2 * 7 * (20 + 12) * 2 + 2 * 7 * 12
    assert work.backwards == 1
    assert updates(work) == [3 * 4 * size for size in (3, 4, 12, 20)]
    full = training_step(two_layers, 7, (1, 1, 5), Sgd(lr=0.1, momentum=0.9, weight_decay=1e-4))
    assert sum(updates(full)) > 3 * sum(updates(work))
    work = forward_pass(two_layers, 7, (1, 1, 5))
    assert work.flops == 2 * 7 * (20 + 12)
    assert {kernel.role for kernel, _ in work} == {"forward"}


def test_a_step_of_the_last_layer_stops_there():
    """The forward pass is whole; only the last layer's weights have gradients, and nothing goes below it."""
    work = training_step(two_layers, 7, (1, 1, 5), PLAIN, last_layer=True)
    assert products(work, "forward") == 2 * 7 * (20 + 12)
    assert products(work, GRAD_INPUT) == 0
    assert products(work, GRAD_WEIGHT) == 2 * 7 * 12
    assert updates(work) == [3 * 4 * 3, 3 * 4 * 12]


def test_a_runtime_fuses_norms_and_activations_into_products():
    """Of a residual block's seven kernels, two convolutions and the sum are left, and the last activation."""
    conv, norm = partial(nn.Conv2d, 4, 4, 3, padding=1), partial(nn.BatchNorm2d, 4)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Sequential(conv(), norm(), nn.ReLU(), conv(), norm())

        def forward(self, x):
            return F.relu(x + self.one(x))

    plain, fused = (forward_pass(Block, 2, (4, 8, 8), fused=fused) for fused in (False, True))
    assert (plain.launches, fused.launches) == (7, 4)
    assert plain.flops == fused.flops
    kept = sorted(kernel.op for kernel, count in fused for _ in range(count))
    assert kept == ["add", "convolution", "convolution", "relu"]


def test_it_is_the_work_that_methods_are_traced_at():
    """A step of the exported modules has the products of FedAvg's step on the same net."""
    network = Network("cnn2", (3, 32, 32))
    net = network.net()
    with torch.device("meta"):
        found = training_step(lambda: net.module(net.init(0)), 4, (3, 32, 32), PLAIN)

    def shapes(work):
        return sorted((kernel[4:9], count) for kernel, count in work if kernel.kind != ELEMENTWISE)

    assert shapes(found) == shapes(MethodStep(network).work(4))
