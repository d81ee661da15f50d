"""Models with attention are priced and trained as all others."""

from __future__ import annotations

import warnings
from contextlib import nullcontext

import pytest
from builders import build_method
from test_stacking import assert_alike, check, group, initial_of, together
from torch import Tensor, nn
from torch.nn import functional as F

from edgefl.compute import loop, meta
from edgefl.compute.kernels import UnknownOperatorError
from edgefl.compute.vmapped import Vmapped
from edgefl.core.cost import ELEMENTWISE, FORWARD, GRAD_INPUT, GRAD_WEIGHT
from edgefl.protocol.modules import functional_net
from edgefl.protocol.vision import torchvision

SHAPE, PATCH, WIDTH, HEADS, CLASSES = (3, 8, 8), 2, 16, 2, 10
TOKENS = (SHAPE[1] // PATCH) ** 2
HIDDEN = 24


class _Function(nn.Module):
    """Self-attention by torch's function, with projections of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.inward, self.outward = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.inward(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        return x + self.outward(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class _Module(nn.Module):
    """Self-attention by torch's module."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.attention(x, x, x, need_weights=False)[0]


def _vit() -> nn.Module:
    """The encoder block of torchvision's ``vit_b_16``, narrower: attention, norms and a perceptron."""
    block: nn.Module = torchvision().models.vision_transformer.EncoderBlock(HEADS, WIDTH, HIDDEN, 0.0, 0.0)
    return block


BLOCKS = {"function": _Function, "module": _Module, "vit": _vit}


class _Body(nn.Module):
    """Patches as tokens, a block, and the tokens' mean."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.patches = nn.Conv2d(SHAPE[0], WIDTH, PATCH, PATCH)
        self.block = block

    def forward(self, x: Tensor) -> Tensor:
        mean: Tensor = self.block(self.patches(x).flatten(2).transpose(1, 2)).mean(1)
        return mean


def attentive(name: str):
    """A small net with one block."""
    return functional_net(name, lambda: _Body(BLOCKS[name]()), SHAPE, CLASSES, width=WIDTH, head_bias=True)


@pytest.mark.parametrize("name", BLOCKS)
def test_the_products_of_attention_are_counted(name):
    """A training step's operations by role are those of a formula.

    Attention of T tokens of width d is two products of T x T x d multiply-adds a sample, whose backward pass
    is twice as much. Those have no weights, and so no weight gradients. Linear layers of the tokens: 3 d x d
    inwards, d x d outwards, and the perceptron's two of d x h.
    """
    batch = 4
    net = attentive(name)
    (train,) = build_method("fedavg", net).exchanges
    trace = meta.trace(build_method("fedavg", net), train, net, [[{batch: 1}]])
    attention = 2 * TOKENS * TOKENS * WIDTH
    patches = TOKENS * WIDTH * SHAPE[0] * PATCH**2
    linear = TOKENS * (4 * WIDTH * WIDTH + (2 * WIDTH * HIDDEN if name == "vit" else 0)) + WIDTH * CLASSES
    flops = dict.fromkeys((FORWARD, GRAD_INPUT, GRAD_WEIGHT), 0)
    for kernel, count in trace.cost([{batch: 1}]).work:
        if kernel.kind != ELEMENTWISE:
            flops[kernel.role] += kernel.flops * count
    expected = {
        FORWARD: patches + linear + attention,
        GRAD_INPUT: linear + 2 * attention,
        GRAD_WEIGHT: patches + linear,
    }
    assert flops == {role: 2 * batch * count for role, count in expected.items()}


@pytest.mark.parametrize("name", BLOCKS)
def test_clients_with_attention_train_together(name):
    """Clients that are stacked have the results of clients alone, and torch has nothing to warn of."""
    net = attentive(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(build_method("fedavg", net), net)


def test_attention_is_recorded():
    """A tape of its operators, replayed for most of the steps, gives what clients get alone."""
    net = attentive("vit")
    method, trainer = build_method("fedavg", net), Vmapped(64, 10**9)
    given = group(method.exchanges[0], net, method.server(initial_of(net)), [None] * 2, ([6] * 12,) * 2)
    assert_alike(together(trainer, given), [loop.work(task) for task in given.tasks])
    ((_, tape),) = trainer._gradients._tapes.values()  # noqa: SLF001 - else nothing is tested
    assert tape is not None


@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_dropout_of_attention(rate):
    """It is refused, as all dropout; at a rate of 0 it is none."""
    block = torchvision().models.vision_transformer.EncoderBlock
    net = functional_net(
        "dropping",
        lambda: _Body(block(HEADS, WIDTH, HIDDEN, rate, rate)),
        SHAPE,
        CLASSES,
        width=WIDTH,
        head_bias=True,
    )
    method = build_method("fedavg", net)
    expected = pytest.raises(UnknownOperatorError, match="draws random numbers") if rate else nullcontext()
    with expected:
        meta.trace(method, method.exchanges[0], net, [[{4: 1}]])
