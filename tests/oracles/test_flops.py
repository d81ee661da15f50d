"""Training's operations by closed form from layer shapes, against what the meta engine traces.

f is a layer's multiply-adds: conv B*Ho*Wo*Cout*(Cin/g)*Kh*Kw, linear B*I*O. A forward pass takes f; so does
the gradient of each trained weight, and that of each input but the first layer's. A multiply-add is two
operations.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
import torch
from builders import build_method, build_net
from torch import nn
from torch.nn import functional as F

from edgefl.compute import meta
from edgefl.core.cost import DEPTHWISE, GRAD_WEIGHT
from edgefl.protocol import Net

CIFAR = (3, 32, 32)
MODELS = {
    "mlp": ("mlp", (1, 8, 8), {}),
    "mlp deep": ("mlp", (1, 8, 8), {"hidden": (32, 16, 24)}),
    "cnn2": ("cnn2", CIFAR, {}),
    "convnet group": ("spherefed_convnet", CIFAR, {}),
    "convnet batch": ("spherefed_convnet", CIFAR, {"norm": "batch"}),
    "resnet18 batch": ("resnet18", CIFAR, {}),
    "resnet18 group imagenet": ("resnet18", CIFAR, {"norm": "group", "stem": "imagenet", "wrap": 64}),
    "mobilenet_v2 batch": ("mobilenet_v2", CIFAR, {}),
    "mobilenet_v2 group": ("mobilenet_v2", CIFAR, {"norm": "group"}),
}
CLASSES = 10
BATCH = 4


@pytest.fixture(scope="module", params=MODELS)
def net(request) -> Net:
    """Every shipped model, in its norms and stems."""
    name, shape, settings = MODELS[request.param]
    return build_net(name, shape, CLASSES, **settings)


def multiply_adds(net: Net, batch: int) -> list[int]:
    """F of each convolution and linear layer in the order in which they are called; the head is last."""
    found: list[int] = []

    def conv(layer: nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:  # noqa: ARG001
        found.append(output.numel() * layer.in_channels // layer.groups * prod(layer.kernel_size))

    def linear(layer: nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:  # noqa: ARG001
        found.append(output.numel() * layer.in_features)

    module = net.module(net.on_meta())
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(conv)
        elif isinstance(layer, nn.Linear):
            layer.register_forward_hook(linear)
    module(torch.empty(batch, *net.shape, device="meta"))
    return found


def traced(name: str, net: Net, exchange: str = "train", **settings) -> int:
    """The operations of one step on a batch."""
    method = build_method(name, net, **settings)
    found = next(one for one in method.exchanges if one.name == exchange)
    return meta.trace(method, found, net, [[{BATCH: 1}]]).phases[0].steps[BATCH].flops


def test_plain_training(net: Net):
    """3 sum f - f_first, times two."""
    f = multiply_adds(net, BATCH)
    assert traced("fedavg", net) == 2 * (3 * sum(f) - f[0])


@pytest.mark.parametrize("model", ["mlp deep", "cnn2", "convnet batch"])
@pytest.mark.parametrize("method", ["fedprox", "flexchill", "local"])
def test_variants_add_no_products(model: str, method: str):
    """A proximal term and a temperature add bytes, no products."""
    name, shape, settings = MODELS[model]
    net = build_net(name, shape, CLASSES, **settings)
    f = multiply_adds(net, BATCH)
    assert traced(method, net) == 2 * (3 * sum(f) - f[0])


def test_a_fixed_head_saves_its_weight_gradient(net: Net):
    """SphereFed takes f_head less than plain training: its input gradient remains."""
    f = multiply_adds(net, BATCH)
    assert traced("spherefed", net) == 2 * (3 * sum(f) - f[0] - f[-1])


def test_two_views_double_the_body(net: Net):
    """FedClassAvg's body sees 2B samples, its head B; SupCon's similarity is one product of 2B x l x 2B.

    The similarity's gradient is two products of that size, one for each side.
    """
    f, doubled = multiply_adds(net, BATCH), multiply_adds(net, 2 * BATCH)
    contrast = 3 * (2 * BATCH) ** 2 * net.feature_width
    expected = 3 * sum(doubled[:-1]) - doubled[0] + 3 * f[-1] + contrast
    assert traced("fedclassavg", net) == 2 * expected


def test_calibration_is_a_forward_pass_and_two_products(net: Net):
    """FFC takes the body's f, B*l*C for U and B*l*l for V."""
    f, width = multiply_adds(net, BATCH), net.feature_width
    assert traced("spherefed", net, "calibrate") == 2 * sum(f[:-1]) + 2 * BATCH * width * (width + CLASSES)


def test_frozen_parts_are_not_charged(net: Net):
    """With the head alone trained, a step is one forward pass and the head's weight gradient."""
    f = multiply_adds(net, BATCH)
    frozen = replace(net, trained=("head",))
    assert traced("fedclassavg", frozen, contrastive=0.0) == 2 * (sum(f) + f[-1])


def step(layer, x: torch.Tensor, *, first: bool) -> meta.Tracer:
    """The kernels of a layer's forward and backward pass."""
    weight = layer.weight.detach().requires_grad_()
    tracer = meta.Tracer()
    with tracer:
        tracer.begin_step({"weights": {"weight": weight}})
        call = F.conv_transpose2d if layer.transposed else F.conv2d
        out = call(x.requires_grad_(not first), weight, padding=layer.padding, groups=layer.groups)
        torch.autograd.grad(out.sum(), [weight] if first else [weight, x])
    return tracer


def test_one_convolution_on_paper():
    """Conv 3x3 16->32, batch 4, 8x8 padded: f = 4*64*32*16*9 = 1,179,648, so 6 f = 7,077,888; first: 4 f."""
    with torch.device("meta"):
        conv, x = nn.Conv2d(16, 32, 3, padding=1), torch.empty(4, 16, 8, 8)
        assert sum(one.flops for one in step(conv, x, first=False).kernels) == 7_077_888
        assert sum(one.flops for one in step(conv, x.detach(), first=True).kernels) == 4_718_592


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


def test_a_resnet_on_paper():
    """ResNet-18 for CIFAR takes 555.42 million multiply-adds a sample in its forward pass."""
    assert round(sum(multiply_adds(build_net("resnet18", CIFAR, 10), 1)) / 1e6, 2) == 555.42
