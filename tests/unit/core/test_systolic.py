"""A systolic device's times by hand; cycles and traffic themselves are held to SCALE-Sim in the oracles."""

import pytest
import torch
from hardware import array
from plans import sourced
from torch.nn import functional as F

from edgefl.compute.tracer import Tracer
from edgefl.core.cost import GRAD_INPUT, Kernel, Product, Work
from edgefl.core.devices.systolic import cycles, product_of
from edgefl.core.errors import UserError


def product(m, n, k, *, groups=1, kind="dense", role="forward", phases=0) -> Kernel:
    words = groups * (m * k + k * n + m * n)
    return Kernel("mm", kind, role, "", m, n, k, groups, 2 * groups * m * n * k, 4 * words, phases)


def seconds(device, kernel, dtype="fp32"):
    return device.clock("array", dtype).roofs(kernel)


def test_a_product_takes_its_cycles_or_its_traffic():
    """64 x 100 x 512: 2,424 cycles are 24.24 us; 174,336 words of 4 bytes at 12.8 GB/s are 54.48 us."""
    device = array()
    assert seconds(device, product(64, 100, 512)) == pytest.approx((24.24e-6, 54.48e-6))
    with pytest.raises(UserError, match="no figure for int8"):
        device.clock("array", "int8")
    with pytest.raises(UserError, match="no value for on_chip_memory"):
        array(on_chip_memory=sourced(None)).clock("array", "fp32")
    bounds = device.clock("array", "fp32").time(Work.of([product(64, 100, 512)] * 3))
    assert (bounds.compute_s, bounds.memory_s, bounds.launch_s) == (0.0, pytest.approx(3 * 54.48e-6), 0.0)


def test_everything_but_products_goes_to_the_lanes():
    """Elementwise, 6,400 words read or written: 100 cycles of 64 lanes, or 2 us of DRAM.

    16 channels of 256 places and 9 taps: 16 * 8 * (32+64+9-2) = 13,184 cycles, or 36,864 / 64 = 576.
    """
    kernel = Kernel("relu", "elementwise", "forward", "", 0, 0, 0, 1, 0, 25_600)
    assert seconds(array(), kernel) == pytest.approx((1e-6, 2e-6))
    kernel, lanes = product(256, 1, 9, groups=16, kind="depthwise"), array(depthwise="special_unit")
    assert seconds(array(), kernel)[0] == pytest.approx(131.84e-6)
    assert seconds(lanes, kernel)[0] == pytest.approx(5.76e-6)
    assert seconds(lanes, product(256, 9, 9)) == seconds(array(), product(256, 9, 9))


def input_gradient(size, kernel, stride, padding=0, dilation=1) -> Kernel:
    """The input gradient of a convolution of 4 samples, 3 channels in, 5 out, as traced."""
    with torch.device("meta"):
        x, weight = torch.empty(4, 3, size, size, requires_grad=True), torch.empty(5, 3, kernel, kernel)
        tracer = Tracer()
        with tracer:
            out = F.conv2d(x, weight.requires_grad_(), stride=stride, padding=padding, dilation=dilation)
            torch.autograd.grad(out.sum(), [weight, x])
    (found,) = (one for one in tracer.kernels if one.role == GRAD_INPUT and one.op == "convolution")
    return found


@pytest.mark.parametrize(
    ("kernel", "stride", "dilation", "phases"), [(3, 2, 1, 4), (1, 2, 1, 1), (2, 3, 1, 4), (3, 2, 2, 1)]
)
def test_a_strided_gradient_falls_apart_by_phases(kernel, stride, dilation, phases):
    """A product for each phase that meets a tap, as many multiply-adds as the forward pass in all."""
    found = input_gradient(16, kernel, stride, dilation * (kernel // 2), dilation)
    assert found.phases == phases
    gemm = product_of(found, phases=True)
    assert gemm.groups == phases
    assert gemm.m * gemm.n * found.k == found.flops / 2
    assert gemm.k == -(-found.k // phases)
    # As one product of zero-inserted operands it has a place for every input: stride^2 times the work.
    assert product_of(found, phases=False) == Product(4 * 16 * 16, 3, 5 * kernel**2)


def test_zero_insertion_is_an_option():
    """3x3 with stride 2 on 16x16: 4 products of (256, 3, 12) against one of (1,024, 3, 45)."""
    found = input_gradient(16, 3, 2, 1)
    phased = 4 * cycles("os", 32, 64, Product(256, 3, 12))
    whole = cycles("os", 32, 64, Product(1024, 3, 45))
    assert (phased, whole) == (4 * 8 * 106, 32 * 139)
    assert seconds(array(), found)[0] == pytest.approx(phased / 1e8)
    assert seconds(array(stride_handling="zero-insert"), found)[0] == pytest.approx(whole / 1e8)
    # Without stride there is one product; unpadded, it has more places than its forward pass.
    still = input_gradient(12, 5, 1)
    assert (still.phases, product_of(still, phases=True)) == (0, Product(4 * 12 * 12, 3, 5 * 25))
