"""Shift: each image moved by a few pixels; mild, and suitable for digits."""

import torch
from pydantic import Field
from torch import Tensor

from edgefl.data.augmentations import Augmentation, moved


class Params(Augmentation):
    pixels: int = Field(1, ge=0, le=1024, description="the most rows and columns, in each direction")

    def augment(self, x: Tensor, generator: torch.Generator) -> Tensor:
        return moved(x, self.pixels, generator)
