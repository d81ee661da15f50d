"""Methods driven through the protocol in float64, beside which oracles reckon in NumPy."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from builders import arrival, build_method, build_net

from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.scenario import LocalTraining
from edgefl.protocol import Batch, Ctx, Exchange, Method, Net, Tree, tree_map

CLASSES, WIDTH, PIXELS, RATE = 4, 6, 12, 0.3
NET = build_net("mlp", (1, 3, 4), CLASSES, hidden=(WIDTH,))
CLOSE = {"rtol": 1e-8, "atol": 1e-8}
"""For ``numpy.testing.assert_allclose``."""


def wide(tree: Tree) -> Tree:
    """The tree in float64."""
    return tree_map(lambda leaf: leaf.double(), tree)


def data(size: int, seed: int, classes: Sequence[int] = range(CLASSES)) -> Batch:
    """Random samples whose labels are of these classes."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(size, 1, 3, 4, generator=generator, dtype=torch.float64)
    return Batch(x, torch.tensor(list(classes))[torch.randint(len(classes), (size,), generator=generator)])


@dataclass
class Exact:
    """A server and clients in float64, each with batches of its own, which every phase goes through once."""

    name: str
    clients: Sequence[Sequence[Batch]]
    settings: dict[str, Any] = field(default_factory=dict)
    net: Net = NET
    local: LocalTraining = LocalTraining(optimizer=Sgd(lr=RATE))  # noqa: RUF009 - frozen
    initial: Tree = None

    def __post_init__(self) -> None:
        self.method: Method = build_method(
            self.name, self.net, self.local, len(self.clients), **self.settings
        )
        self.initial = self.initial or wide(self.net.init(0))
        self.server = self.method.server(self.initial)
        self.states = [self.method.client(self.initial) for _ in self.clients]
        self.payload: Tree = None
        self.uploads: list[Tree] = []

    def exchange(self, name: str) -> Exchange:
        """One of the method's exchanges."""
        return next(one for one in self.method.exchanges if one.name == name)

    def ctx(self, client: int) -> Ctx:
        """A client has as many samples as its batches have."""
        batches = self.clients[client]
        samples = sum(len(one.y) for one in batches)
        counts = torch.zeros(self.net.classes, dtype=torch.float64)
        return Ctx(client, 0, self.local.optimizer.lr, len(batches), samples, counts)

    def work(self, exchange: Exchange, client: int) -> tuple[Tree, Tree | None]:
        """A client's upload and new state."""
        self.payload = exchange.down(self.server, client)
        carry = exchange.work.start(self.payload, self.states[client], self.ctx(client))
        for phase in exchange.work.phases:
            for batch in self.clients[client]:
                carry = phase.step(carry, batch)
        return exchange.work.finished(carry, self.ctx(client), self.states[client])

    def do(self, name: str, cohort: Sequence[int] = ()) -> "Exact":
        """An exchange with some clients, or with all."""
        exchange, self.uploads, sent = self.exchange(name), [], []
        for client in cohort or range(len(self.clients)):
            upload, state = self.work(exchange, client)
            self.states[client] = self.states[client] if state is None else state
            self.uploads.append(upload)
            sent.append(arrival(upload, self.ctx(client), self.payload))
        with torch.no_grad():
            self.server = exchange.merge(self.server, sent)
        return self


def arrays(weights: Tree) -> dict[str, np.ndarray]:
    """A model's tensors as arrays: "w" and "b" of the hidden layer, "head" and, if there is one, "bias"."""
    found = {"w": weights["body"]["fc1.weight"], "b": weights["body"]["fc1.bias"]}
    if "head" in weights:
        found |= {"head": weights["head"]["weight"]}
        found |= {"bias": weights["head"]["bias"]} if "bias" in weights["head"] else {}
    return {key: leaf.numpy().copy() for key, leaf in found.items()}


def pixels(batch: Batch) -> np.ndarray:
    """A batch's samples, flat."""
    return batch.x.flatten(1).numpy()


def hidden(model: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """The features (B, l) of samples (B, pixels)."""
    return np.maximum(x @ model["w"].T + model["b"], 0)


def logits(model: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """The logits (B, C) of samples (B, pixels)."""
    return hidden(model, x) @ model["head"].T + model["bias"]


def unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1."""
    return rows / np.sqrt((rows**2).sum(axis=1, keepdims=True))


def hot(labels: torch.Tensor, classes: int = CLASSES) -> np.ndarray:
    """Labels as rows of zeros and a one."""
    return np.eye(classes)[labels.numpy()]
