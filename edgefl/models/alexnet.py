"""AlexNet for small images, as FedClassAvg's authors have it in their code.

Convolutions 3x3 of 64, 128 and 256 channels, each with ReLU, max-pooling 2x2 after the first (stride 1) and
the second, pooling to 3x3, a hidden layer of 512 and the wrap of 512 features: 1,818,762 parameters of 10
classes. Their dropout of a half before the hidden layer is left out.
"""

from collections import OrderedDict

from pydantic import Field
from torch import nn

from edgefl.models._layers import Ending, Width, net_of
from edgefl.protocol import Net

_CHANNELS = (64, 128, 256)
_LEFT = 3
_HIDDEN = 512


class Params(Ending):
    wrap: Width | None = Field(512, description="Width of a linear layer that ends the body; null for none.")

    def build(self, shape: tuple[int, int, int], classes: int) -> Net:
        first, second, third = _CHANNELS

        def body() -> nn.Module:
            return nn.Sequential(
                OrderedDict[str, nn.Module](
                    conv1=nn.Conv2d(shape[0], first, 3, padding=1),
                    relu1=nn.ReLU(),
                    pool1=nn.MaxPool2d(2, stride=1, padding=1),
                    conv2=nn.Conv2d(first, second, 3, padding=1),
                    relu2=nn.ReLU(),
                    pool2=nn.MaxPool2d(2, padding=1),
                    conv3=nn.Conv2d(second, third, 3, padding=1),
                    relu3=nn.ReLU(),
                    pool3=nn.AdaptiveAvgPool2d(_LEFT),
                    flatten=nn.Flatten(),
                    fc1=nn.Linear(third * _LEFT**2, _HIDDEN),
                    relu4=nn.ReLU(),
                    fc2=self.layer(_HIDDEN),
                )
            )

        return net_of(
            self,
            body,
            shape,
            classes,
            self.width(_HIDDEN),
            layers=("relu1", "relu2", "relu3", "relu4"),
            stage=("pool1", "conv2", "relu2"),
        )
