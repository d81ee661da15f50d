"""ResNets (He et al. 2016), torchvision's, with stems for small images."""

from collections.abc import Callable
from typing import Any

from torch import nn

from edgefl.models._layers import STEMS, Variants, first_convolution, net_of, norm_layer
from edgefl.protocol import Net
from edgefl.protocol.vision import torchvision

_STEM, _LAST = 64, 512


def resnet(
    params: Variants,
    shape: tuple[int, int, int],
    classes: int,
    *,
    block: str,
    repeats: tuple[int, int, int, int],
    change: Callable[[nn.Module], None] = lambda _: None,
) -> Net:
    """Torchvision's ResNet without its classifier; 512 features, 2,048 of bottlenecks, or as it ends.

    The cifar and tiny stems are one 3x3 convolution of stride 1; in tiny the first block has stride 2
    (SphereFed, Table 15). Weights are initialised as torchvision does, never downloaded.

    Args:
        block: "BasicBlock" or "Bottleneck".
        repeats: blocks of each stage.
        change: of each block, once it is made.

    Raises:
        UserError: the groups do not divide 64, the smallest width.
    """
    norm = norm_layer(params, _STEM)
    resnets = torchvision().models.resnet
    made = getattr(resnets, block)
    last = _LAST * made.expansion

    def body() -> nn.Module:
        network: Any = resnets.ResNet(made, list(repeats), norm_layer=norm)
        kernel, stride, pooled = STEMS[params.stem]
        network.conv1 = first_convolution(shape[0], _STEM, kernel, stride if pooled else 1)
        if not pooled:
            network.maxpool = nn.Identity()
        if params.stem == "tiny":
            network.layer1 = _halving(network, made, repeats[0])
        for stage in (network.layer1, network.layer2, network.layer3, network.layer4):
            for one in stage:
                change(one)
        network.fc = params.layer(last)
        finished: nn.Module = network
        return finished

    blocks = [f"layer{stage}.{place}" for stage, count in enumerate(repeats, 1) for place in range(count)]
    return net_of(
        params, body, shape, classes, params.width(last), layers=("relu", *blocks), stage=("layer3", "layer4")
    )


def _halving(network: Any, block: Any, repeats: int) -> nn.Module:
    """The first stage with stride 2."""
    network.inplanes = _STEM
    stage: nn.Module = network._make_layer(block, _STEM, repeats, stride=2)  # noqa: SLF001 - no other way
    for one in stage.modules():
        if isinstance(one, nn.Conv2d):
            nn.init.kaiming_normal_(one.weight, mode="fan_out", nonlinearity="relu")
    return stage
