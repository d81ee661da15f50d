"""None: images as they are."""

import torch
from torch import Tensor

from edgefl.data.augmentations import Augmentation


class Params(Augmentation):
    def augment(self, x: Tensor, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """``x`` itself; nothing is drawn."""
        return x
