"""SphereFed's ConvNet (Table 11): seven 3x3 convolutions, each with normalisation and ReLU.

Channels and strides are 32, 64/2, 64/2, 64, 128/2, 128, 256/2. The table prints no padding; its 1,024
features on 32x32 mean a padding of 1. The number of groups is not stated. Convolutions have no bias here,
because each normalisation has one.
"""

from math import ceil

from pydantic import Field
from torch import nn

from edgefl.models import ModelParams
from edgefl.models._layers import NormName, Width, net_of, norm_layer
from edgefl.protocol import Net

# channels and stride of each convolution
_LAYERS = ((32, 1), (64, 2), (64, 2), (64, 1), (128, 2), (128, 1), (256, 2))
_COMMON = 32


class Params(ModelParams):
    norm: NormName = Field("group", description="Group or batch normalisation.")
    groups: Width = Field(
        8, description="Groups of group normalisation; SphereFed's paper does not say how many."
    )
    head_bias: bool = Field(False, description="Whether the classifier has a bias; SphereFed's has none.")

    def build(self, shape: tuple[int, int, int], classes: int) -> Net:
        """Its features are 256 channels of 1/16 of the image's height and width, flattened.

        Raises a ``UserError`` if the groups do not divide 32, the smallest width.
        """
        last = len(_LAYERS)
        norm = norm_layer(self, _COMMON)
        # Four strides of 2, each rounding up.
        width = _LAYERS[-1][0] * ceil(shape[1] / 16) * ceil(shape[2] / 16)

        def body() -> nn.Module:
            layers = nn.Sequential()
            depth = shape[0]
            for number, (channels, stride) in enumerate(_LAYERS, start=1):
                layers.add_module(
                    f"conv{number}", nn.Conv2d(depth, channels, 3, stride, padding=1, bias=False)
                )
                layers.add_module(f"norm{number}", norm(channels))
                layers.add_module(f"relu{number}", nn.ReLU())
                depth = channels
            layers.add_module("flatten", nn.Flatten())
            return layers

        return net_of(
            self,
            body,
            shape,
            classes,
            width,
            layers=tuple(f"relu{number + 1}" for number in range(last)),
            stage=(f"relu{last - 1}", f"conv{last}", f"norm{last}", f"relu{last}"),
        )
