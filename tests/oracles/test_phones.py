"""Phones and small boards against what set their numbers.

UbiquitousLearning/Benchmark-On-Device-Training tools/train/benchmark, time_table_*.csv: MNN with four threads on
two phones with a Snapdragon 855, milliseconds a step from loss to updated weights. Of its five networks, LeNet
and SqueezeNet set the file's overhead and dense efficiency; the others are left to validation.
"""

from __future__ import annotations

from functools import cache

import pytest
import torch
from builders import build_method, build_net
from torch import Tensor, nn

from edgefl.compute import meta
from edgefl.core.cost import Cost, Work
from edgefl.core.price import Pricer
from edgefl.planning.fleets import device
from edgefl.protocol import Net
from edgefl.protocol.modules import functional_net


def lenet() -> Net:
    """MNN's LeNet: 20 and 50 channels of 5x5, 400 hidden units; its dropout is left out."""

    def body() -> nn.Module:
        convolutions = nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2)
        return nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(800, 400), nn.ReLU())

    return functional_net("lenet", body, (1, 28, 28), 10, width=400, head_bias=True)


class Fire(nn.Module):
    """A fire module without activations, as MNN's has none."""

    def __init__(self, inputs: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeezed, 1)
        self.one = nn.Conv2d(squeezed, expanded, 1)
        self.three = nn.Conv2d(squeezed, expanded, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """Both expansions, side by side."""
        x = self.squeeze(x)
        return torch.cat([self.one(x), self.three(x)], 1)


def squeezenet() -> Net:
    """MNN's SqueezeNet 1.0; its classifier is a convolution, and stands in the body."""

    def body() -> nn.Module:
        def pool() -> nn.Module:
            return nn.MaxPool2d(3, 2, ceil_mode=True)

        return nn.Sequential(
            nn.Conv2d(3, 96, 7, 2, padding=3),
            pool(),
            *(Fire(96, 16, 64), Fire(128, 16, 64), Fire(128, 32, 128)),
            pool(),
            *(Fire(256, 32, 128), Fire(256, 48, 192), Fire(384, 48, 192), Fire(384, 64, 256)),
            pool(),
            *(Fire(512, 64, 256), nn.Conv2d(512, 10, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        )

    return functional_net("squeezenet", body, (3, 224, 224), 10, width=10, head_bias=True)


NETS = {"lenet": lenet, "squeezenet": squeezenet, "resnet18": lambda: build_net("resnet18", (3, 32, 32), 10)}


@cache
def step(net: str, batch: int) -> Work:
    """One step of FedAvg, as traced."""
    built = NETS[net]()
    (exchange,) = (method := build_method("fedavg", built)).exchanges
    return meta.trace(method, exchange, built, [[{batch: 1}]]).phases[0].steps[batch]


def milliseconds(name: str, net: str, batch: int) -> float:
    """A step on a shipped device."""
    return 1000 * Pricer(name, device(name)).time(Cost(steps=((step(net, batch), 1),))).seconds


@pytest.mark.parametrize(
    ("net", "batch", "mi9", "meizu"),
    [("lenet", 1, 9.66, 10.09), ("lenet", 16, 19.15, 17.33), ("squeezenet", 16, 2704, None)],
)
def test_a_snapdragon_855_is_calibrated_on_lenet_and_squeezenet(net, batch, mi9, meizu):
    """Within 10% of the mean of both phones; at its default clocks the Meizu has no SqueezeNet."""
    measured = mi9 if meizu is None else (mi9 + meizu) / 2
    assert milliseconds("snapdragon-855", net, batch) == pytest.approx(measured, rel=0.1)


def test_a_lenet_on_a_phone_is_overhead():
    """Of its 10 ms at batch 1, four fifths are launches; so the power there is that of its LeNet."""
    bounds = Pricer("snapdragon-855", device("snapdragon-855")).time(Cost(steps=((step("lenet", 1), 1),)))
    assert bounds.launch_s > 0.75 * bounds.seconds


def test_phones_rank_by_their_cores():
    """A LeNet's step and SqueezeNet's: fastest on the newest cores, slowest in DL4J on the oldest."""
    ranked = ("pixel-8", "galaxy-s22", "pixel-6", "snapdragon-855", "android-sd680", "phone-mid", "phone-low")
    for net in ("lenet", "squeezenet"):
        times = [milliseconds(name, net, 16) for name in ranked]
        assert times == sorted(times)


def test_a_pi_zero_is_slower_than_a_pi_4_as_in_inference():
    """Ncnn takes 353 and 123 ms for ResNet-18 (Tencent/ncnn benchmark/README.md); training keeps the ratio."""
    zero, four = (milliseconds(name, "resnet18", 32) for name in ("raspberry-pi-zero-2w", "raspberry-pi-4b"))
    assert zero / four == pytest.approx(353 / 123, rel=0.05)


def test_pis_keep_their_order():
    """Each generation trains faster than the one before."""
    names = ("raspberry-pi-5", "raspberry-pi-4b", "raspberry-pi-zero-2w")
    for net in ("lenet", "squeezenet", "resnet18"):
        times = [milliseconds(name, net, 32) for name in names]
        assert times == sorted(times)
