"""Networks by library and name, as modules without weights; some that only a source of measurements defines.

``mnn-``: UbiquitousLearning/Benchmark-On-Device-Training at 752659f8, ``tools/train/source/models/``, in
operators of torch. A softmax that ends some of them is part of the loss here.

``cifar-``: yeeiia/Hardware-Course-Project at 053a6df, ``src/fedavg/models.py``: torchvision's networks with
stems for 32x32 pixels.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from edgefl.core import catalogue
from edgefl.core.components import params_of
from edgefl.core.errors import UnknownNameError, UserError, in_one_line, nearest
from edgefl.core.validation import validate
from edgefl.core.yamls import Document
from edgefl.planning.benchmarks import BenchmarkRow
from edgefl.protocol.vision import torchvision

Make = Callable[[], nn.Module]

_POOL, _STRIDE = 3, 2
# Settings that these definitions need to be built without weights, and to return the logits alone.
_NEEDED: Mapping[str, Mapping[str, Any]] = {
    "googlenet": {"aux_logits": False, "init_weights": False},
    "inception_v3": {"aux_logits": False, "init_weights": False},
}


def maker(row: BenchmarkRow, document: Document, place: int) -> Make:
    """A function that makes the network of a document's row, as a module on torch's default device.

    Raises:
        UserError: the library has no such network, or its definition refuses the settings.
    """
    where = str(document.place(["rows", place, "network"]))
    settings = row.settings
    if row.library == "edgefl":
        module = catalogue.load("models", row.network, where=where)
        params: Any = validate(params_of("models", module), settings, document, ["rows", place, "settings"])
        net = partial(params.build, row.image, row.classes)
        return lambda: (built := net()).module(built.init(0))
    found = _torchvisions() if row.library == "torchvision" else _PUBLISHED
    if row.network not in found:
        what = f"{row.library} has no network {row.network!r}"
        raise UnknownNameError(what, where=where, hint=nearest(row.network, found))
    build = found[row.network]
    if row.library == "published":
        if settings:
            raise UserError(f"{row.network!r} has no settings", where=where)
        return partial(build, row.image[0], row.classes)
    if "weights" in settings:
        raise UserError("networks are built without weights: leave out 'weights'", where=where)
    settings = {**_NEEDED.get(row.network, {}), **settings, "num_classes": row.classes}

    def make() -> nn.Module:
        try:
            return build(**settings)
        except (TypeError, ValueError) as error:
            what = f"torchvision's {row.network!r} refuses these settings: {in_one_line(error)}"
            raise UserError(what, where=where) from error

    return make


def _torchvisions() -> dict[str, Callable[..., nn.Module]]:
    """By name: its functions, then its classes."""
    models = torchvision().models
    classes = {name: one for name, one in vars(models).items() if inspect.isclass(one)}
    builders = {name: models.get_model_builder(name) for name in models.list_models(module=models)}
    return builders | {name: one for name, one in classes.items() if issubclass(one, nn.Module)}


def _mnn_lenet(channels: int, classes: int) -> nn.Module:
    """LeNet for 28x28 pixels; no activation follows a convolution.

    There, the second convolution is not registered, so that its weights are not trained; here they are.
    """
    return nn.Sequential(
        nn.Conv2d(channels, 20, 5),
        nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(800, 400),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(400, classes),
    )


def _mnn_alexnet(channels: int, classes: int) -> nn.Module:
    """AlexNet for 224x224 pixels in one tower, with one hidden layer."""
    widths = ((96, 256, 5), (256, 384, 3), (384, 384, 3), (384, 256, 3))
    second, third, fourth, fifth = (
        nn.Conv2d(inputs, outputs, side, padding=side // 2) for inputs, outputs, side in widths
    )
    return nn.Sequential(
        *(nn.Conv2d(channels, 96, 11, stride=4), nn.ReLU(), nn.MaxPool2d(_POOL, _STRIDE)),
        *(second, nn.ReLU(), nn.MaxPool2d(_POOL, _STRIDE)),
        *(third, nn.ReLU(), fourth, nn.ReLU(), fifth, nn.MaxPool2d(_POOL, _STRIDE)),
        *(nn.Flatten(), nn.Linear(256 * 5 * 5, 4096), nn.ReLU(), nn.Dropout(0.5), nn.ReLU()),
        *(nn.Dropout(0.5), nn.Linear(4096, classes)),
    )


class _Joined(nn.Module):
    """Branches of one input, their channels side by side."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], dim=1)


