"""What is timed: kernels of each class, and training steps and inference of networks, from small to large.

The fit uses the kernels, FedAvg's steps of three networks, and passes of narrow networks that are nearly all
overhead: their steps have one backward pass each however deep they are, and their forward passes none, which
tells the overhead of a kernel from that of a backward pass. Two networks of other kinds are held out, one
with depthwise convolutions and one with group normalisation, and so are the steps of all other methods:
nothing is ever fitted to them.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from edgefl.calibrate.workloads import (
    FIT,
    HELD_OUT,
    INFERENCE,
    Call,
    DepthwiseStack,
    ForwardPass,
    MethodStep,
    Network,
    OnnxInference,
    Operation,
    Workload,
    convolution,
    copy,
    linear,
    normalisation,
    product,
)

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


def steps() -> list[list[Workload]]:
    """Training steps, a list for each network."""
    return [
        [Workload(f"{network.title}, batch {batch}", MethodStep(network), batch, use) for batch in batches]
        for network, use, batches in _NETWORKS
    ]


_NARROW = [
    Network("mlp", (1, 8, 8), {"hidden": [width] * depth}, f"mlp {depth} x {width}")
    for width, depth in ((16, 1), (16, 4), (16, 10), (64, 1), (64, 8))
]


def overheads() -> list[Workload]:
    """Steps and forward passes of networks so narrow that overheads are nearly all of their time."""
    return [
        *(Workload(f"{one.title}, batch 16", MethodStep(one), 16) for one in _NARROW),
        *(Workload(f"{one.title}, batch 16, forward", ForwardPass(one), 16) for one in _NARROW),
    ]


# For their powers: one core is busy with overheads.
ONE_CORE = Workload("one core busy", MethodStep(_NARROW[-1]), 16)
ALL_THREADS = Workload("all threads busy", MethodStep(Network("resnet18", _CIFAR)), 32)
_COMPARED = ((Network("mlp", (1, 8, 8), {"hidden": [64]}, "mlp 64"), 16), (Network("cnn2", _CIFAR), 16))


def methods() -> list[Workload]:
    """A step of every exchange of several methods, on a network that is nearly all overhead and on another.

    FedAvg's, the first of each network, are fitted to; the others are held out.
    """
    return [
        Workload(
            f"{network.title}, batch {batch}, {step.title}",
            step,
            batch,
            FIT if step.method == "fedavg" else HELD_OUT,
        )
        for network, batch in _COMPARED
        for step in (
            MethodStep(network),
            MethodStep(network, "fedprox"),
            MethodStep(network, "fedclassavg"),
            MethodStep(network, "spherefed"),
            MethodStep(network, "spherefed", "calibrate"),
        )
    ]


def inferences(folder: Path) -> list[Workload]:
    """Inference of the fitted networks, of depthwise convolutions and of one held-out network.

    The folder is for their ONNX files.
    """
    chosen: list[tuple[str, Network | DepthwiseStack, str]] = [
        (network.model, network, use) for network, use, _ in (*_NETWORKS[1:4], _NETWORKS[5])
    ]
    chosen.append(("depthwise stack", DepthwiseStack((64, 32, 32)), FIT))
    return [
        Workload(
            f"{INFERENCE}{name}, batch {batch}", OnnxInference(network, folder / f"{name}.onnx"), batch, use
        )
        for name, network, use in chosen
        for batch in (1, 8)
    ]
