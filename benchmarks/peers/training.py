"""A client's work in plain PyTorch, for the bare loop and Flower; pfl uses its batches."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from workloads import MEAN, STD, Tensors, Workload


@dataclass(frozen=True)
class Client:
    """A client's data in the form its model takes.

    Attributes:
        x: (samples, C, H, W) float32.
        y: (samples,) int64.
    """

    x: Tensor
    y: Tensor


def client(tensors: Tensors, number: int) -> Client:
    """A client's images, normalised when its job begins: no contender keeps all clients' images as floats."""
    part = tensors.parts[number]
    x = torch.from_numpy(tensors.x[part]).float().div_(255).sub_(MEAN).div_(STD)
    return Client(x, torch.from_numpy(tensors.y[part]))


def epoch(x: Tensor, y: Tensor, workload: Workload) -> Iterator[tuple[Tensor, Tensor]]:
    """One pass over the samples in a new order."""
    for chosen in torch.randperm(len(y)).split(workload.batch_sizes()):
        yield x[chosen], y[chosen]


def sgd(model: nn.Module, lr: float) -> torch.optim.SGD:
    """Plain SGD in its list form."""
    return torch.optim.SGD(model.parameters(), lr=lr, foreach=True)


def train(model: nn.Module, data: Client, workload: Workload) -> tuple[Tensor, int]:
    """Trains a model on a client's data.

    Returns:
        The sum of the steps' losses, and the number of steps.
    """
    optimizer = sgd(model, workload.lr)
    total, steps = torch.zeros(()), 0
    for _ in range(workload.epochs):
        for x, y in epoch(data.x, data.y, workload):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
            steps += 1
    return total, steps
