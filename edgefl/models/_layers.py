"""Layers that several convolutional models share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal, TypeAlias

from pydantic import Field
from torch import nn

from edgefl.core.errors import UserError

NormName: TypeAlias = Literal["batch", "group"]
Width: TypeAlias = Annotated[int, Field(gt=0)]


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
