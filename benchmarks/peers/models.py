"""The contenders' models, layer by layer as in edgefl; every contender reports its parameter count."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

_GROUPS = 8
_SEED = 1


def cnn2() -> nn.Module:
    """Two 5x5 convolutions with pooling and a hidden layer, on 3x32x32."""
    return nn.Sequential(
        nn.Conv2d(3, 10, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(10, 20, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(500, 256),
        nn.ReLU(),
        nn.Linear(256, 10),
    )


def mlp() -> nn.Module:
    """64-64-10, on 1x8x8."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


class _Block(nn.Module):
    """torchvision's BasicBlock with group norm."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.norm1 = nn.GroupNorm(_GROUPS, width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm2 = nn.GroupNorm(_GROUPS, width)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or before != width:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, width, 1, stride, bias=False), nn.GroupNorm(_GROUPS, width)
            )

    def forward(self, x: Tensor) -> Tensor:
        """The block's output; its sum with the shortcut is taken in place, as torchvision does."""
        out = self.relu(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(out))
        out += self.shortcut(x)
        return self.relu(out)


def resnet18() -> nn.Module:
    """ResNet-18 of torchvision with group norm and a 3x3 stem without pooling, on 3x32x32."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 3, 1, 1, bias=False),
        nn.GroupNorm(_GROUPS, 64),
        nn.ReLU(inplace=True),
    ]
    before = 64
    for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [_Block(before, width, stride), _Block(width, width, 1)]
        before = width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return model


MODELS: dict[str, Callable[[], nn.Module]] = {"cnn2": cnn2, "mlp": mlp, "resnet18": resnet18}


def build(name: str) -> nn.Module:
    """A model, with the same weights every time."""
    torch.manual_seed(_SEED)
    return MODELS[name]()


def count(model: nn.Module) -> int:
    """How many parameters a model has."""
    return sum(value.numel() for value in model.parameters())
