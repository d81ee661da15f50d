"""Shipped devices against what set their numbers: cards, phones, and what minimal filtering saves.

lambdalabs.com/blog/2080-ti-deep-learning-benchmarks has images a second of training ResNet-50.
"""

from functools import cache

import pytest
import torch
from alone import priced
from builders import build_method, build_net
from hardware import product
from plans import device as board
from plans import link
from torch import nn
from torch.nn import functional as F

from edgefl.compute import meta
from edgefl.compute.steps import training_step
from edgefl.compute.tracer import Tracer
from edgefl.core.cost import FORWARD, GRAD_INPUT, GRAD_WEIGHT, Cost, Work
from edgefl.core.optimizers import sgd
from edgefl.planning.fleets import device
from edgefl.planning.repricing import Pricer
from edgefl.protocol.vision import torchvision

BATCH = 64


def seconds(name: str, work: Work, dtype: str = "fp32") -> float:
    """The time of some work on a shipped card."""
    return Pricer(name, device(name), dtype).time(Cost(steps=((work, 1),))).seconds


@cache
def resnet50() -> Work:
    """A training step of 64 images of 224x224."""
    return training_step(torchvision().models.resnet50, BATCH, (3, 224, 224), sgd.Params(name="sgd", lr=0.1))


@pytest.mark.parametrize(
    ("name", "dtype", "images_s"),
    [
        ("gtx-1080-ti", "fp32", 209),
        ("rtx-2080-ti", "fp32", 294),
        ("titan-v", "fp32", 300),
        ("titan-rtx", "fp32", 330),
        ("titan-rtx", "fp16", 294 * 1.59 / 0.71),
    ],
)
def test_a_cards_dense_efficiency_is_resnet_50s(name, dtype, images_s):
    """With norms, activations and launches, the whole network takes what was measured."""
    assert seconds(name, resnet50(), dtype) == pytest.approx(BATCH / images_s, rel=0.01)


def convolution(x: tuple[int, ...], taps: int, **how: int) -> Work:
    """The products of a convolution of 64 to 128 channels, forward and back."""
    with torch.device("meta"):
        layer, given = nn.Conv2d(64, 128, taps, bias=False, **how), torch.empty(x, requires_grad=True)
        weight, tracer = layer.weight.detach().requires_grad_(), Tracer()
        with tracer:
            tracer.begin_step({"weights": {"weight": weight}})
            out = F.conv2d(given, weight, stride=layer.stride, dilation=layer.dilation, groups=layer.groups)
            torch.autograd.grad(out.sum(), [weight, given])
    return Work.of(one for one in tracer.kernels if one.flops)


def test_minimal_filtering_is_of_3x3_taps_alone():
    """F(2x2, 3x3) has 16 products for 2 x 2 places of 9 taps, in all three passes."""
    card = device("gtx-1080-ti")
    clock = card.clock("card", "fp32")
    rate = card.efficiency.dense.value * card.peak["fp32"].value
    roles = set()
    for kernel, _ in convolution((16, 64, 56, 56), 3):
        assert clock.roofs(kernel)[0] == pytest.approx(kernel.flops / rate * 16 / (2 * 2 * 9))
        roles.add(kernel.role)
    assert roles == {FORWARD, GRAD_INPUT, GRAD_WEIGHT}
    for taps, how in ((1, {}), (5, {}), (3, {"stride": 2}), (3, {"dilation": 2}), (3, {"groups": 2})):
        for kernel, _ in convolution((16, 64, 56, 56), taps, **how):
            assert clock.roofs(kernel)[0] == pytest.approx(kernel.flops / rate)


def test_tensor_cores_filter_nothing():
    """A type with an efficiency of its own takes all multiplications that are counted."""
    card = device("titan-rtx")
    rate = card.efficiency_in["fp16"].dense.value * card.peak["fp16"].value
    for kernel, _ in convolution((16, 64, 56, 56), 3):
        assert card.clock("card", "fp16").roofs(kernel)[0] == pytest.approx(kernel.flops / rate)


def test_convolutions_have_an_efficiency_of_their_own():
    """Where a file gives one, convolutions run at it, depthwise ones and products at theirs."""
    board = device("jetson-agx-orin")
    clock, peak = board.clock("board", "fp32"), board.peak["fp32"].value
    (dense, *_), (depthwise, *_) = (
        [one for one, _ in convolution((16, 64, 28, 28), 3, groups=groups)] for groups in (1, 64)
    )
    product = dense._replace(op="mm")
    shares = {one: one.flops / clock.roofs(one)[0] / peak for one in (dense, depthwise, product)}
    assert list(shares.values()) == pytest.approx([0.7, 0.03, 0.28])


def test_fedscales_completion_time():
    """3 x 16 samples x 20 steps x 5 ms to infer one, and 16 Mbit at 5 Mbit/s: 4.8 s and 3.2 s.

    FedScale takes three passes as long as the forward one, and (upload + download) / bandwidth. At 5 GFLOP/s
    5 ms are 25 MFLOP: two for each of 12.5 million weights.
    """
    forward = product(16, 5000, 2500)
    work = Work.of([forward, *(forward._replace(role=role) for role in (GRAD_INPUT, GRAD_WEIGHT))])
    job = Cost(down={"body": 10**6}, up={"body": 10**6}, steps=((work, 20),))
    price = priced(Pricer("board", board(launch=0)), job, link(down=5e6, up=5e6, latency=0))
    assert (price.compute_s, price.down_s + price.up_s) == pytest.approx((4.8, 3.2))


@pytest.mark.parametrize(("tier", "milliseconds"), [("low", 1642), ("mid", 588), ("high", 179)])
def test_flashs_tiers(tier, milliseconds):
    """A batch of FLASH's FEMNIST network takes each phone within 2% of what was measured.

    PKU-Chengxu/FLASH, ``device_util.py``. The network is LEAF's: 32 and 64 channels, 2,048 hidden units, 62
    classes on 28x28 pixels; a batch is taken as 10 samples.
    """
    net = build_net("cnn2", (1, 28, 28), 62, channels=(32, 64), hidden=2048, padding="same")
    (exchange,) = (method := build_method("fedavg", net)).exchanges
    work = meta.trace(method, exchange, net, [[{10: 1}]]).phases[0].steps[10]
    name = f"phone-{tier}"
    found = Pricer(name, device(name)).time(Cost(steps=((work, 1),)))
    assert 1000 * found.seconds == pytest.approx(milliseconds, rel=0.02)
