"""The papers' 2-layer CNN: two 5x5 convolutions with max-pooling, one hidden layer.

FLex&Chill, section 4: conv 5x5-10, ReLU, max-pool 2, conv 5x5-20, ReLU, max-pool 2, linear 256, ReLU and
the classifier; 136,606 parameters on 3x32x32 with 10 classes.
"""

from __future__ import annotations

from collections import OrderedDict

from pydantic import Field
from torch import nn

from edgefl.core.errors import UserError
from edgefl.core.params import Strict
from edgefl.models._layers import Width
from edgefl.protocol import Net
from edgefl.protocol.modules import functional_net

_KERNEL = 5
_POOL = 2
_SMALLEST = 16  # (16 - 4) / 2 = 6, (6 - 4) / 2 = 1


class Params(Strict):
    """The widths of the 2-layer CNN."""

    channels: tuple[Width, Width] = Field((10, 20), description="Channels of the two convolutions.")
    hidden: Width = Field(256, description="Width of the hidden layer, whose activation is the features.")
    head_bias: bool = Field(True, description="Whether the classifier has a bias.")


def build(params: Params, shape: tuple[int, int, int], classes: int) -> Net:
    """The CNN on samples of ``shape``; its convolutions are unpadded, stride 1.

    Raises:
        UserError: the image is smaller than 16x16, so that nothing is left after the second pooling.
    """
    depth, height, width = shape
    if min(height, width) < _SMALLEST:
        raise UserError(
            f"cnn2 needs images of at least {_SMALLEST}x{_SMALLEST} pixels, not {height}x{width}",
            where="model cnn2",
            hint="take mlp, or a data set of larger images",
        )
    first, second = params.channels
    flat = second * _pooled(_pooled(height)) * _pooled(_pooled(width))

    def body() -> nn.Module:
        return nn.Sequential(
            OrderedDict[str, nn.Module](
                conv1=nn.Conv2d(depth, first, _KERNEL),
                relu1=nn.ReLU(),
                pool1=nn.MaxPool2d(_POOL),
                conv2=nn.Conv2d(first, second, _KERNEL),
                relu2=nn.ReLU(),
                pool2=nn.MaxPool2d(_POOL),
                flatten=nn.Flatten(),
                fc1=nn.Linear(flat, params.hidden),
                relu3=nn.ReLU(),
            )
        )

    return functional_net("cnn2", body, shape, classes, width=params.hidden, head_bias=params.head_bias)


def _pooled(size: int) -> int:
    """The size after an unpadded convolution and a pooling."""
    return (size - _KERNEL + 1) // _POOL
