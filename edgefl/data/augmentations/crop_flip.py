"""Crop and flip: a random crop of the padded image, mirrored half the time; usual for CIFAR."""

import torch
from pydantic import Field
from torch import Tensor

from edgefl.data.augmentations import Augmentation, chance, moved


class Params(Augmentation):
    padding: int = Field(
        4, ge=0, le=1024, description="zeros padded on every side before the crop, in pixels"
    )

    def augment(self, x: Tensor, generator: torch.Generator) -> Tensor:
        cropped = moved(x, self.padding, generator)
        return torch.where(chance(x, 0.5, generator), cropped.flip(-1), cropped)
