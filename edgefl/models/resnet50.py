"""ResNet-50 (He et al. 2016), torchvision's, with stems for small images.

FedCKA's experiments on CIFAR-100 and Tiny ImageNet end it in MOON's projection head (``projection: 256``).
"""

from edgefl.models._layers import Variants
from edgefl.models._resnets import resnet
from edgefl.protocol import Net


class Params(Variants):
    def build(self, shape: tuple[int, int, int], classes: int) -> Net:
        return resnet(self, shape, classes, block="Bottleneck", repeats=(3, 4, 6, 3))
