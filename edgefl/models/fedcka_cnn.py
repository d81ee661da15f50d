"""FedCKA's 7-layer CNN: two 5x5 convolutions, four hidden layers and the classifier.

FedCKA, section 4.1: convolutions of 16 and 32 channels, each followed by max-pool 2, linear layers of 120,
84, 84 and 256 units, and the classifier; 151,802 parameters on 3x32x32 with 10 classes. It does not say
where ReLUs are: ours follow every layer but the last two. The features are the 256 outputs, which MOON
compares. MOON's CNN has 6 and 16 channels; its projection head is the layers of 84 and 256 units.
"""

from collections import OrderedDict
from math import prod

from pydantic import Field
from torch import nn

from edgefl.models import ModelParams
from edgefl.models._layers import SECOND_CONVOLUTION, Width, check_size, left_of, net_of, two_convolutions
from edgefl.protocol import Net

_KERNEL = 5
_SMALLEST = 16  # the smallest image side of which two convolutions and poolings leave something
_HIDDEN = (120, 84)
_PROJECTION = (84, 256)


class Params(ModelParams):
    channels: tuple[Width, Width] = Field(
        (16, 32), description="Channels of the two convolutions; MOON's CNN has [6, 16]."
    )
    head_bias: bool = Field(True, description="Whether the classifier has a bias.")

    def build(self, shape: tuple[int, int, int], classes: int) -> Net:
        """Raises a ``UserError`` for images below 16x16: the second pooling would leave nothing."""
        check_size(self, shape, _SMALLEST)
        depth, *sides = shape
        flat = self.channels[1] * prod(left_of(side, _KERNEL) for side in sides)

        def body() -> nn.Module:
            return nn.Sequential(
                two_convolutions(depth, self.channels, _KERNEL)
                | OrderedDict[str, nn.Module](
                    fc1=nn.Linear(flat, _HIDDEN[0]),
                    relu3=nn.ReLU(),
                    fc2=nn.Linear(*_HIDDEN),
                    relu4=nn.ReLU(),
                    projection1=nn.Linear(_HIDDEN[1], _PROJECTION[0]),
                    relu5=nn.ReLU(),
                    projection2=nn.Linear(*_PROJECTION),
                )
            )

        return net_of(
            self,
            body,
            shape,
            classes,
            _PROJECTION[-1],
            layers=("relu1", "relu2", "relu3", "relu4", "relu5", "projection2"),
            stage=SECOND_CONVOLUTION,
        )
