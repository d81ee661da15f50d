"""ResNet-34 (He et al. 2016), torchvision's, with stems for small images."""

from edgefl.models._layers import Variants
from edgefl.models._resnets import resnet
from edgefl.protocol import Net


class Params(Variants):
    def build(self, shape: tuple[int, int, int], classes: int) -> Net:
        return resnet(self, shape, classes, block="BasicBlock", repeats=(3, 4, 6, 3))
