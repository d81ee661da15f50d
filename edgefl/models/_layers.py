"""What several models share: layers, refusals, and how a net is made of a body."""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field
from torch import nn

from edgefl.core.errors import UserError
from edgefl.models import ModelParams
from edgefl.protocol import Net
from edgefl.protocol.modules import functional_net

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


def net_of(
    params: Any,
    body: Callable[[], nn.Module],
    shape: tuple[int, int, int],
    classes: int,
    width: int,
    *,
    layers: tuple[str, ...],
    stage: tuple[str, ...] = (),
) -> Net:
    """The net of a body and a linear head, with a bias where ``params`` say so; see ``functional_net``."""
    name, bias = file_name(params), params.head_bias
    return functional_net(name, body, shape, classes, width=width, head_bias=bias, layers=layers, stage=stage)


def file_name(params: ModelParams) -> str:
    return params.name.replace("-", "_")


def check_size(params: ModelParams, shape: tuple[int, int, int], least: int) -> None:
    """Refuses images with a side so small that poolings leave nothing of it."""
    _, height, width = shape
    if min(height, width) < least:
        raise UserError(
            f"{file_name(params)} needs images of at least {least}x{least} pixels, not {height}x{width}",
            where=f"model {file_name(params)}",
            hint="use mlp, or a dataset of larger images",
        )


def two_convolutions(
    depth: int, channels: tuple[int, int], kernel: Any, *, padding: Any = 0, pool: Any = 2
) -> OrderedDict[str, nn.Module]:
    """Two convolutions, each with ReLU and max-pooling, and what flattens the rest.

    Sizes are those of torch's layers: a number, or one for each direction.
    """
    first, second = channels
    return OrderedDict[str, nn.Module](
        conv1=nn.Conv2d(depth, first, kernel, padding=padding),
        relu1=nn.ReLU(),
        pool1=nn.MaxPool2d(pool),
        conv2=nn.Conv2d(first, second, kernel, padding=padding),
        relu2=nn.ReLU(),
        pool2=nn.MaxPool2d(pool),
        flatten=nn.Flatten(),
    )


SECOND_CONVOLUTION = ("pool1", "conv2", "relu2")
"""The second of ``two_convolutions`` as a net's last stage."""


def left_of(size: int, kernel: int, padding: int = 0) -> int:
    """The pixels of a side that two convolutions, each with a pooling by 2, leave."""
    for _ in range(2):
        size = (size + 2 * padding - kernel + 1) // 2
    return size


def renormalised(network: nn.Module, params: Normalised, common: int) -> None:
    """Replaces every batch norm in place, where the network's own code takes no other."""
    norm = norm_layer(params, common)
    for name, module in list(network.named_modules()):
        if isinstance(module, nn.BatchNorm2d) and params.norm != "batch":
            outer, _, own = name.rpartition(".")
            network.get_submodule(outer).register_module(own, norm(module.num_features))


def norm_layer(params: Any, common: int) -> Callable[[int], nn.Module]:
    """Channels -> the normalisation layer that follows a convolution.

    Args:
        params: of a model, with ``norm`` and ``groups``.
        common: the greatest common divisor of the model's widths.

    Raises:
        UserError: the groups do not divide every width of the model.
    """
    if params.norm == "batch":
        return nn.BatchNorm2d
    if common % params.groups:
        model = file_name(params)
        raise UserError(
            f"the widths of {model}'s layers are not all divisible by {params.groups} groups",
            where=f"model {model}, key 'groups'",
            hint=f"use a divisor of {common}, such as {min(8, common)}",
        )
    return partial(nn.GroupNorm, params.groups)


def first_convolution(channels: int, width: int, kernel: int, stride: int) -> nn.Conv2d:
    """A stem without bias, padded to keep the size at stride 1; initialised like torchvision's."""
    stem = nn.Conv2d(channels, width, kernel, stride, kernel // 2, bias=False)
    nn.init.kaiming_normal_(stem.weight, mode="fan_out", nonlinearity="relu")
    return stem
