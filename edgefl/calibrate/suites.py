"""Which workloads a calibration has: sizes that networks for small devices have, from small to large.

The fit sees the kernels and three networks. What starting a kernel takes shows in the steps of the smallest
of them: in training Python and autograd stand around every kernel, which no kernel timed alone has. Two
networks of other kinds are held out: one of depthwise convolutions, one of plain ones with group
normalisation. Nothing is ever fitted to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from edgefl.calibrate.workloads import FIT, HELD_OUT, INFERENCE, STEP, Workload

COPY = "copy"
PRODUCT = "product"

# Model, parameters, image, use, and the batch sizes of its steps: of most a small one, where what does not
# grow with the batch is much of the time, and a common one.
_NETWORKS: tuple[tuple[str, Mapping[str, Any], tuple[int, int, int], str, tuple[int, ...]], ...] = (
    ("mlp", {"hidden": [64, 64]}, (1, 8, 8), FIT, (8,)),
    ("mlp", {"hidden": [200, 200]}, (1, 28, 28), FIT, (32,)),
    ("cnn2", {}, (3, 32, 32), FIT, (4, 32)),
    ("resnet18", {}, (3, 32, 32), FIT, (2, 8)),
    ("mobilenet-v2", {}, (3, 32, 32), HELD_OUT, (4, 16)),
    ("spherefed-convnet", {}, (3, 32, 32), HELD_OUT, (8, 32)),
)

_INFERRED = ("mlp", "cnn2", "resnet18", "spherefed-convnet")
_STACK = "depthwise stack"


def kernels() -> list[Workload]:
    """Small kernels of every class."""
    found = [Workload(f"product {side}", PRODUCT, {"side": side}) for side in (512, 1024)]
    found.append(Workload("copy 256 MB", COPY, {"bytes": 256_000_000}))
    found += [_linear(*sizes) for sizes in ((8, 784, 128), (32, 128, 128), (32, 512, 256), (128, 1024, 512))]
    found += [_convolution(*sizes) for sizes in _CONVOLUTIONS]
    found += [_depthwise(*sizes) for sizes in ((16, 32), (32, 32), (64, 16), (128, 16), (256, 8))]
    found += [_normalise(*sizes) for sizes in ((16, 8), (32, 16), (64, 16), (32, 32), (128, 32))]
    return found


# Inputs, outputs, kernel, image.
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


def _linear(batch: int, inputs: int, outputs: int) -> Workload:
    sizes = {"inputs": inputs, "outputs": outputs}
    return Workload(f"linear {inputs}-{outputs}, batch {batch}", "linear", sizes, batch)


def _convolution(inputs: int, outputs: int, kernel: int, size: int) -> Workload:
    sizes = {"inputs": inputs, "outputs": outputs, "kernel": kernel, "size": size}
    return Workload(f"conv {kernel}x{kernel} {inputs}-{outputs} at {size}", "convolution", sizes, 16)


def _depthwise(channels: int, size: int) -> Workload:
    sizes = {"inputs": channels, "outputs": channels, "kernel": 3, "size": size, "groups": channels}
    return Workload(f"depthwise 3x3 {channels} at {size}", "convolution", sizes, 16)


def _normalise(channels: int, size: int) -> Workload:
    return Workload(
        f"norm and relu {channels} at {size}", "normalise", {"channels": channels, "size": size}, 16
    )


def steps() -> list[list[Workload]]:
    """Training steps, in groups of one network each."""
    return [[_network(*one[:4], batch) for batch in one[4]] for one in _NETWORKS]


def curve(batches: Sequence[int]) -> list[list[Workload]]:
    """Training steps of every network, each at several batch sizes."""
    return [[_network(*one[:4], batch) for batch in batches] for one in _NETWORKS]


def inference(folder: Path) -> list[Workload]:
    """Inference of the fitted networks, of depthwise convolutions and of one held-out network.

    Args:
        folder: where their ONNX files will lie.
    """
    nets = {one.settings["model"]: one for group in steps() for one in group}
    chosen = [(name, dict(nets[name].settings), nets[name].use) for name in _INFERRED]
    chosen.append((_STACK, {"shape": [64, 32, 32]}, FIT))
    return [
        Workload(
            f"{name}, batch {batch}", INFERENCE, {**one, "file": str(folder / f"{name}.onnx")}, batch, use
        )
        for name, one, use in chosen
        for batch in (1, 8)
    ]


def _network(
    model: str, params: Mapping[str, Any], shape: tuple[int, int, int], use: str, batch: int
) -> Workload:
    settings = {"model": model, "params": dict(params), "shape": list(shape)}
    return Workload(f"{model} at {shape[-1]}, batch {batch}", STEP, settings, batch, use)
