"""Contrastive: resized crop, flip, colour jitter and greyscale, as FedClassAvg's code makes its two views.

The recipe is SimCLR's (Chen et al. 2020) with milder colours. Jitter works in the order brightness,
contrast, saturation, hue; torchvision draws the order. For images of one channel, saturation, hue and
greyscale do nothing.
"""

import math

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from edgefl.data.augmentations import Augmentation, chance, uniform

_COLOURS = 3
_LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601, as torchvision and PIL weigh the channels


class Params(Augmentation):
    smallest: float = Field(0.2, gt=0, le=1, description="the smallest crop, as a share of the image's area")
    flip: bool = Field(True, description="mirror half the images; not for digits and letters")
    jitter: float = Field(
        0.4, ge=0, le=1, description="brightness, contrast and saturation change by up to this share"
    )
    hue: float = Field(0.1, ge=0, le=0.5, description="hue turns by up to this share of the circle")
    jitter_probability: float = Field(0.8, ge=0, le=1, description="how often colours are changed")
    grey_probability: float = Field(0.2, ge=0, le=1, description="how often an image becomes grey")

    def augment(self, x: Tensor, generator: torch.Generator) -> Tensor:
        x = _cropped(self, x, generator)
        x = torch.where(chance(x, self.jitter_probability, generator), _jittered(self, x, generator), x)
        if x.shape[1] != _COLOURS:
            return x
        return torch.where(chance(x, self.grey_probability, generator), _grey(x).expand_as(x), x)


def _cropped(params: Params, x: Tensor, generator: torch.Generator) -> Tensor:
    """A crop of random area, aspect ratio (3/4 to 4/3) and place, resized back, and perhaps mirrored.

    A side longer than the image's is shortened to it, where torchvision would draw again.
    """
    area = uniform(x, params.smallest, 1.0, generator)
    ratio = uniform(x, math.log(3 / 4), math.log(4 / 3), generator).exp()
    width = (area * ratio).sqrt().clamp(max=1.0)
    height = (area / ratio).sqrt().clamp(max=1.0)
    # Sides are shares of the image's, which spans -1 to 1: a crop of width w has its centre within +-(1 - w).
    right = uniform(x, -1.0, 1.0, generator) * (1 - width)
    down = uniform(x, -1.0, 1.0, generator) * (1 - height)
    if params.flip:
        width = torch.where(chance(x, 0.5, generator), -width, width)
    zero = torch.zeros_like(width)
    affine = torch.cat([torch.cat([width, zero, right], -1), torch.cat([zero, height, down], -1)], -2)
    grid = F.affine_grid(affine.squeeze(1), list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, padding_mode="border", align_corners=False)


def _jittered(params: Params, x: Tensor, generator: torch.Generator) -> Tensor:
    """Brightness and contrast changed; saturation and hue too where there are colours."""
    low, high = 1 - params.jitter, 1 + params.jitter
    x = (x * uniform(x, low, high, generator)).clamp(0, 1)
    mean = _grey(x).mean((-3, -2, -1), keepdim=True)
    x = mean.lerp(x, uniform(x, low, high, generator)).clamp(0, 1)
    if x.shape[1] != _COLOURS:
        return x
    x = _grey(x).expand_as(x).lerp(x, uniform(x, low, high, generator)).clamp(0, 1)
    return _turned(x, uniform(x, -params.hue, params.hue, generator))


def _grey(x: Tensor) -> Tensor:
    """(B, 1, H, W): the luminance of colours; grey images as they are."""
    if x.shape[1] != _COLOURS:
        return x
    return (x * x.new_tensor(_LUMA).view(1, -1, 1, 1)).sum(1, keepdim=True)


def _turned(x: Tensor, turn: Tensor) -> Tensor:
    """Hue turned by ``turn`` (B, 1, 1, 1) circles, saturation and value kept (the HSV hexcone)."""
    red, green, blue = x.unbind(1)
    value, least = x.amax(1), x.amin(1)
    chroma = value - least
    safe = chroma.clamp(min=torch.finfo(x.dtype).tiny)
    hue = torch.where(
        value == red,
        (green - blue) / safe,
        torch.where(value == green, 2 + (blue - red) / safe, 4 + (red - green) / safe),
    )
    # Channel n of a colour of hue h sixths is value - chroma * clamp(min(k, 4 - k), 0, 1), k = (n + h) mod 6.
    offset = x.new_tensor([5.0, 3.0, 1.0]).view(1, -1, 1, 1)
    sixth = torch.remainder(offset + hue.unsqueeze(1) + 6 * turn, 6)
    return value.unsqueeze(1) - chroma.unsqueeze(1) * torch.minimum(sixth, 4 - sixth).clamp(0, 1)
