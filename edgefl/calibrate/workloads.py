"""Workloads: what is computed, and its kernels.

A workload is sent to a fresh process to be timed. Its kernels are traced on the meta device from the same
code, so no FLOP count is typed in. Batches are as in training: float32, images channels-last.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from edgefl.compute import meta
from edgefl.compute.onnx_exporter import onnx_model
from edgefl.compute.onnx_runtime import session
from edgefl.compute.tracer import Tracer
from edgefl.core import catalogue
from edgefl.core.cost import Work
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.scenario import LocalTraining
from edgefl.protocol import Batch, Ctx, Exchange, Method, Net, Site, tree_map
from edgefl.protocol.meta_device import meta_device

FIT = "fit"
HELD_OUT = "held out"
CLASSES = 10
INFERENCE = "inference: "

Call = Callable[[], Any]


class Computation(ABC):
    """What a workload does."""

    @abstractmethod
    def ready(self, batch: int) -> Call:
        """The computation as a call, on torch's default device, with its inputs allocated."""

    def work(self, batch: int) -> Work:
        """The kernels of one call, as pricing would trace them."""
        return _traced(partial(self.ready, batch))


@dataclass(frozen=True)
class Workload:
    """A computation at a batch size.

    Attributes:
        name: for people; unique in a calibration.
        use: whether the fit uses it, or it is held out to check the fit.
    """

    name: str
    computation: Computation
    batch: int = 1
    use: str = FIT

    @property
    def title(self) -> str:
        """The name without the prefix that tells inference from training."""
        return self.name.removeprefix(INFERENCE)


@dataclass(frozen=True)
class Operation(Computation):
    """A kernel, or a layer forward and backward; ``make``: (batch, *sizes) -> a call, such as ``linear``."""

    make: Callable[..., Call]
    sizes: tuple[int, ...]

    def ready(self, batch: int) -> Call:
        return self.make(batch, *self.sizes)


def product(batch: int, side: int) -> Call:
    """A product of two square matrices."""
    del batch
    return partial(torch.mm, torch.randn(side, side), torch.randn(side, side))


def copy(batch: int, nbytes: int) -> Call:
    """A copy from one place in memory to another."""
    del batch
    source = torch.ones(nbytes // 4)
    return partial(torch.empty_like(source).copy_, source)


def linear(batch: int, inputs: int, outputs: int) -> Call:
    """A linear layer."""
    return _trained(nn.Linear(inputs, outputs), torch.randn(batch, inputs))


def convolution(batch: int, inputs: int, outputs: int, kernel: int, size: int, groups: int = 1) -> Call:
    """A convolution of square images."""
    layer = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, groups=groups, bias=False)
    return _trained(layer, image(batch, (inputs, size, size)))


def normalisation(batch: int, channels: int, size: int) -> Call:
    """Batch normalisation and a ReLU, as between two convolutions."""
    layer = nn.Sequential(nn.BatchNorm2d(channels, track_running_stats=False), nn.ReLU())
    return _trained(layer, image(batch, (channels, size, size)))


def _trained(module: nn.Module, x: Tensor) -> Call:
    """A module forward, and backward to its input and its weights."""
    x.requires_grad_()
    inputs = [x, *module.parameters()]
    grad = torch.ones_like(module(x))
    return lambda: torch.autograd.grad(module(x), inputs, grad)


def image(batch: int, shape: tuple[int, ...]) -> Tensor:
    """A batch of random images (B, C, H, W), channels-last in memory."""
    return torch.randn(batch, *shape).to(memory_format=torch.channels_last)


@dataclass(frozen=True)
class Network:
    """A model of the catalogue for samples of a shape, and what people call it if not by the model's name."""

    model: str
    shape: tuple[int, int, int]
    params: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    @property
    def title(self) -> str:
        return f"{self.label or self.model} at {self.shape[-1]}"

    def net(self) -> Net:
        """As methods train it."""
        module = catalogue.load("models", self.model)
        net: Net = module.Params.model_validate(dict(self.params)).build(self.shape, CLASSES)
        return net

    def module(self) -> nn.Module:
        """As it is exported."""
        net = self.net()
        return net.module(net.init(0))


