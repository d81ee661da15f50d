"""The papers' 2-layer CNN: two 5x5 convolutions with max-pooling, one hidden layer.

FLex&Chill, section 4: conv 5x5-10, ReLU, max-pool 2, conv 5x5-20, ReLU, max-pool 2, linear 256, ReLU and
the classifier; 136,606 parameters on 3x32x32 with 10 classes. McMahan et al.'s (2017) is padded: 32 and 64
channels and 512 hidden units make 1,663,370 parameters on 1x28x28.
"""

from collections import OrderedDict
from math import prod
from typing import Literal

from pydantic import Field
from torch import nn

from edgefl.models import ModelParams
from edgefl.models._layers import SECOND_CONVOLUTION, Width, check_size, left_of, net_of, two_convolutions
from edgefl.protocol import Net

_KERNEL = 5
# padding -> pixels added on each side, and the smallest image side that survives two poolings
_PADDINGS = {"none": (0, 16), "same": (_KERNEL // 2, 4)}


class Params(ModelParams):
    channels: tuple[Width, Width] = Field((10, 20), description="Channels of the two convolutions.")
    hidden: Width = Field(256, description="Width of the hidden layer, whose activation is the features.")
    padding: Literal["none", "same"] = Field(
        "none", description="Whether the convolutions keep the image's size (same) or lose 4 pixels (none)."
    )
    head_bias: bool = Field(True, description="Whether the classifier has a bias.")

    def build(self, shape: tuple[int, int, int], classes: int) -> Net:
        """Raises a ``UserError`` for images below 16x16, or 4x4 with padding: pooling would leave nothing."""
        padding, smallest = _PADDINGS[self.padding]
        check_size(self, shape, smallest)
        depth, *sides = shape
        flat = self.channels[1] * prod(left_of(side, _KERNEL, padding) for side in sides)

        def body() -> nn.Module:
            return nn.Sequential(
                two_convolutions(depth, self.channels, _KERNEL, padding=padding)
                | OrderedDict[str, nn.Module](fc1=nn.Linear(flat, self.hidden), relu3=nn.ReLU())
            )

        return net_of(
            self,
            body,
            shape,
            classes,
            self.hidden,
            layers=("relu1", "relu2", "relu3"),
            stage=SECOND_CONVOLUTION,
        )
