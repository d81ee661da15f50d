"""What is timed: kernels of each class, and training steps and inference of networks, from small to large.

A workload is sent to a fresh process to be timed. Its kernels are traced on the meta device from the same
code, so no FLOP count is typed in. Batches are as in training: float32, images channels-last.

The fit uses the kernels and three networks. The launch overhead shows in the steps of the smallest: in
training, Python and autograd work goes with every kernel, which kernels timed alone do not have. Two networks
of other kinds are held out, one with depthwise convolutions and one with group normalisation: nothing is ever
fitted to them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from edgefl.core.training import Local
from edgefl.protocol import Batch, Ctx, Method, Net, Site, tree_map

FIT = "fit"
HELD_OUT = "held out"
CLASSES = 10
_PREFIX = "inference: "

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
        computation: what is done.
        batch: samples.
        use: whether the fit uses it, or it is held out to check the fit.
    """

    name: str
    computation: Computation
    batch: int = 1
    use: str = FIT

    @property
    def title(self) -> str:
        """The name without the prefix that tells inference from training."""
        return self.name.removeprefix(_PREFIX)


@dataclass(frozen=True)
class Operation(Computation):
    """A kernel, or a layer forward and backward.

    Attributes:
        make: (batch, *sizes) -> a call; such as ``linear``.
        sizes: of the kernel.
    """

    make: Callable[..., Call]
    sizes: tuple[int, ...]

    def ready(self, batch: int) -> Call:
        """See ``Computation``."""
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
    """A model of the catalogue."""

    model: str
    shape: tuple[int, int, int]
    params: Mapping[str, Any] = field(default_factory=dict)

    def net(self) -> Net:
        """As methods train it."""
        module = catalogue.load("models", self.model)
        net: Net = module.build(module.Params.model_validate(dict(self.params)), self.shape, CLASSES)
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
        """As it is exported."""
        channels = self.shape[0]
        return nn.Sequential(
            *(
                nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
                for _ in range(self.layers)
            )
        )


@dataclass(frozen=True)
class TrainingStep(Computation):
    """A training step of FedAvg with plain SGD."""

    network: Network

    def ready(self, batch: int) -> Call:
        """One step after another of the project's own fold, on one batch."""
        net = self.network.net()
        method = _fedavg(net)
        (exchange,) = method.exchanges
        fold = exchange.work
        (phase,) = fold.phases
        ctx = Ctx(client=0, round=0, lr=0.01, steps=1, samples=batch, class_counts=torch.ones(CLASSES))
        received = tree_map(torch.clone, exchange.down(method.server(net.init(0)), 0))
        carry = fold.start(received, None, ctx)
        data = Batch(image(batch, net.shape), torch.randint(CLASSES, (batch,)))

        def call() -> None:
            nonlocal carry
            carry = phase.step(carry, data)

        return call

    def work(self, batch: int) -> Work:
        """See ``Computation``."""
        net = self.network.net()
        method = _fedavg(net)
        (exchange,) = method.exchanges
        return meta.trace(method, exchange, net, [[{batch: 1}]]).phases[0].steps[batch]


@dataclass(frozen=True)
class OnnxInference(Computation):
    """A network in ONNX Runtime.

    Attributes:
        network: which.
        file: the ONNX file, which ``export`` writes.
    """

    network: Network | DepthwiseStack
    file: Path

    def ready(self, batch: int) -> Call:
        """A call of ONNX Runtime on a random batch, on as many threads as torch has."""
        running = session(str(self.file), torch.get_num_threads())
        inputs = {running.get_inputs()[0].name: torch.randn(batch, *self.network.shape).numpy()}
        return partial(running.run, None, inputs)

    def work(self, batch: int) -> Work:
        """See ``Computation``."""
        with torch.no_grad():
            return _traced(lambda: partial(self.network.module(), torch.randn(batch, *self.network.shape)))


def export(inferences: Sequence[OnnxInference]) -> None:
    """Writes the ONNX files: networks in evaluation mode, for any batch size."""
    for file, network in {one.file: one.network for one in inferences}.items():
        model = onnx_model(network.module(), torch.randn(2, *network.shape), input_name="x")
        file.write_bytes(model.SerializeToString())


