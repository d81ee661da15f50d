"""ResNet-18 (He et al. 2016), torchvision's, with stems for small images (SphereFed, Table 15).

FedClassAvg ends every body in a linear layer of 512 features (``wrap: 512``), on the ImageNet stem:
11,444,298 parameters with 10 classes.
"""

from edgefl.models._layers import Variants
from edgefl.models._resnets import resnet
from edgefl.protocol import Net


class Params(Variants):
    def build(self, shape: tuple[int, int, int], classes: int) -> Net:
        return resnet(self, shape, classes, block="BasicBlock", repeats=(2, 2, 2, 2))
