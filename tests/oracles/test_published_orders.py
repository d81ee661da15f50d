"""The order of devices in inference, against latencies that were published for some of them.

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

from edgefl.compute.steps import forward_pass
from edgefl.core.cost import Work
from edgefl.planning.fleets import device
from edgefl.protocol.vision import torchvision

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
def work(network: str) -> Work:
    """The inference of one image."""
    side = 227 if network.startswith("squeezenet") else 224
    return forward_pass(getattr(torchvision().models, network), 1, (3, side, side), fused=True)


def seconds(name: str, one: Work, dtype: str = "fp32") -> float:
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
        assert seconds(slow, work(network), dtype) > seconds(fast, work(network), dtype), (slow, fast)
