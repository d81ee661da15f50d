"""GoogLeNet (Szegedy et al. 2015), torchvision's, with stems for small images and no auxiliary classifiers.

FedClassAvg ends it in a linear layer of 512 features (``wrap: 512``), on the ImageNet stem. torchvision's
dropout before the classifier is left out, as in the other networks.
"""

from typing import Any

from torch import nn

from edgefl.models._layers import STEMS, Variants, first_convolution, net_of, renormalised
from edgefl.protocol import Net
from edgefl.protocol.vision import torchvision

_STEM, _LAST = 64, 1024
_COMMON = 16  # the greatest common divisor of its widths
_INCEPTIONS = ("3a", "3b", "4a", "4b", "4c", "4d", "4e", "5a", "5b")


class Params(Variants):
    def build(self, shape: tuple[int, int, int], classes: int) -> Net:
        """1,024 features, or as it ends; layers are initialised as PyTorch does, never downloaded.

        Raises a ``UserError`` if the groups do not divide 16, the widths' greatest common divisor.
        """
        models = torchvision().models

        def body() -> nn.Module:
            network: Any = models.googlenet(weights=None, aux_logits=False, init_weights=False)
            kernel, stride, pooled = STEMS[self.stem]
            network.conv1.conv = first_convolution(shape[0], _STEM, kernel, stride)
            if not pooled:
                network.maxpool1 = nn.Identity()
            network.dropout = nn.Identity()
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
            layers=("conv1", "conv2", "conv3", *(f"inception{name}" for name in _INCEPTIONS)),
        )
