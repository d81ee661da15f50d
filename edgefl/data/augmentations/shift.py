"""Shift: each image moved by a few pixels; the mildest, and fit for digits."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from edgefl.core.params import Strict
from edgefl.data.augmentations._draws import moved


class Params(Strict):
    """How far."""

    pixels: int = Field(1, ge=0, description="at most so many rows and so many columns, either way")


def augment(params: Params, x: Tensor, generator: torch.Generator) -> Tensor:
    """(B, C, H, W) in [0, 1] -> the same shape; what comes in from outside is 0."""
    return moved(x, params.pixels, generator)
