"""VGG-13 (Simonyan and Zisserman 2015) for small images, with normalisation (SphereFed, Table 12).

Ten 3x3 convolutions, each with normalisation and ReLU, in stages of 64, 128, 256, 512 and 512 channels. The
table prints four poolings and one of the remaining size, after which its 2,048 inputs of the classifier would
be left; pooling to one pixel, its 512 features are.
"""

from torch import nn

from edgefl.models._layers import Normalised, check_size, net_of, norm_layer
from edgefl.protocol import Net

_STAGES = (64, 128, 256, 512, 512)
_SHRINKS = 2 ** (len(_STAGES) - 1)


class Params(Normalised):
    def build(self, shape: tuple[int, int, int], classes: int) -> Net:
        """Raises a ``UserError`` for images smaller than 16x16, or groups that do not divide 64."""
        depth, height, width = shape
        check_size(self, shape, _SHRINKS)
        norm = norm_layer(self, _STAGES[0])

        def body() -> nn.Module:
            layers, inputs = nn.Sequential(), depth
            for stage, channels in enumerate(_STAGES, start=1):
                for place in (1, 2):
                    layers.add_module(
                        f"conv{stage}{place}", nn.Conv2d(inputs, channels, 3, padding=1, bias=False)
                    )
                    layers.add_module(f"norm{stage}{place}", norm(channels))
                    layers.add_module(f"relu{stage}{place}", nn.ReLU())
                    inputs = channels
                left = (height // _SHRINKS, width // _SHRINKS)
                layers.add_module(f"pool{stage}", nn.MaxPool2d(left if stage == len(_STAGES) else 2))
            layers.add_module("flatten", nn.Flatten())
            layers.add_module("fc", self.layer(_STAGES[-1]))
            return layers

        return net_of(
            self,
            body,
            shape,
            classes,
            self.width(_STAGES[-1]),
            layers=tuple(f"relu{stage}{place}" for stage in range(1, len(_STAGES) + 1) for place in (1, 2)),
        )
