"""Shipped devices against what set their numbers: cards, phones, and what minimal filtering saves.

lambdalabs.com/blog/2080-ti-deep-learning-benchmarks has images a second of training ResNet-50.

Tencent/ncnn benchmark/README.md, averages in ms of one image of 224x224 (SqueezeNet: 227x227) on all big
cores: the devices themselves, or a chip with their cores: a Snapdragon 410 (phone-low) and 675 (phone-mid),
a Kirin 970 (android-sd680) and a Snapdragon 855+. The Jetson Orin Nano's is its GPU; a Jetson Nano's
MobileNetV2 is TensorRT's (snap-research/EfficientFormer issue 10). The figures of inference were fitted to
ResNet-18 and MobileNet v1, which are left out.
"""

from __future__ import annotations

from functools import cache
from itertools import permutations

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
from edgefl.compute.steps import forward_pass, training_step
from edgefl.compute.tracer import Tracer
from edgefl.core.cost import FORWARD, GRAD_INPUT, GRAD_WEIGHT, Cost, Work
from edgefl.core.optimizers import sgd
from edgefl.core.pricer import Pricer
from edgefl.planning.fleets import device
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


NAMES = (
    *("raspberry-pi-zero-2w", "phone-low", "raspberry-pi-4b", "android-sd680", "phone-mid", "raspberry-pi-5"),
    *("snapdragon-855", "jetson-orin-nano", "jetson-nano"),
)
PUBLISHED = {
    ("mobilenet_v2", "fp32"): (147.39, 82.00, 61.88, 24.49, 26.08, 10.52, 4.68, None, 27.16),
    ("squeezenet1_1", "fp32"): (119.93, 68.10, 46.65, 25.83, 23.95, 7.38, 3.64),
    ("mnasnet1_0", "fp32"): (126.53, 71.73, 51.98, 25.58, 21.51, 7.10, 4.31),
    ("resnet50", "fp32"): (782.63, 393.71, 262.83, 214.42, 178.77, 46.21, 26.24, 9.31),
    ("squeezenet1_1", "int8"): (96.55, 61.14, 42.59, 22.60, 31.20, 7.21, 3.71),
    ("resnet50", "int8"): (497.57, 323.23, 196.65, 171.27, 181.64, 40.75, 20.91),
}
# Published times closer than this have no order.
APART = 1.5
# Instead of fp32, ncnn computes in fp16 on these, which is predicted for none: it may halve their times.
HALVES = {"raspberry-pi-5", "snapdragon-855", "jetson-orin-nano"}


@cache
def inference(network: str) -> Work:
    """The inference of one image."""
    side = 227 if network.startswith("squeezenet") else 224
    return forward_pass(getattr(torchvision().models, network), 1, (3, side, side), fused=True)


def inferring_s(name: str, one: Work, dtype: str) -> float:
    """What a shipped device takes."""
    return device(name).clock(name, dtype, inference=True).time(one).seconds


@pytest.mark.parametrize(("network", "dtype"), PUBLISHED)
def test_devices_come_in_the_published_order(network, dtype):
    """Every two whose published latencies are clearly apart."""
    times = {name: ms for name, ms in zip(NAMES, PUBLISHED[network, dtype], strict=False) if ms}
    halves = HALVES if dtype == "fp32" else set()
    clear = [
        (slow, fast)
        for slow, fast in permutations(times, 2)
        if times[slow] > times[fast] * (2 * APART if {slow, fast} & halves == {fast} else APART)
    ]
    assert len(clear) > 10
    for slow, fast in clear:
        assert inferring_s(slow, inference(network), dtype) > inferring_s(fast, inference(network), dtype), (
            slow,
            fast,
        )
