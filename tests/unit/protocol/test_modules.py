"""A net made from modules: what its body must return."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from edgefl.core.errors import UserError
from edgefl.protocol.modules import functional_net

SHAPE = (3, 4, 4)


class Flat(nn.Module):
    """The pixels as features."""

    def __init__(self) -> None:
        super().__init__()
        self.flatten = nn.Flatten()

    def forward(self, x):
        """(B, 3, 4, 4) -> (B, 48)."""
        return self.flatten(x)


@pytest.mark.parametrize(
    ("body", "width", "found", "hint"),
    [
        (Flat, 40, (2, 48), "call functional_net with width=48"),
        (lambda: nn.Conv2d(3, 2, 3), 8, (2, 2, 2, 2), "end the body with nn.Flatten()"),
        (
            lambda: nn.Conv2d(3, 2, 3),
            5,
            (2, 2, 2, 2),
            "end the body with nn.Flatten() and call functional_net with width=8",
        ),
    ],
    ids=["another width", "not flat", "neither"],
)
@pytest.mark.parametrize("train", [False, True])
def test_a_body_of_another_shape_is_explained(body, width, found, hint, train):
    """With both shapes, the body's file and line, and what to change."""
    net = functional_net("mine", body, SHAPE, 3, width=width, head_bias=True)
    with pytest.raises(UserError) as caught:
        net.features(net.init(0), torch.zeros(2, *SHAPE), train)
    assert (
        caught.value.what == f"the body of 'mine' returns {found} for 2 samples; its head takes {(2, width)}"
    )
    assert caught.value.hint == hint
    assert __file__ in caught.value.where
