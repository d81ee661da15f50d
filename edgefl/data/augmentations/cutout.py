"""Cutout: a square at a random place is blanked (DeVries and Taylor 2017).

Its centre may be any pixel, so that the square can reach over the border. The paper blanks normalised
images with 0, which is the data's mean. Augmentations work before normalising, so the brightness is a
parameter; mid-grey is within 0.06 of CIFAR's mean.
"""

import torch
from pydantic import Field
from torch import Tensor

from edgefl.data.augmentations import Augmentation, integers, rows_and_columns


class Params(Augmentation):
    size: int = Field(16, ge=1, le=1024, description="side of the square, in pixels")
    fill: float = Field(0.5, ge=0, le=1, description="the brightness of the square; 0 is black")

    def augment(self, x: Tensor, generator: torch.Generator) -> Tensor:
        rows, columns = rows_and_columns(x)
        top = integers(x, 0, x.shape[-2] - 1, generator) - self.size // 2
        left = integers(x, 0, x.shape[-1] - 1, generator) - self.size // 2
        inside = (rows >= top) & (rows < top + self.size) & (columns >= left) & (columns < left + self.size)
        return torch.where(inside, self.fill, x)
