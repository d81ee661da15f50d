"""Rounds of a method in float64 with clients of unequal lengths, and the same clients in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from builders import build_method, build_net
from complex_step import Arrays, cross_entropy, gradient, relu

from edgefl.compute.threads import one_thread
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.training import LocalTraining
from edgefl.protocol import Arrival, Batch, Ctx, Exchange, Fold, Net, Tree, flatten, tree_map

CLASSES, PIXELS, SIZE, RATE = 3, 6, 4, 0.2
# Of each of N clients: samples, and with them steps.
SAMPLES = (5, 14, 4, 10)
N = len(SAMPLES)
# Who takes part in each of the rounds.
COHORTS = ((0, 1, 2), (0, 3), (1, 2, 3))
NAMES = ("body/fc1.weight", "body/fc1.bias", "head/weight", "head/bias")


def float64_net() -> Net:
    """A fully connected net of 4 features on 6 pixels."""
    return build_net("mlp", (1, 2, 3), CLASSES, hidden=(4,))


def exact(weights: Tree) -> Tree:
    """The weights in float64."""
    return tree_map(lambda leaf: leaf.double(), weights)


def initial() -> Arrays:
    """The net's first weights, by name."""
    return arrays(exact(float64_net().init(0)))


def arrays(tree: Tree) -> Arrays:
    """A tree's tensors, by name."""
    return {name: leaf.numpy() for name, leaf in flatten(tree).items()}


def data(client: int) -> tuple[Any, Any]:
    """All samples of a client."""
    random = np.random.default_rng(client)
    return random.normal(size=(SAMPLES[client], PIXELS)), random.integers(CLASSES, size=SAMPLES[client])


def batches(client: int) -> list[tuple[Any, Any]]:
    """A pass over a client's samples; one left over joins the batch before it."""
    x, y = data(client)
    cuts = range(SIZE, len(y) - 1, SIZE)
    return list(zip(np.split(x, cuts), np.split(y, cuts), strict=True))


def loss(w: Arrays, batch: tuple[Any, Any], temperature: float = 1.0) -> Any:
    """Cross-entropy of the net; written out here."""
    x, y = batch
    features = relu(x @ w["body/fc1.weight"].T + w["body/fc1.bias"])
    return cross_entropy((features @ w["head/weight"].T + w["head/bias"]) / temperature, y)


def descended(
    start: Arrays,
    client: int,
    shift: Arrays | None = None,
    *,
    objective: Callable[[Arrays, Any], Any] = loss,
    momentum: float = 0.0,
    nesterov: bool = False,
) -> Arrays:
    """A client's weights after a step on each of its batches, ``shift`` added to every gradient."""
    w, speed = dict(start), {name: np.zeros_like(value) for name, value in start.items()}
    for batch in batches(client):
        slopes = gradient(lambda at, batch=batch: objective(at, batch), w)
        for name, slope in slopes.items():
            full = slope + (0 if shift is None else shift[name])
            speed[name] = momentum * speed[name] + full
            w[name] = w[name] - RATE * (full + momentum * speed[name] if nesterov else speed[name])
    return w


def mean(trees: Sequence[Arrays], weights: Sequence[float] | None = None) -> Arrays:
    """The mean of arrays by name."""
    return {name: np.average([tree[name] for tree in trees], axis=0, weights=weights) for name in trees[0]}


def zero() -> Arrays:
    """Zeros like the weights."""
    return {name: np.zeros_like(value) for name, value in initial().items()}


class Rounds:
    """A method's server and clients."""

    def __init__(self, name: str, *, momentum: float = 0.0, nesterov: bool = False, **settings: Any) -> None:
        local = LocalTraining(batch_size=SIZE, optimizer=Sgd(lr=RATE, momentum=momentum, nesterov=nesterov))
        self.method = build_method(name, float64_net(), local, N, **settings)
        weights = exact(float64_net().init(0))
        self.server = self.method.server(weights)
        self.states = [self.method.client(weights) for _ in SAMPLES]
        self.uploads: dict[int, Tree] = {}

    @property
    def exchange(self) -> Exchange:
        """The one that trains."""
        return next(one for one in self.method.exchanges if one.name == "train")

    def round(self, cohort: Sequence[int], number: int = 0) -> Rounds:
        """Some clients work, and the server merges."""
        arrivals = []
        for client in cohort:
            payload = self.exchange.down(self.server, client)
            upload, state = self.work(client, payload, number)
            self.uploads[client] = upload
            self.states[client] = self.states[client] if state is None else state
            ctx = self.ctx(client, number)
            arrivals.append(Arrival(upload, payload, ctx, 0, float(SAMPLES[client])))
        self.server = self.exchange.merge(self.server, arrivals)
        return self

    def ctx(self, client: int, number: int = 0) -> Ctx:
        """What the server knows about a job: its steps are those of training."""
        steps = len(batches(client))
        return Ctx(client, number, RATE, steps, SAMPLES[client], torch.ones(CLASSES))

    def work(self, client: int, payload: Tree, number: int = 0) -> tuple[Tree, Tree | None]:
        """A client's upload and state."""
        fold: Fold = self.exchange.work
        with one_thread():
            carry = fold.start(payload, self.states[client], self.ctx(client, number))
            for phase in fold.phases:
                # Every phase goes over the same data, once.
                for x, y in batches(client):
                    batch = Batch(torch.from_numpy(x).view(-1, 1, 2, 3), torch.from_numpy(y))
                    carry = phase.step(carry, batch)
            return fold.finished(carry, self.ctx(client, number), self.states[client])

    def global_model(self) -> Arrays:
        """The weights that the server has."""
        assert self.method.global_model is not None
        return {name: arrays(self.method.global_model(self.server).weights)[name] for name in NAMES}


def check(found: Arrays, expected: Arrays) -> None:
    """Agreement to 1e-8 of everything expected."""
    assert expected
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-8, atol=1e-10, err_msg=name)
