"""SENet-18: ResNet-18 with squeeze and excitation in every block (SphereFed, Table 13).

The table does not print the ratio of the squeeze; 16 is Hu et al.'s (2018).
"""

from typing import Any

from torch import nn

from edgefl.models._layers import Variants
from edgefl.models._resnets import resnet
from edgefl.protocol import Net
from edgefl.protocol.vision import torchvision

_RATIO = 16


class Params(Variants):
    def build(self, shape: tuple[int, int, int], classes: int) -> Net:

        def excited(block: Any) -> None:
            # The last norm of a basic block, before the shortcut is added.
            squeeze = torchvision().ops.SqueezeExcitation(width := block.conv2.out_channels, width // _RATIO)
            block.bn2 = nn.Sequential(block.bn2, squeeze)

        return resnet(self, shape, classes, block="BasicBlock", repeats=(2, 2, 2, 2), change=excited)
