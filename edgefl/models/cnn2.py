"""The papers' 2-layer CNN: two 5x5 convolutions with max-pooling, one hidden layer.

FLex&Chill, section 4: conv 5x5-10, ReLU, max-pool 2, conv 5x5-20, ReLU, max-pool 2, linear 256, ReLU and
the classifier; 136,606 parameters on 3x32x32 with 10 classes. McMahan et al.'s (2017) is padded: 32 and 64
channels and 512 hidden units make 1,663,370 parameters on 1x28x28.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

from pydantic import Field
from torch import nn

from edgefl.core.errors import UserError
from edgefl.models import ModelParams
from edgefl.models._layers import Width
from edgefl.protocol import Net
from edgefl.protocol.modules import functional_net

_KERNEL = 5
_POOL = 2
# padding -> pixels added on each side, and the smallest image side that survives two poolings
_PADDINGS = {"none": (0, 16), "same": (_KERNEL // 2, 4)}


class Params(ModelParams):
    """The widths of the 2-layer CNN."""

    channels: tuple[Width, Width] = Field((10, 20), description="Channels of the two convolutions.")
    hidden: Width = Field(256, description="Width of the hidden layer, whose activation is the features.")
    padding: Literal["none", "same"] = Field(
        "none", description="Whether the convolutions keep the image's size (same) or lose 4 pixels (none)."
    )
    head_bias: bool = Field(True, description="Whether the classifier has a bias.")

    def build(self, shape: tuple[int, int, int], classes: int) -> Net:
        """Raises a ``UserError`` for images below 16x16, or 4x4 with padding: pooling would leave nothing."""
        depth, height, width = shape
        padding, smallest = _PADDINGS[self.padding]
        if min(height, width) < smallest:
            raise UserError(
                f"cnn2 needs images of at least {smallest}x{smallest} pixels, not {height}x{width}",
                where="model cnn2",
                hint="use mlp, or a dataset of larger images",
            )
        first, second = self.channels
        flat = second * _pooled(_pooled(height, padding), padding) * _pooled(_pooled(width, padding), padding)

        def body() -> nn.Module:
            return nn.Sequential(
                OrderedDict[str, nn.Module](
                    conv1=nn.Conv2d(depth, first, _KERNEL, padding=padding),
                    relu1=nn.ReLU(),
                    pool1=nn.MaxPool2d(_POOL),
                    conv2=nn.Conv2d(first, second, _KERNEL, padding=padding),
                    relu2=nn.ReLU(),
                    pool2=nn.MaxPool2d(_POOL),
                    flatten=nn.Flatten(),
                    fc1=nn.Linear(flat, self.hidden),
                    relu3=nn.ReLU(),
                )
            )

        return functional_net(
            "cnn2",
            body,
            shape,
            classes,
            width=self.hidden,
            head_bias=self.head_bias,
            layers=("relu1", "relu2", "relu3"),
            stage=("pool1", "conv2", "relu2"),
        )


def _pooled(size: int, padding: int) -> int:
    """The size after a convolution and a pooling."""
    return (size + 2 * padding - _KERNEL + 1) // _POOL
