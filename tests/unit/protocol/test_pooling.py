"""The 2x2 max-pooling by slices: torch's values, gradients and memory layout."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from edgefl.models import cnn2
from edgefl.protocol.pooling import MaxPool2x2, with_faster_pools, with_indices

SHAPES = [(32, 10, 28, 28), (8, 10, 45, 41), (60, 12, 9, 14), (40, 3, 30, 33), (3, 2, 3, 2), (2, 20, 10, 10)]
LAYOUTS = [torch.contiguous_format, torch.channels_last]
POOL = MaxPool2x2()


def _tied(shape, layout, seed=0):
    """Few different numbers, most of them zeros, as after a rectifier."""
    drawn = torch.randint(-4, 4, shape, generator=torch.Generator().manual_seed(seed))
    return drawn.float().relu_().contiguous(memory_format=layout)


def _gradient(pool, x, weights):
    live = x.clone().requires_grad_()
    values = pool(live)
    (found,) = torch.autograd.grad((values * weights).sum(), live)
    return values.detach(), found


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_places_are_torchs_where_many_numbers_tie(shape, layout):
    """Values, the first of equal ones, and strides; odd sides lose their last row and column."""
    x = _tied(shape, layout)
    kept = x.clone()
    expected, places = torch.ops.aten.max_pool2d_with_indices(x, [2, 2])
    found = with_indices(x)
    assert torch.equal(found[0], expected)
    assert torch.equal(found[1], places)
    assert [one.stride() for one in found] == [expected.stride(), places.stride()]
    assert torch.equal(x, kept)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_module_has_torchs_values_and_gradients(shape, layout):
    """With a gradient and without, each number's to the bit."""
    x = _tied(shape, layout, seed=1)
    weights = torch.randn_like(F.max_pool2d(x, 2))
    expected, gradient = _gradient(lambda one: F.max_pool2d(one, 2), x, weights)
    values, found = _gradient(POOL, x, weights)
    assert torch.equal(values, expected)
    assert torch.equal(found, gradient)
    assert found.stride() == gradient.stride()
    plain = POOL(x)
    assert torch.equal(plain, expected)
    assert plain.stride() == F.max_pool2d(x, 2).stride()


def test_under_vmap_and_torch_func_it_is_torchs():
    """``torch.func.grad`` under ``vmap``, and autograd around ``vmap``, give the gradients of each client."""
    x = _tied((3, 32, 10, 28, 28), torch.contiguous_format)
    weights = torch.randn(32, 10, 14, 14)

    def loss(pool, one):
        return (pool(one) * weights).sum()

    each = torch.stack([_gradient(lambda one: F.max_pool2d(one, 2), one, weights)[1] for one in x])
    assert torch.equal(torch.vmap(torch.func.grad(lambda one: loss(POOL, one)))(x), each)
    live = x.clone().requires_grad_()
    around = torch.vmap(lambda one: loss(POOL, one))(live).sum()
    assert torch.equal(torch.autograd.grad(around, live)[0], each)


def test_only_2x2_pools_are_replaced():
    """Other windows, strides, paddings and modes stay as they are; nested ones are found."""
    kept = [nn.MaxPool2d(3, 2, 1), nn.MaxPool2d(2, 1), nn.MaxPool2d(2, ceil_mode=True), nn.AvgPool2d(2)]
    found = with_faster_pools(nn.Sequential(nn.Sequential(nn.MaxPool2d(2)), *kept))
    assert type(found[0][0]) is MaxPool2x2
    assert [one is old for one, old in zip(found[1:], kept, strict=True)] == [True] * len(kept)


def test_a_nets_module_for_export_has_torchs_pools():
    """What is exported knows nothing of this."""
    net = cnn2.build(cnn2.Params(), (3, 32, 32), 10)
    kinds = {type(one) for one in net.module(net.init(0)).modules()}
    assert nn.MaxPool2d in kinds
    assert MaxPool2x2 not in kinds
