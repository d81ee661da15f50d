"""SphereFed's accelerator as a negative control: no faithful count comes near the paper's savings.

The paper measures up to 13.6% less latency and 10.5% less memory from skipping the classifier's gradient, on
a 32 x 64 array at 100 MHz (section 5.4, Figure 5). The tables below are what a survey counted at batch 64 on
CIFAR-100. A change that brings ours near the paper's figures is a bug.
"""

from __future__ import annotations

from functools import cache

import pytest
from builders import build_method, build_net
from hardware import array
from plans import device, link

from edgefl.compute import meta
from edgefl.core.cost import ELEMENTWISE, Cost, Work
from edgefl.core.devices.systolic import cycles, gemms
from edgefl.core.price import Pricer

BATCH = 64
NETS = {
    "mobilenet cifar": ("mobilenet_v2", {}),
    "mobilenet imagenet": ("mobilenet_v2", {"stem": "imagenet"}),
    "resnet": ("resnet18", {}),
    "convnet": ("cnn2", {"channels": (32, 64), "hidden": 512, "padding": "same"}),
    "paper's convnet": ("spherefed_convnet", {}),
}
# Block RAM of the XC7VX485T: 37,080 Kib (DS180).
BLOCK_RAM = f"{37_080 * 1024 / 8} B"
# SGD with momentum moves five words a parameter: gradient, momentum and weight in, momentum and weight out.
# At 12.8 GB/s and 100 MHz that is 20 / 128 cycles.
UPDATE_CYCLES = 5 * 4 * 100e6 / 12.8e9


@cache
def traced(net: str, method: str) -> tuple[Work, dict[str, int], int, int]:
    """One training step's work, the peak memory, and how many parameters net and classifier have."""
    name, settings = NETS[net]
    built = build_net(name, (3, 32, 32), 100, **settings)
    on = build_method(method, built)
    exchange = next(one for one in on.exchanges if one.name == "train")
    found = meta.trace(on, exchange, built, [[{BATCH: 1}]])
    counts = {part: sum(one.numel() for one in built.on_meta()[part].values()) for part in ("body", "head")}
    return found.phases[0].steps[BATCH], found.peaks[BATCH,], sum(counts.values()), counts["head"]


def array_cycles(work: Work, *, phases: bool) -> int:
    """The cycles of a step's products on 32 x 64 cells, outputs stationary."""
    return sum(
        count * times * cycles("os", 32, 64, gemm)
        for kernel, count in work
        if kernel.kind != ELEMENTWISE
        for gemm, times in gemms(kernel, phases=phases)
    )


def saved(now, before) -> float:
    """In per cent."""
    return 100 * (1 - now / before)


@pytest.mark.parametrize(
    ("net", "ours", "table"),
    [
        ("mobilenet cifar", 0.0486, 0.047),
        ("mobilenet imagenet", 0.6919, 0.643),
        ("resnet", 0.0031, 0.003),
        ("convnet", 0.1010, 0.101),
        ("paper's convnet", 0.2299, None),
    ],
)
def test_operations_saved(net, ours, table):
    """The classifier's weight gradient, in per cent; the survey's MobileNetV2 has 3 to 8% more work."""
    found = saved(traced(net, "spherefed")[0].flops, traced(net, "fedavg")[0].flops)
    assert found == pytest.approx(ours, abs=5e-5)
    assert table is None or found == pytest.approx(table, rel=0.08)


@pytest.mark.parametrize(
    ("net", "ours", "table"),
    [
        ("mobilenet cifar", (0.0035, 0.0089), (0.003, 0.009)),
        ("mobilenet imagenet", (0.0412, 0.1052), (0.041, 0.104)),
        ("resnet", (0.0081, 0.0204), (0.008, 0.020)),
        ("convnet", (0.1984, 0.4520), (0.198, 0.452)),
        ("paper's convnet", (0.2853, 0.7143), None),
    ],
)
def test_cycles_saved(net, ours, table):
    """Without and with the update's traffic, in per cent; input gradients of strides with inserted zeros.

    The survey's figures come out so; by phases, of which it speaks, a strided network takes fewer cycles and
    the classifier weighs a little more (below).
    """
    found = cycles_saved(net, phases=False)
    assert found == pytest.approx(ours, abs=5e-5)
    if table is not None:
        assert [round(one, 3) for one in found] == pytest.approx(table, abs=0.0011)


@pytest.mark.parametrize(
    ("net", "ours"),
    [
        ("mobilenet cifar", (0.0035, 0.0090)),
        ("mobilenet imagenet", (0.0419, 0.1069)),
        ("resnet", (0.0090, 0.0226)),
        ("convnet", (0.1984, 0.4520)),
        ("paper's convnet", (0.4561, 1.1214)),
    ],
)
def test_cycles_saved_by_phases(net, ours):
    """The same with a product for each phase of a stride, as the shipped accelerator has it."""
    assert cycles_saved(net, phases=True) == pytest.approx(ours, abs=5e-5)


def cycles_saved(net: str, *, phases: bool) -> tuple[float, float]:
    """Per cent of cycles saved, without and with the update's traffic."""
    before, _, parameters, classifier = traced(net, "fedavg")
    now = traced(net, "spherefed")[0]
    took, takes = (array_cycles(work, phases=phases) for work in (before, now))
    updated = [count * UPDATE_CYCLES for count in (parameters, parameters - classifier)]
    return saved(takes, took), saved(takes + updated[1], took + updated[0])


@pytest.mark.parametrize(
    ("net", "ours", "table"),
    [
        ("mobilenet cifar", 0.082, 0.113),
        ("mobilenet imagenet", 0.825, 0.934),
        ("resnet", 0.098, 0.094),
        ("convnet", 0.757, 0.831),
        ("paper's convnet", 1.910, None),
    ],
)
def test_memory_saved(net, ours, table):
    """Peak memory as torch holds it, in per cent: near the survey's, which counts activations otherwise."""
    now, before = (sum(traced(net, method)[1].values()) for method in ("spherefed", "fedavg"))
    assert saved(now, before) == pytest.approx(ours, abs=5e-4)
    assert table is None or saved(now, before) == pytest.approx(table, rel=0.3)


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("kind", ["array", "special unit", "roofline"])
def test_no_device_saves_what_the_paper_reports(net, kind):
    """Priced with everything - norms, activations, DRAM, the update - the step is within 2% of FedAvg's.

    It may even take longer: normalising the features moves more than the skipped update does.
    """
    board = {
        "array": array(on_chip=BLOCK_RAM),
        "special unit": array(on_chip=BLOCK_RAM, depthwise="special_unit"),
        "roofline": device(),
    }[kind]
    pricer = Pricer("board", board)
    now, before = (
        pricer.price(Cost(steps=((traced(net, method)[0], 1),)), link()).compute_s
        for method in ("spherefed", "fedavg")
    )
    assert -2 < saved(now, before) < 1
