"""MobileNetV2 (Sandler et al. 2018), torchvision's, with stems for small images.

SphereFed, Table 14: the first convolution has stride 1, and the first block of 24 channels has stride 1
on CIFAR and 2 on Tiny-ImageNet. Its ReLU after the linear projections looks like a misprint, so torchvision's
ReLU6 is kept. torchvision's dropout before the classifier is left out: a mask drawn inside the net would
depend on how an engine groups its clients, and SphereFed's table has none.
"""

from pydantic import Field
from torch import nn

from edgefl.models._layers import StemName, Variants, first_convolution, net_of, norm_layer
from edgefl.protocol import Net
from edgefl.protocol.vision import torchvision

_STEM = 32
_LAST = 1280
_COMMON = 8  # the greatest common divisor of its widths, which are multiples of 8

# stem -> strides of the first convolution and of the first block of 24 channels
_STRIDES = {"cifar": (1, 1), "tiny": (1, 2), "imagenet": (2, 2)}


class Params(Variants):
    stem: StemName = Field(
        "cifar", description="How early the image shrinks: by 8 in all (32 px), 16 (64 px) or 32 (224 px)."
    )

    def build(self, shape: tuple[int, int, int], classes: int) -> Net:
        """1,280 features, or as it ends; weights are initialised as torchvision does, never downloaded.

        Raises a ``UserError`` if the groups do not divide 8, the widths' greatest common divisor.
        """
        norm = norm_layer(self, _COMMON)
        models = torchvision().models
        first, second = _STRIDES[self.stem]
        # expansion, channels, repeats, stride of the first repeat (SphereFed, Table 14)
        blocks = [
            [1, 16, 1, 1],
            [6, 24, 2, second],
            [6, 32, 3, 2],
            [6, 64, 4, 2],
            [6, 96, 3, 1],
            [6, 160, 3, 2],
            [6, 320, 1, 1],
        ]

        def body() -> nn.Module:
            network: nn.Module = models.mobilenet_v2(
                weights=None, norm_layer=norm, inverted_residual_setting=blocks
            )
            network.get_submodule("features.0").register_module(
                "0", first_convolution(shape[0], _STEM, 3, first)
            )
            network.classifier = self.layer(_LAST)
            return network

        return net_of(
            self,
            body,
            shape,
            classes,
            self.width(_LAST),
            layers=tuple(f"features.{number}" for number in range(19)),
        )