@dataclass(frozen=True)
class DepthwiseStack:
    """Depthwise convolutions alone, which no fitted network has."""

    shape: tuple[int, int, int]
    layers: int = 3

    def module(self) -> nn.Module:
        channels = self.shape[0]
        return nn.Sequential(
            *(
                nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
                for _ in range(self.layers)
            )
        )


@dataclass(frozen=True)
class MethodStep(Computation):
    """A step of an exchange that has steps, of a method with plain SGD."""

    network: Network
    method: str = "fedavg"
    exchange: str = "train"

    @property
    def title(self) -> str:
        """The method, and the exchange where it is not training."""
        return self.method if self.exchange == "train" else f"{self.method}: {self.exchange}"

    def ready(self, batch: int) -> Call:
        """One step after another of the project's own fold, on one batch."""
        net = self.network.net()
        method, exchange = self._built(net)
        fold = exchange.work
        (phase,) = fold.phases
        ctx = Ctx(client=0, round=0, lr=0.01, steps=1, samples=batch, class_counts=torch.ones(CLASSES))
        initial = net.init(0)
        received = tree_map(torch.clone, exchange.down(method.server(initial), 0))
        carry = fold.start(received, method.client(initial), ctx)
        views = [image(batch, net.shape) for _ in range(phase.views)]
        data = Batch(torch.stack(views) if phase.views > 1 else views[0], torch.randint(CLASSES, (batch,)))

        def call() -> None:
            nonlocal carry
            carry = phase.step(carry, data)

        return call

    def work(self, batch: int) -> Work:
        net = self.network.net()
        return meta.trace(*self._built(net), net, [[{batch: 1}]]).phases[0].steps[batch]

    def _built(self, net: Net) -> tuple[Method, Exchange]:
        method = _method(net, self.method)
        return method, next(one for one in method.exchanges if one.name == self.exchange)


@dataclass(frozen=True)
class ForwardPass(Computation):
    """A forward pass without gradients, as in evaluation."""

    network: Network

    def ready(self, batch: int) -> Call:
        """The project's own evaluation, on one batch."""
        net = self.network.net()
        weights, x = net.init(0), image(batch, net.shape)

        def call() -> Tensor:
            with torch.no_grad():
                return net.logits(weights, x)

        return call


@dataclass(frozen=True)
class OnnxInference(Computation):
    """A network in ONNX Runtime, from a file that ``export`` writes."""

    network: Network | DepthwiseStack
    file: Path

    def ready(self, batch: int) -> Call:
        """A call of ONNX Runtime on a random batch, on as many threads as torch has."""
        running = session(str(self.file), torch.get_num_threads())
        inputs = {running.get_inputs()[0].name: torch.randn(batch, *self.network.shape).numpy()}
        return partial(running.run, None, inputs)

    def work(self, batch: int) -> Work:
        with torch.no_grad():
            return _traced(lambda: partial(self.network.module(), torch.randn(batch, *self.network.shape)))


def export(inferences: Sequence[OnnxInference]) -> None:
    """Writes the ONNX files: networks in evaluation mode, for any batch size."""
    for file, network in {one.file: one.network for one in inferences}.items():
        model = onnx_model(network.module(), torch.randn(2, *network.shape), input_name="x")
        file.write_bytes(model.SerializeToString())


def _method(net: Net, name: str = "fedavg") -> Method:
    """A method with its defaults, on FedAvg where it needs a base."""
    module = catalogue.load("methods", name)
    method: Method = module.Params().build(Site(net, LocalTraining(optimizer=Sgd(lr=0.01)), _method))
    return method


def _traced(ready: Callable[[], Call]) -> Work:
    """The kernels of a call made on the meta device."""
    with meta_device():
        call = ready()
        tracer = Tracer()
        with tracer:
            call()
    return Work.of(tracer.kernels)