def _halved() -> nn.Module:
    return nn.MaxPool2d(_POOL, _STRIDE, padding=1)


def _inception(
    inputs: int, one: int, less3: int, three: int, less5: int, five: int, pooled: int
) -> nn.Module:
    """Four branches without normalisation or activation."""
    return _Joined(
        nn.Conv2d(inputs, one, 1),
        nn.Sequential(nn.Conv2d(inputs, less3, 1), nn.Conv2d(less3, three, 3, padding=1)),
        nn.Sequential(nn.Conv2d(inputs, less5, 1), nn.Conv2d(less5, five, 5, padding=2)),
        nn.Sequential(nn.MaxPool2d(_POOL, 1, padding=1), nn.Conv2d(inputs, pooled, 1)),
    )


def _mnn_googlenet(channels: int, classes: int) -> nn.Module:
    """GoogLeNet for 224x224 pixels, without normalisation, activations and auxiliary classifiers."""
    return nn.Sequential(
        *(nn.Conv2d(channels, 64, 7, stride=2, padding=3), _halved()),
        *(nn.Conv2d(64, 192, 3, padding=1), _halved()),
        _inception(192, 64, 96, 128, 16, 32, 32),
        _inception(256, 128, 128, 192, 32, 96, 64),
        _halved(),
        _inception(480, 192, 96, 208, 16, 48, 64),
        _inception(512, 160, 112, 224, 24, 64, 64),
        _inception(512, 128, 128, 256, 24, 64, 64),
        _inception(512, 112, 144, 288, 32, 64, 64),
        _inception(528, 256, 160, 320, 32, 128, 128),
        _halved(),
        _inception(832, 256, 160, 320, 32, 128, 128),
        _inception(832, 384, 192, 384, 48, 128, 128),
        *(nn.AvgPool2d(7), nn.Conv2d(1024, classes, 1), nn.Flatten()),
    )


def _fire(inputs: int, squeezed: int, expanded: int) -> nn.Module:
    """A fire module without activations."""
    three = nn.Conv2d(squeezed, expanded, 3, padding=1)
    return nn.Sequential(nn.Conv2d(inputs, squeezed, 1), _Joined(nn.Conv2d(squeezed, expanded, 1), three))


def _mnn_squeezenet(channels: int, classes: int) -> nn.Module:
    """SqueezeNet 1.0 for 224x224 pixels, without activations."""
    return nn.Sequential(
        *(nn.Conv2d(channels, 96, 7, stride=2, padding=3), _halved()),
        *(_fire(96, 16, 64), _fire(128, 16, 64), _fire(128, 32, 128), _halved()),
        *(_fire(256, 32, 128), _fire(256, 48, 192), _fire(384, 48, 192), _fire(384, 64, 256), _halved()),
        *(_fire(512, 64, 256), nn.Conv2d(512, classes, 1), nn.AvgPool2d(14), nn.Flatten()),
    )


def _cifar_squeezenet(channels: int, classes: int) -> nn.Module:
    network: nn.Module = torchvision().models.squeezenet1_0(num_classes=classes)
    features = network.get_submodule("features")
    features.register_module("0", nn.Conv2d(channels, 96, 3, padding=1))
    features.register_module("2", nn.MaxPool2d(3, stride=1, padding=1))
    return network


def _cifar_mobilenet_v3_small(channels: int, classes: int) -> nn.Module:
    network: nn.Module = torchvision().models.mobilenet_v3_small(num_classes=classes)
    stem = nn.Conv2d(channels, 16, 3, padding=1, bias=False)
    network.get_submodule("features.0").register_module("0", stem)
    return network


# By name: (channels, classes) -> the network.
_PUBLISHED: Mapping[str, Callable[..., nn.Module]] = {
    "mnn-lenet": _mnn_lenet,
    "mnn-alexnet": _mnn_alexnet,
    "mnn-googlenet": _mnn_googlenet,
    "mnn-squeezenet": _mnn_squeezenet,
    "cifar-squeezenet": _cifar_squeezenet,
    "cifar-mobilenet-v3-small": _cifar_mobilenet_v3_small,
}
