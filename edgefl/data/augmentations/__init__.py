"""Augmentations, one file each, and what several of them use: draws for each sample, and moving pixels.

Everything is drawn on the generator's device and then moved, so that a seed gives the same images on every
device. Shapes: B samples, C channels, H rows, W columns.
"""

from abc import abstractmethod

import torch
from torch import Tensor

from edgefl.core.params import Component


class Augmentation(Component):
    """The parameters of an augmentation, and what it does."""

    @abstractmethod
    def augment(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Images in [0, 1], (B, C, H, W), turned into others of the same shape, each for itself."""


def uniform(x: Tensor, low: float, high: float, generator: torch.Generator) -> Tensor:
    """(B, 1, 1, 1) draws from [low, high), one per sample of ``x``."""
    drawn = torch.rand(len(x), 1, 1, 1, generator=generator, device=generator.device)
    return (low + (high - low) * drawn).to(x.device)


def integers(x: Tensor, low: int, high: int, generator: torch.Generator) -> Tensor:
    """(B, 1, 1, 1) draws from low..high, both included, one per sample of ``x``."""
    drawn = torch.randint(low, high + 1, (len(x), 1, 1, 1), generator=generator, device=generator.device)
    return drawn.to(x.device)


def chance(x: Tensor, probability: float, generator: torch.Generator) -> Tensor:
    """(B, 1, 1, 1) booleans that are true with ``probability``, one per sample of ``x``."""
    return uniform(x, 0.0, 1.0, generator) < probability


def rows_and_columns(x: Tensor) -> tuple[Tensor, Tensor]:
    """The pixels' row numbers, (1, 1, H, 1), and column numbers, (1, 1, 1, W)."""
    height, width = x.shape[-2:]
    rows = torch.arange(height, device=x.device).view(1, 1, -1, 1)
    return rows, torch.arange(width, device=x.device).view(1, 1, 1, -1)


def moved(x: Tensor, pixels: int, generator: torch.Generator) -> Tensor:
    """Moves each image by up to ``pixels`` rows and columns; new pixels are 0."""
    down = integers(x, 0, 2 * pixels, generator)
    right = integers(x, 0, 2 * pixels, generator)
    padded = torch.nn.functional.pad(x, (pixels, pixels, pixels, pixels))
    rows, columns = rows_and_columns(x)
    sample = torch.arange(len(x), device=x.device).view(-1, 1, 1, 1)
    channel = torch.arange(x.shape[1], device=x.device).view(1, -1, 1, 1)
    return padded[sample, channel, rows + down, columns + right]
