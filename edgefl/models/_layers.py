"""Layers that several convolutional models share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal, TypeAlias

from pydantic import Field
from torch import nn

from edgefl.core.errors import UserError
from edgefl.models import ModelParams

NormName: TypeAlias = Literal["batch", "group"]
Width: TypeAlias = Annotated[int, Field(gt=0)]

StemName: TypeAlias = Literal["cifar", "tiny", "imagenet"]
# stem -> kernel and stride of a first convolution of 7x7 at full size, and whether pooling follows it
STEMS = {"cifar": (3, 1, False), "tiny": (3, 2, False), "imagenet": (7, 2, True)}


class Ending(ModelParams):
    """How a body ends, and whether the head has a bias."""

    wrap: Width | None = Field(None, description="Width of a linear layer that ends the body; null for none.")
    projection: Width | None = Field(
        None,
        description="Outputs of MOON's projection head, which ends the body: a hidden layer as wide as its "
        "input, and a linear one; null for none.",
    )
    head_bias: bool = Field(True, description="Whether the classifier has a bias.")

    def width(self, inputs: int) -> int:
        """How many features a body has that would have ``inputs`` without this."""
        return self.projection or self.wrap or inputs

    def layer(self, inputs: int) -> nn.Module:
        """The end of a body: the wrap, then the projection head; features (B, inputs) -> (B, width)."""
        wrapped = self.wrap or inputs
        linear = [nn.Linear(inputs, wrapped)] if self.wrap else []
        if not self.projection:
            return linear[0] if linear else nn.Identity()
        head = [nn.Linear(wrapped, wrapped), nn.ReLU(), nn.Linear(wrapped, self.projection)]
        return nn.Sequential(*linear, *head)


class Normalised(Ending):
    """How it is normalised."""

    norm: NormName = Field("batch", description="Batch or group normalisation.")
    groups: Width = Field(
        8, description="Groups of group normalisation; SphereFed's paper does not say how many."
    )


class Variants(Normalised):
    """The variants of a network for images of several sizes."""

    stem: StemName = Field(
        "cifar",
        description="For which images: cifar shrinks them 4 times less than imagenet, tiny 2 times less.",
    )


def renormalised(network: nn.Module, params: Normalised, model: str, common: int) -> None:
    """Replaces every batch norm in place, where the network's own code takes no other."""
    norm = norm_layer(model, params.norm, params.groups, common)
    for name, module in list(network.named_modules()):
        if isinstance(module, nn.BatchNorm2d) and params.norm != "batch":
            outer, _, own = name.rpartition(".")
            network.get_submodule(outer).register_module(own, norm(module.num_features))


def norm_layer(model: str, norm: NormName, groups: int, common: int) -> Callable[[int], nn.Module]:
    """Channels -> the normalisation layer that follows a convolution.

    Args:
        model: its name, for the message.
        norm: "batch", or "group" for ``groups`` groups in every layer.
        groups: used by "group" alone.
        common: the greatest common divisor of the model's widths.

    Raises:
        UserError: the groups do not divide every width of the model.
    """
    if norm == "batch":
        return nn.BatchNorm2d
    if common % groups:
        raise UserError(
            f"the widths of {model}'s layers are not all divisible by {groups} groups",
            where=f"model {model}, key 'groups'",
            hint=f"use a divisor of {common}, such as {min(8, common)}",
        )
    return partial(nn.GroupNorm, groups)


def first_convolution(channels: int, width: int, kernel: int, stride: int) -> nn.Conv2d:
    """A stem without bias, padded to keep the size at stride 1; initialised like torchvision's."""
    stem = nn.Conv2d(channels, width, kernel, stride, kernel // 2, bias=False)
    nn.init.kaiming_normal_(stem.weight, mode="fan_out", nonlinearity="relu")
    return stem
