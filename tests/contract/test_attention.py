"""Models with attention are priced and trained as all others."""

import warnings

import pytest
from builders import build_method
from test_stacking import check
from torch import Tensor, nn

from edgefl.compute import meta
from edgefl.core.cost import ELEMENTWISE, FORWARD, GRAD_INPUT, GRAD_WEIGHT
from edgefl.protocol.modules import functional_net
from edgefl.protocol.vision import torchvision

SHAPE, PATCH, WIDTH, HEADS, CLASSES = (3, 8, 8), 2, 16, 2, 10
TOKENS = (SHAPE[1] // PATCH) ** 2
HIDDEN = 24


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


BLOCKS = {"module": _Module, "vit": _vit}


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


def test_clients_with_attention_train_together():
    """Clients that are stacked have the results of clients alone, and torch has nothing to warn of."""
    net = attentive("vit")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(build_method("fedavg", net), net)
