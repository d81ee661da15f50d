"""FedCKA's 7-layer CNN: two 5x5 convolutions, four hidden layers and the classifier.

FedCKA, section 4.1: convolutions of 16 and 32 channels, each followed by max-pool 2, linear layers of 120,
84, 84 and 256 units, and the classifier; 151,802 parameters on 3x32x32 with 10 classes. It does not say
where ReLUs are: ours follow every layer but the last two. The features are the 256 outputs, which MOON
compares. MOON's CNN has 6 and 16 channels; its projection head is the layers of 84 and 256 units.
"""

from __future__ import annotations

from collections import OrderedDict

from pydantic import Field
from torch import nn

from edgefl.core.errors import UserError
from edgefl.models import ModelParams
from edgefl.models._layers import Width
from edgefl.protocol import Net
from edgefl.protocol.modules import functional_net

_KERNEL = 5
_POOL = 2
_SMALLEST = 16  # the smallest image side of which two convolutions and poolings leave something
_HIDDEN = (120, 84)
_PROJECTION = (84, 256)


class Params(ModelParams):
    """The variants of FedCKA's CNN."""

    channels: tuple[Width, Width] = Field(
        (16, 32), description="Channels of the two convolutions; MOON's CNN has [6, 16]."
    )
    head_bias: bool = Field(True, description="Whether the classifier has a bias.")

    def build(self, shape: tuple[int, int, int], classes: int) -> Net:
        """Raises a ``UserError`` for images below 16x16: the second pooling would leave nothing."""
        depth, height, width = shape
        if min(height, width) < _SMALLEST:
            raise UserError(
                f"fedcka_cnn needs images of at least {_SMALLEST}x{_SMALLEST} pixels, not {height}x{width}",
                where="model fedcka_cnn",
                hint="use mlp, or a dataset of larger images",
            )
        first, second = self.channels
        flat = second * _left(height) * _left(width)

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
                    fc1=nn.Linear(flat, _HIDDEN[0]),
                    relu3=nn.ReLU(),
                    fc2=nn.Linear(*_HIDDEN),
                    relu4=nn.ReLU(),
                    projection1=nn.Linear(_HIDDEN[1], _PROJECTION[0]),
                    relu5=nn.ReLU(),
                    projection2=nn.Linear(*_PROJECTION),
                )
            )

        return functional_net(
            "fedcka_cnn",
            body,
            shape,
            classes,
            width=_PROJECTION[-1],
            head_bias=self.head_bias,
            layers=("relu1", "relu2", "relu3", "relu4", "relu5", "projection2"),
            stage=("pool1", "conv2", "relu2"),
        )


def _left(size: int) -> int:
    """The size after both convolutions and poolings."""
    for _ in range(2):
        size = (size - _KERNEL + 1) // _POOL
    return size
