"""A net made from modules: what its body must return."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from edgefl.core.errors import UserError
from edgefl.protocol.modules import functional_net

SHAPE = (3, 4, 4)


def convolution():
    """Features of which 8 are left, not flat."""
    return nn.Conv2d(3, 2, 3)


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize(
    ("body", "width", "found", "hint"),
    [
        (lambda: nn.Sequential(nn.Flatten()), 40, (2, 48), "call functional_net with width=48"),
        (convolution, 8, (2, 2, 2, 2), "end the body with nn.Flatten()"),
        (
            convolution,
            5,
            (2, 2, 2, 2),
            "end the body with nn.Flatten() and call functional_net with width=8",
        ),
    ],
    ids=["another width", "not flat", "neither"],
)
def test_a_body_of_another_shape_is_explained(body, width, found, hint, train):
    """With both shapes, the body's file and line, and what to change."""
    net = functional_net("mine", body, SHAPE, 3, width=width, head_bias=True)
    with pytest.raises(UserError) as caught:
        net.features(net.init(0), torch.zeros(2, *SHAPE), train)
    what = f"the body of 'mine' returns {found} for 2 samples; its head takes {(2, width)}"
    assert (caught.value.what, caught.value.hint) == (what, hint)
    assert __file__ in caught.value.where