def _fedavg(net: Net) -> Method:
    module = catalogue.load("methods", "fedavg")
    method: Method = module.build(module.Params(), Site(net, Local(optimizer=Sgd(lr=0.01)), _fedavg))
    return method


def _traced(ready: Callable[[], Call]) -> Work:
    """The kernels of a call made on the meta device."""
    with torch.device("meta"):
        call = ready()
        tracer = Tracer()
        with tracer:
            call()
    return Work.of(tracer.kernels)


# No cache holds it.
COPY = Workload("copy 256 MB", Operation(copy, (256_000_000,)))


# Inputs, outputs, kernel, image size.
_CONVOLUTIONS = (
    (3, 8, 5, 32),
    (8, 16, 5, 16),
    (16, 16, 3, 32),
    (32, 32, 3, 16),
    (64, 64, 3, 16),
    (128, 128, 3, 8),
    (16, 96, 1, 32),
    (128, 32, 1, 16),
    (64, 256, 1, 8),
)
# Channels, image size.
_DEPTHWISE = ((16, 32), (32, 32), (64, 16), (128, 16), (256, 8))
_NORMALISATIONS = ((16, 8), (32, 16), (64, 16), (32, 32), (128, 32))


def kernels() -> list[Workload]:
    """Small kernels of every class, and the copy."""
    return [
        *_operations("product {}", product, 1, (512,), (1024,)),
        COPY,
        *_operations("linear {}-{}, batch {batch}", linear, 8, (784, 128)),
        *_operations("linear {}-{}, batch {batch}", linear, 32, (128, 128), (512, 256)),
        *_operations("linear {}-{}, batch {batch}", linear, 128, (1024, 512)),
        *_operations("conv {2}x{2} {0}-{1} at {3}", convolution, 16, *_CONVOLUTIONS),
        *_operations(
            "depthwise 3x3 {0} at {3}",
            convolution,
            16,
            *((width, width, 3, size, width) for width, size in _DEPTHWISE),
        ),
        *_operations("norm and relu {} at {}", normalisation, 16, *_NORMALISATIONS),
    ]


def _operations(
    name: str, make: Callable[..., Call], batch: int, *sizes: tuple[int, ...]
) -> Iterator[Workload]:
    """A workload for each of the sizes, which fill in the name."""
    for each in sizes:
        yield Workload(name.format(*each, batch=batch), Operation(make, each), batch)


_CIFAR = (3, 32, 32)
# Networks, their use, and the batch sizes of their steps: for most of them a small one, where the time that
# does not grow with the batch shows, and a common one.
_NETWORKS = (
    (Network("mlp", (1, 8, 8), {"hidden": [64, 64]}), FIT, (8,)),
    (Network("mlp", (1, 28, 28), {"hidden": [200, 200]}), FIT, (32,)),
    (Network("cnn2", _CIFAR), FIT, (4, 32)),
    (Network("resnet18", _CIFAR), FIT, (2, 8)),
    (Network("mobilenet-v2", _CIFAR), HELD_OUT, (4, 16)),
    (Network("spherefed-convnet", _CIFAR), HELD_OUT, (8, 32)),
)


def steps(batches: Sequence[int] = ()) -> list[list[Workload]]:
    """Training steps, a list for each network.

    Args:
        batches: the batch sizes; each network's own where there are none.
    """
    return [
        [
            Workload(
                f"{network.model} at {network.shape[-1]}, batch {batch}", TrainingStep(network), batch, use
            )
            for batch in batches or own
        ]
        for network, use, own in _NETWORKS
    ]


def inferences(folder: Path) -> list[Workload]:
    """Inference of the fitted networks, of depthwise convolutions and of one held-out network.

    Args:
        folder: for their ONNX files.
    """
    chosen: list[tuple[str, Network | DepthwiseStack, str]] = [
        (network.model, network, use) for network, use, _ in (*_NETWORKS[1:4], _NETWORKS[5])
    ]
    chosen.append(("depthwise stack", DepthwiseStack((64, 32, 32)), FIT))
    return [
        Workload(
            f"{_PREFIX}{name}, batch {batch}", OnnxInference(network, folder / f"{name}.onnx"), batch, use
        )
        for name, network, use in chosen
        for batch in (1, 8)
    ]
