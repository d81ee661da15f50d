"""Exported models without a run: predictors in which every tensor matters, a dataset, images."""

from collections.abc import Callable
from functools import cache

import torch
from builders import Federation, build_method, build_net
from torch import Tensor

from edgefl.data.dataset import Spec
from edgefl.export.graph import Served, to_onnx
from edgefl.export.model import ExportForm
from edgefl.protocol import BUFFERS, Net, Predictor, Tree

# The smallest of each that its parameters permit, on small images. On 8x8, MobileNetV2's last layers see one
# pixel, whose variance over a batch is so small that float32 itself is off by a thousandth.
MODELS = {
    "mlp": ((1, 8, 8), {"hidden": (24,)}),
    "cnn2": ((3, 16, 16), {"channels": (4, 6), "hidden": 16}),
    "fedcka-cnn": ((3, 16, 16), {}),
    "spherefed-convnet": ((3, 8, 8), {}),
    "resnet18": ((3, 8, 8), {}),
    "mobilenet-v2": ((3, 16, 16), {}),
    "resnet10": ((3, 8, 8), {}),
    "resnet34": ((3, 8, 8), {}),
    "resnet50": ((3, 8, 8), {"projection": 16}),
    "vgg13": ((3, 16, 16), {}),
    "senet18": ((3, 8, 8), {}),
    "shufflenet-v2": ((3, 16, 16), {}),
    "googlenet": ((3, 16, 16), {}),
    "alexnet": ((3, 9, 9), {"wrap": 8}),
    "cnn1d": ((9, 1, 16), {}),
    "lstm": ((9, 1, 16), {"hidden": 8}),
}
# method -> which of its models; SphereFed's is the one with the calibrated head
METHODS: dict[str, Callable[[Federation], Predictor]] = {
    "fedavg": lambda done: done.method.global_model(done.server),
    "spherefed": lambda done: done.method.global_model(done.server),
    "fedclassavg": lambda done: done.method.personal_model(done.server, done.states[1]),
}
CLASSES = 10


def spec(shape: tuple[int, ...]) -> Spec:
    """A dataset of images of a shape; each channel has its own mean and deviation."""
    mean = tuple(0.3 + 0.1 * channel for channel in range(shape[0]))
    std = tuple(0.2 + 0.05 * channel for channel in range(shape[0]))
    return Spec("made", shape, 64, 64, tuple("abcdefghij"), mean, std)


def images(shape: tuple[int, ...], count: int = 64) -> tuple[Tensor, Tensor]:
    """Random uint8 images and labels."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randint(256, (count, *shape), dtype=torch.uint8, generator=generator)
    return x, torch.randint(CLASSES, (count,), generator=generator)


def worked(method: str, net: Net) -> Predictor:
    """The model of a method after every exchange was done once, with running statistics that matter."""
    found = METHODS[method](Federation(build_method(method, net), net, clients=2).through())
    return Predictor(perturbed(found.weights), found.logits)


def perturbed(weights: Tree) -> Tree:
    """The weights with other running means and variances, so that a layer in training mode is detected."""
    generator = torch.Generator().manual_seed(2)

    def other(name: str, value: Tensor) -> Tensor:
        noise = torch.rand(value.shape, generator=generator)
        if name.endswith("running_var"):
            return value * (0.5 + noise)
        if name.endswith("running_mean"):
            return value + noise * given[name.removesuffix("mean") + "var"].sqrt()
        return value

    given = weights.get(BUFFERS, {})
    buffers = {name: other(name, value) for name, value in given.items()}
    return {**weights, **({BUFFERS: buffers} if buffers else {})}


@cache
def exported(name: str, method: str) -> tuple[Served, bytes]:
    """A shipped model after a method's work, and its file; cached, because it takes seconds."""
    (shape, settings), form = MODELS[name], ExportForm()
    net = build_net(name, shape, CLASSES, **settings)
    module = Served(worked(method, net), spec(shape), form).eval()
    return module, to_onnx(module, shape, form, {"method": method})
