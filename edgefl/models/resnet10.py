"""ResNet-10, a basic block in each stage (FedNTD, section G.3): 4,903,242 parameters with 10 classes.

FedNTD's batch norm keeps no running statistics; here it does, as in the other networks.
"""

from edgefl.models._layers import Variants
from edgefl.models._resnets import resnet
from edgefl.protocol import Net


class Params(Variants):
    def build(self, shape: tuple[int, int, int], classes: int) -> Net:
        return resnet(self, shape, classes, block="BasicBlock", repeats=(1, 1, 1, 1))
