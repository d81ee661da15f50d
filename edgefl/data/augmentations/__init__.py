"""Augmentations, one file each."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from edgefl.core.params import Component


class Augmentation(Component):
    """The parameters of an augmentation, and what it does."""

    @abstractmethod
    def augment(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Images in [0, 1], (B, C, H, W), turned into others of the same shape, each for itself."""
