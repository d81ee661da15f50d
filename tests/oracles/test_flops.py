"""The operations of single layers and of whole forward passes, worked out on paper and traced.

f is a layer's multiply-adds: conv B*Ho*Wo*Cout*(Cin/g)*Kh*Kw, linear B*I*O. A forward pass takes f; so does
the gradient of each trained weight, and that of each input but the first layer's. A multiply-add is two
operations. ``test_training_flops`` has whole methods.
"""

import warnings
from collections import Counter
from typing import Any

import pytest
import torch
from builders import BY_DAY, build_net
from nightly import mostly, sampled
from torch import nn
from torch.nn import functional as F

from edgefl.compute.steps import forward_counts, forward_pass
from edgefl.compute.tracer import Tracer
from edgefl.core import catalogue
from edgefl.core.cost import DEPTHWISE, FORWARD, GRAD_WEIGHT
from edgefl.data import Spec
from edgefl.export.graph import Served, to_onnx
from edgefl.export.kernels import GraphCost
from edgefl.export.model import ExportForm, Graph, read_model
from edgefl.protocol import Predictor


def step(layer, x: torch.Tensor, *, first: bool) -> Tracer:
    """The kernels of a layer's forward and backward pass."""
    weight = layer.weight.detach().requires_grad_()
    tracer = Tracer()
    with tracer:
        tracer.begin_step({"weights": {"weight": weight}})
        call = F.conv_transpose2d if layer.transposed else F.conv2d
        out = call(x.requires_grad_(not first), weight, padding=layer.padding, groups=layer.groups)
        torch.autograd.grad(out.sum(), [weight] if first else [weight, x])
    return tracer


def test_one_depthwise_convolution_on_paper():
    """Depthwise 3x3, 16 channels, batch 4, 8x8 padded: f = 4*64*16*9 = 36,864, so 6 f = 221,184."""
    with torch.device("meta"):
        conv, x = nn.Conv2d(16, 16, 3, padding=1, groups=16), torch.empty(4, 16, 8, 8)
        kernels = [one for one in step(conv, x, first=False).kernels if one.flops]
    assert sum(one.flops for one in kernels) == 221_184
    assert {one.kind for one in kernels} == {DEPTHWISE}
    (weight,) = (one for one in kernels if one.role == GRAD_WEIGHT)
    # Per channel: one output row, nine taps, 4*8*8 positions.
    assert (weight.m, weight.n, weight.k, weight.groups) == (1, 9, 256, 16)


def test_one_transposed_convolution_on_paper():
    """Transposed 3x3 16->8 in 2 groups on 4x8x8: each input value meets 4 outputs * 9 taps.

    f = 4*64 * 16 * 4*9 = 147,456, so 6 f = 884,736.
    """
    with torch.device("meta"):
        conv, x = nn.ConvTranspose2d(16, 8, 3, groups=2), torch.empty(4, 16, 8, 8)
        assert sum(one.flops for one in step(conv, x, first=False).kernels) == 884_736


@pytest.mark.parametrize(
    ("model", "settings", "shape", "classes", "millions", "within"),
    [
        # He et al. 2016 with a 3x3 stem: 555,417,600 in convolutions, 5,120 in the head.
        ("resnet18", {}, (3, 32, 32), 10, 555.42272, 0),
        # Sandler et al. 2018, Table 4: 300M.
        ("mobilenet-v2", {"stem": "imagenet"}, (3, 224, 224), 1000, 300, 0.02),
    ],
)
def test_a_forward_pass_as_published(
    model: str, settings: dict[str, Any], shape: tuple[int, ...], classes: int, millions: float, within: float
):
    """The traced multiply-adds of one sample, in millions."""
    net = build_net(model, shape, classes, **settings)
    work = forward_pass(lambda: net.module(net.init(0)), 1, shape)
    assert {one.role for one, _ in work} == {FORWARD}
    found = work.flops / 2 / 1e6
    assert found == pytest.approx(millions, rel=within, abs=1e-6), f"{found:.2f}M multiply-adds"


@sampled(2, "name", mostly(catalogue.entries("models"), BY_DAY))
def test_fvcore_agrees_on_the_forward_pass(name: str):
    """Fvcore's multiply-adds of convolutions and linear layers are half of the traced operations, exactly."""
    found = forward_counts(build_net(name, (3, 32, 32), 10))
    assert found[0] == found[1] > 0


SHAPE, CLASSES = (3, 32, 32), 10
SPEC = Spec("colours", SHAPE, 1, 1, tuple(map(str, range(CLASSES))), (0.5,) * 3, (0.25,) * 3)


def products(found):
    """How often each product occurs."""
    counts = Counter()
    for one, count in found:
        if one.flops:
            counts[one.kind, one.m, one.n, one.k, one.groups] += count
    return counts


@pytest.mark.usefixtures("one_registry")
@sampled(1, "name", mostly(catalogue.entries("models"), ("mlp", "cnn2")))
def test_an_exported_graph_and_the_trace_have_the_same_products(name: str, tmp_path):
    """Every shipped model, at two batch sizes: the same FLOPs, product by product."""
    net, form = build_net(name, SHAPE, CLASSES), ExportForm()
    served = Served(Predictor(net.init(0), net.logits), SPEC, form)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        content = to_onnx(served, SHAPE, form, {})
    file = tmp_path / "m.onnx"
    file.write_bytes(content)
    for batch in (1, 4):
        exported = [one.kernel for one in GraphCost(Graph(read_model(file), batch)).kernels()]
        traced = forward_pass(lambda: net.module(net.init(0)), batch, SHAPE)
        assert products((one, 1) for one in exported) == products(traced)
        assert sum(one.flops for one in exported) == traced.flops > 0
