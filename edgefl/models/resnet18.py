"""ResNet-18 (He et al. 2016), torchvision's, with a stem for small images.

The CIFAR stem (SphereFed, Table 15 with stride 1) is one 3x3 convolution of stride 1 without pooling;
the ImageNet stem is torchvision's 7x7 of stride 2 and max-pooling. FedClassAvg ends every body in a linear
layer of 512 features (``wrap: 512``), on the ImageNet stem: 11,444,298 parameters with 10 classes.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import nn

from edgefl.core.params import Strict
from edgefl.models._layers import NormName, Width, first_convolution, norm_layer
from edgefl.protocol import Net
from edgefl.protocol.modules import functional_net
from edgefl.protocol.vision import torchvision

_STEM = 64
_LAST = 512


class Params(Strict):
    """The variants of ResNet-18."""

    stem: Literal["cifar", "imagenet"] = Field(
        "cifar", description="cifar: 3x3, stride 1, no pooling; imagenet: 7x7, stride 2, max-pooling."
    )
    norm: NormName = Field("batch", description="Batch or group normalisation.")
    groups: Width = Field(
        8, description="Groups of group normalisation; SphereFed's paper does not say how many."
    )
    wrap: Width | None = Field(None, description="Width of a linear layer that ends the body; null for none.")
    head_bias: bool = Field(True, description="Whether the classifier has a bias.")


def build(params: Params, shape: tuple[int, int, int], classes: int) -> Net:
    """Torchvision's ResNet-18 without its classifier; 512 features, or ``wrap`` of them.

    Weights are initialised as torchvision does, never downloaded.

    Raises:
        UserError: the groups do not divide 64, the smallest width.
    """
    norm = norm_layer("resnet18", params.norm, params.groups, _STEM)
    models = torchvision().models
    width = params.wrap or _LAST

    def body() -> nn.Module:
        network: nn.Module = models.resnet18(weights=None, norm_layer=norm)
        if params.stem == "cifar":
            network.conv1 = first_convolution(shape[0], _STEM, kernel=3, stride=1)
            network.maxpool = nn.Identity()
        else:
            network.conv1 = first_convolution(shape[0], _STEM, kernel=7, stride=2)
        network.fc = nn.Linear(_LAST, params.wrap) if params.wrap else nn.Identity()
        return network

    return functional_net(
        "resnet18",
        body,
        shape,
        classes,
        width=width,
        head_bias=params.head_bias,
        layers=("relu", *(f"layer{stage}.{block}" for stage in range(1, 5) for block in range(2))),
        stage=("layer3", "layer4"),
    )
