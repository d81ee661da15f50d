"""ShuffleNetV2 x1.0 (Ma et al. 2018), torchvision's, with stems for small images.

FedClassAvg ends it in a linear layer of 512 features (``wrap: 512``), on the ImageNet stem.
"""

from typing import Any

from pydantic import Field
from torch import nn

from edgefl.models._layers import STEMS, Variants, Width, first_convolution, net_of, renormalised
from edgefl.protocol import Net
from edgefl.protocol.vision import torchvision

_STEM, _LAST = 24, 1024
_COMMON = 2  # the greatest common divisor of its widths
_REPEATS = (4, 8, 4)


class Params(Variants):
    groups: Width = Field(2, description="Groups of group normalisation.")

    def build(self, shape: tuple[int, int, int], classes: int) -> Net:
        """1,024 features, or as it ends; weights are initialised as torchvision does, never downloaded.

        Raises a ``UserError`` if the groups do not divide 2, the widths' greatest common divisor.
        """
        models = torchvision().models

        def body() -> nn.Module:
            network: Any = models.shufflenet_v2_x1_0(weights=None)
            _, stride, pooled = STEMS[self.stem]
            network.conv1[0] = first_convolution(shape[0], _STEM, 3, stride)
            if not pooled:
                network.maxpool = nn.Identity()
            renormalised(network, self, _COMMON)
            network.fc = self.layer(_LAST)
            made: nn.Module = network
            return made

        return net_of(
            self,
            body,
            shape,
            classes,
            self.width(_LAST),
            layers=(
                "conv1",
                *(
                    f"stage{stage}.{place}"
                    for stage, count in enumerate(_REPEATS, 2)
                    for place in range(count)
                ),
                "conv5",
            ),
            stage=("stage4", "conv5"),
        )
