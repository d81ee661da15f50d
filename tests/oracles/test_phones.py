"""Phones and small boards against what set their numbers.

UbiquitousLearning/Benchmark-On-Device-Training tools/train/benchmark, time_table_*.csv: MNN with four threads
on two phones with a Snapdragon 855, milliseconds a step from loss to updated weights. Of its five networks,
LeNet and SqueezeNet set the file's overhead and dense efficiency; the others are left to validation.
"""

from __future__ import annotations

from functools import cache

import pytest
from builders import build_method, build_net

from edgefl.compute import meta
from edgefl.core.cost import Cost, Work
from edgefl.core.devices import Bounds
from edgefl.core.pricer import Pricer
from edgefl.planning.benchmarks import read
from edgefl.planning.fleets import device
from edgefl.planning.validation import samples

SOURCE = read("mi-9-mnn")


@cache
def step(net: str, batch: int) -> Work:
    """A training step: MNN's LeNet and SqueezeNet as measured, or FedAvg's on ResNet-18 for CIFAR."""
    if net == "resnet18":
        built = build_net(net, (3, 32, 32))
        (exchange,) = (method := build_method("fedavg", built)).exchanges
        return meta.trace(method, exchange, built, [[{batch: 1}]]).phases[0].steps[batch]
    rows = tuple(row for row in SOURCE.benchmark.rows if (row.network, row.batch) == (net, batch))
    one = SOURCE._replace(benchmark=SOURCE.benchmark.model_copy(update={"rows": rows}))
    (sample,) = samples(one, {})
    return sample.work


def bounds(name: str, net: str, batch: int) -> Bounds:
    """A step on a shipped device."""
    return Pricer(name, device(name)).time(Cost(steps=((step(net, batch), 1),)))


def milliseconds(name: str, net: str, batch: int) -> float:
    """Its time."""
    return 1000 * bounds(name, net, batch).seconds


@pytest.mark.parametrize(
    ("net", "batch", "mi9", "meizu"),
    [("mnn-lenet", 1, 9.66, 10.09), ("mnn-lenet", 16, 19.15, 17.33), ("mnn-squeezenet", 16, 2704, None)],
)
def test_a_snapdragon_855_is_calibrated_on_lenet_and_squeezenet(net, batch, mi9, meizu):
    """Within 10% of the mean of both phones; at its default clocks the Meizu has no SqueezeNet."""
    measured = mi9 if meizu is None else (mi9 + meizu) / 2
    assert milliseconds("snapdragon-855", net, batch) == pytest.approx(measured, rel=0.1)


def test_phones_rank_by_their_cores():
    """A LeNet's step and SqueezeNet's: fastest on the newest cores, slowest in DL4J on the oldest."""
    ranked = ("pixel-8", "galaxy-s22", "pixel-6", "snapdragon-855", "android-sd680", "phone-mid", "phone-low")
    for net in ("mnn-lenet", "mnn-squeezenet"):
        times = [milliseconds(name, net, 16) for name in ranked]
        assert times == sorted(times)


def test_pis_keep_their_order():
    """Each generation trains faster than the one before."""
    names = ("raspberry-pi-5", "raspberry-pi-4b", "raspberry-pi-zero-2w")
    for net in ("mnn-lenet", "mnn-squeezenet", "resnet18"):
        times = [milliseconds(name, net, 16) for name in names]
        assert times == sorted(times)
