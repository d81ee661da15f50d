"""The workloads, and the file of tensors that every contender reads."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FILE = "EDGEFL_BENCHMARK_TENSORS"
"""The environment variable with the file's path, which actors and worker processes inherit."""

CLASSES = 10
MEAN, STD = 0.5, 0.25
_TEST = 100
_SEED = 2026


@dataclass(frozen=True)
class Workload:
    """What every contender trains.

    Attributes:
        name: W1, W2, W3 or GPU.
        title: for people.
        model: a name in ``models.MODELS``; edgefl has one of the same name.
        params: edgefl's parameters of that model.
        shape: one image's (channels, height, width).
        clients: their number.
        samples: of each client.
        cohort: clients in each round.
        epochs: passes over a client's data, shuffled each time.
        batch_size: samples in a batch.
        lr: of plain SGD.
        rounds: counted in one repeat.
        warm_up: rounds before those; the end of the first is the end of the start-up.
    """

    name: str
    title: str
    model: str
    params: dict[str, Any]
    shape: tuple[int, int, int]
    clients: int
    samples: int
    cohort: int
    epochs: int
    batch_size: int
    lr: float
    rounds: int
    warm_up: int

    def batch_sizes(self) -> list[int]:
        """The batches of one epoch, as in edgefl: a remainder of one sample joins the batch before it."""
        full, rest = divmod(self.samples, self.batch_size)
        sizes = [self.batch_size] * full
        if rest == 1 and sizes:
            sizes[-1] += 1
        elif rest:
            sizes.append(rest)
        return sizes

    def steps(self, rounds: int) -> int:
        """Optimiser steps of all clients in ``rounds`` rounds."""
        return rounds * self.cohort * self.epochs * len(self.batch_sizes())


WORKLOADS = {
    one.name: one
    for one in (
        Workload(
            "W1", "CIFAR CNN, 100 clients x 500, 10 a round, 1 epoch, batch 32",
            "cnn2", {}, (3, 32, 32), 100, 500, 10, 1, 32, 0.05, rounds=6, warm_up=2,
        ),
        Workload(
            "W2", "MLP 64-64-10, 100 clients x 18, 50 a round, 5 epochs, batch 6",
            "mlp", {"hidden": [64]}, (1, 8, 8), 100, 18, 50, 5, 6, 0.05, rounds=10, warm_up=2,
        ),
        Workload(
            "W3", "ResNet-18 with group norm, 10 clients x 64, all a round, 1 epoch, batch 32",
            "resnet18", {"norm": "group"}, (3, 32, 32), 10, 64, 10, 1, 32, 0.01, rounds=2, warm_up=1,
        ),
        Workload(
            "GPU", "W1 with all 100 clients a round, on a CUDA device",
            "cnn2", {}, (3, 32, 32), 100, 500, 100, 1, 32, 0.05, rounds=6, warm_up=2,
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Tensors:
    """A workload's data.

    Attributes:
        workload: whose they are.
        x: (N, C, H, W) uint8.
        y: (N,) int64.
        parts: (clients, samples) indices into both.
        test_x: (M, C, H, W) uint8; edgefl's evaluation after the last round, which no figure includes.
        test_y: (M,) int64.
    """

    workload: Workload
    x: NDArray[np.uint8]
    y: NDArray[np.int64]
    parts: NDArray[np.int64]
    test_x: NDArray[np.uint8]
    test_y: NDArray[np.int64]


def write(workload: Workload, path: Path) -> None:
    """Generates a workload's tensors: one pattern for each class under noise, so that losses fall."""
    rng = np.random.default_rng(_SEED)
    patterns = rng.integers(0, 256, (CLASSES, *workload.shape), dtype=np.uint8)
    total = workload.clients * workload.samples
    x = np.empty((total + _TEST, *workload.shape), dtype=np.uint8)
    y = rng.integers(0, CLASSES, len(x))
    for start in range(0, len(x), 1000):
        part = slice(start, start + 1000)
        noise = rng.integers(0, 256, x[part].shape, dtype=np.uint8)
        x[part] = noise // 4 * 3 + patterns[y[part]] // 4
    parts = rng.permutation(total).reshape(workload.clients, workload.samples)
    settings = np.array(json.dumps(asdict(workload)))
    np.savez(
        path, settings=settings, x=x[:total], y=y[:total], parts=parts, test_x=x[total:], test_y=y[total:]
    )


def read_workload() -> Workload:
    """The workload of the file named in the environment, without its tensors."""
    with np.load(os.environ[FILE]) as found:
        settings = json.loads(str(found["settings"]))
    return Workload(**{**settings, "shape": tuple(settings["shape"])})


def read() -> Tensors:
    """The tensors in the file named in the environment."""
    with np.load(os.environ[FILE]) as found:
        arrays = {name: found[name] for name in ("x", "y", "parts", "test_x", "test_y")}
    return Tensors(read_workload(), **arrays)
