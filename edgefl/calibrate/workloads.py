"""What is timed: small kernels of each class, training steps of networks, and inference of some of them.

A workload is plain data, so that a fresh process can be told of it. ``ready`` turns it into something to
call: on the CPU to be timed, on the meta device to be traced. What it costs is therefore never typed in.

Batches are as training has them: float32, images channels-last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from edgefl.calibrate.inference import depthwise_stack, exported, session
from edgefl.compute import meta
from edgefl.core import catalogue
from edgefl.core.cost import Work
from edgefl.core.training import Local, Sgd
from edgefl.protocol import Batch, Ctx, Method, Net, Site, tree_map

STEP = "step"
INFERENCE = "inference"
FIT = "fit"
HELD_OUT = "held out"
CLASSES = 10

Call = Callable[[], Any]


@dataclass(frozen=True)
class Workload:
    """Something to time.

    Attributes:
        name: for people; unique among the workloads of a calibration.
        kind: one of ``KINDS``, or "step" or "inference" of a network.
        settings: the kernel's sizes, or the network's model, parameters and image shape.
        batch: samples.
        use: whether the fit sees it, or it is held out to check the fit.
    """

    name: str
    kind: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    batch: int = 1
    use: str = FIT


def ready(workload: Workload) -> Call:
    """The workload on torch's default device, with everything made that it needs."""
    if workload.kind == STEP:
        return _step(workload)
    if workload.kind == INFERENCE:
        return session(workload.settings["file"], (workload.batch, *workload.settings["shape"]))
    return KINDS[workload.kind](workload.settings, workload.batch)


def work_of(workload: Workload) -> Work:
    """The kernels of one call, as pricing would trace them."""
    if workload.kind == STEP:
        net = network(workload)
        method = fedavg(net)
        (exchange,) = method.exchanges
        return meta.trace(method, exchange, net, [[{workload.batch: 1}]]).phases[0].steps[workload.batch]
    with torch.device("meta"):
        call = _forward(workload) if workload.kind == INFERENCE else ready(workload)
        tracer = meta.Tracer()
        with tracer:
            call()
    return Work.of(tracer.kernels)


def network(workload: Workload) -> Net:
    """A network's own net."""
    module = catalogue.load("models", workload.settings["model"])
    params = module.Params.model_validate(dict(workload.settings.get("params", {})))
    net: Net = module.build(params, tuple(workload.settings["shape"]), CLASSES)
    return net


def module_of(workload: Workload) -> tuple[nn.Module, tuple[int, ...]]:
    """What is exported to be inferred with, and the shape of one sample."""
    shape = tuple(workload.settings["shape"])
    if "model" not in workload.settings:
        return depthwise_stack(shape[0]), shape
    net = network(workload)
    return net.module(net.init(0)), shape


def export(workloads: Sequence[Workload]) -> None:
    """Writes the ONNX files that inferences name."""
    exported({one.settings["file"]: module_of(one) for one in workloads})


def _forward(workload: Workload) -> Call:
    """The module on a batch, without what only training needs."""
    module, shape = module_of(workload)
    x = torch.randn(workload.batch, *shape)

    def call() -> None:
        with torch.no_grad():
            module(x)

    return call


def fedavg(net: Net) -> Method:
    """FedAvg with plain SGD: what the steps are steps of."""
    module = catalogue.load("methods", "fedavg")
    method: Method = module.build(module.Params(), Site(net, Local(optimizer=Sgd(lr=0.01)), fedavg))
    return method


def image(batch: int, shape: tuple[int, ...]) -> Tensor:
    """A batch of random images (B, C, H, W), a pixel's channels side by side in memory."""
    return torch.randn(batch, *shape).to(memory_format=torch.channels_last)


def _step(workload: Workload) -> Call:
    """One step of the project's own fold after another, on one batch."""
    net = network(workload)
    method = fedavg(net)
    (exchange,) = method.exchanges
    fold = exchange.work
    initial = net.init(0)
    ctx = Ctx(client=0, round=0, lr=0.01, steps=1, samples=workload.batch, class_counts=torch.ones(CLASSES))
    carry = fold.start(tree_map(torch.clone, exchange.down(method.server(initial), 0)), None, ctx)
    batch = Batch(image(workload.batch, net.shape), torch.randint(CLASSES, (workload.batch,)))
    (phase,) = fold.phases

    def call() -> None:
        nonlocal carry
        carry = phase.step(carry, batch)

    return call


def _trained(module: nn.Module, x: Tensor) -> Call:
    """A module forward, and back to its input and its weights."""
    x.requires_grad_()
    wanted = [x, *module.parameters()]
    grad = torch.ones_like(module(x))
    return lambda: torch.autograd.grad(module(x), wanted, grad)


def _linear(settings: Mapping[str, Any], batch: int) -> Call:
    return _trained(
        nn.Linear(settings["inputs"], settings["outputs"]), torch.randn(batch, settings["inputs"])
    )


def _convolution(settings: Mapping[str, Any], batch: int) -> Call:
    inputs, outputs, size, kernel = (settings[key] for key in ("inputs", "outputs", "size", "kernel"))
    layer = nn.Conv2d(
        inputs, outputs, kernel, padding=kernel // 2, groups=settings.get("groups", 1), bias=False
    )
    return _trained(layer, image(batch, (inputs, size, size)))


def _normalise(settings: Mapping[str, Any], batch: int) -> Call:
    """What stands between two convolutions: batch normalisation and a ReLU."""
    channels, size = settings["channels"], settings["size"]
    layer = nn.Sequential(nn.BatchNorm2d(channels, track_running_stats=False), nn.ReLU())
    return _trained(layer, image(batch, (channels, size, size)))


def _product(settings: Mapping[str, Any], batch: int) -> Call:
    """A square product."""
    del batch
    first, second = (
        torch.randn(settings["side"], settings["side"]),
        torch.randn(settings["side"], settings["side"]),
    )
    return partial(torch.mm, first, second)


def _copy(settings: Mapping[str, Any], batch: int) -> Call:
    """One number after another from here to there, and no cache holds them."""
    del batch
    source = torch.ones(settings["bytes"] // 4)
    return partial(torch.empty_like(source).copy_, source)


KINDS: dict[str, Callable[[Mapping[str, Any], int], Call]] = {
    "linear": _linear,
    "convolution": _convolution,
    "normalise": _normalise,
    "product": _product,
    "copy": _copy,
}
