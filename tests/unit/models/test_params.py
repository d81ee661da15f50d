"""Parameters of models, valid and invalid."""

import pytest
import torch

from edgefl.core.errors import UserError
from edgefl.models import (
    cnn1d,
    cnn2,
    fedcka_cnn,
    googlenet,
    mobilenet_v2,
    resnet18,
    resnet50,
    shufflenet_v2,
    spherefed_convnet,
    vgg13,
)


@pytest.mark.parametrize(
    ("params", "refused", "message", "least"),
    [
        (cnn2.Params(), (1, 15, 20), "16x16 pixels, not 15x20", (1, 16, 16)),
        (cnn2.Params(padding="same"), (1, 3, 4), "4x4 pixels, not 3x4", (1, 4, 4)),
        (fedcka_cnn.Params(), (1, 20, 15), "16x16 pixels, not 20x15", (1, 16, 16)),
        (vgg13.Params(), (3, 15, 16), "16x16 pixels, not 15x16", (3, 16, 16)),
        (cnn1d.Params(), (9, 1, 3), "4 steps, not 3", (9, 1, 4)),
    ],
)
def test_what_cannot_shrink_is_refused(params, refused, message, least):
    """Samples of which nothing is left after the last pooling; the least size is enough."""
    with pytest.raises(UserError, match=f"at least {message}"):
        params.build(refused, 10)
    net = params.build(least, 10)
    assert net.logits(net.init(0), torch.zeros(2, *least)).shape == (2, 10)


@pytest.mark.parametrize(
    ("model", "groups", "hint"),
    [
        (resnet18, 24, "64"),
        (resnet50, 24, "64"),
        (vgg13, 24, "64"),
        (googlenet, 32, "16"),
        (shufflenet_v2, 4, "2"),
        (mobilenet_v2, 16, "8"),
        (spherefed_convnet, 5, "32"),
    ],
)
def test_groups_must_divide_every_layer(model, groups, hint):
    """A number of groups that does not fit is refused before anything is built, and a divisor is named."""
    with pytest.raises(UserError, match=f"{groups} groups") as caught:
        model.Params(norm="group", groups=groups).build((3, 32, 32), 10)
    assert f"a divisor of {hint}," in caught.value.hint
    # Batch norm has no groups.
    assert model.Params(norm="batch", groups=groups).build((3, 32, 32), 10).feature_width > 0
