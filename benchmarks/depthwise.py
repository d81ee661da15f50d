"""How much slower torch trains MobileNetV3-Small's depthwise convolutions than ResNet-18's, on one core.

The ratio is the source of the depthwise efficiency of boards on which nobody measured it, such as
devices/raspberry-pi-4b.yaml.
"""

import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from edgefl.protocol.vision import torchvision

REPEATS = 7


def layers(
    network: nn.Module, x: Tensor, matches: Callable[[nn.Conv2d], bool]
) -> list[tuple[nn.Conv2d, Tensor]]:
    """The network's convolutions that match, each with its input."""
    found: list[tuple[nn.Conv2d, Tensor]] = []
    hooks = [
        layer.register_forward_hook(lambda layer, given, _: found.append((layer, given[0])))
        for layer in network.modules()
        if isinstance(layer, nn.Conv2d) and matches(layer)
    ]
    with torch.no_grad():
        network.eval()(x)
    for hook in hooks:
        hook.remove()
    return found


def flops_a_second(found: list[tuple[nn.Conv2d, Tensor]]) -> float:
    """Operations of forward, input gradient and weight gradient, over the best time of each layer."""
    flops, seconds = 0, 0.0
    for layer, given in found:
        x = given.clone().requires_grad_()
        out = layer(x)
        flops += 6 * out.numel() * layer.weight[0].numel()
        seconds += min(once(layer, x) for _ in range(REPEATS))
    return flops / seconds


def once(layer: nn.Conv2d, x: Tensor) -> float:
    """Seconds of one forward and backward pass."""
    start = time.perf_counter()
    out = layer(x)
    torch.autograd.grad(out, [x, layer.weight], torch.ones_like(out))
    return time.perf_counter() - start


def main() -> None:
    """Prints both rates and their ratio."""
    torch.set_num_threads(1)
    models = torchvision().models
    resnet = models.resnet18(num_classes=10)
    resnet.conv1, resnet.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    mobilenet = models.mobilenet_v3_small(num_classes=10)
    mobilenet.features[0][0].stride = (1, 1)
    dense = flops_a_second(layers(resnet, torch.randn(8, 3, 32, 32), lambda _: True))
    depthwise = flops_a_second(layers(mobilenet, torch.randn(32, 3, 32, 32), lambda layer: layer.groups > 1))
    print(f"dense {dense / 1e9:.1f} GFLOP/s, depthwise {depthwise / 1e9:.2f}: {depthwise / dense:.3f}")


if __name__ == "__main__":
    main()
