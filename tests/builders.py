"""Methods and nets from their names, clients that work by hand, and what a run has learned."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from edgefl.core import catalogue
from edgefl.core.event import JOB, TrainingJob
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.scenario import LocalTraining
from edgefl.protocol import (
    Arrival,
    Batch,
    Ctx,
    Exchange,
    Method,
    Net,
    Phase,
    Site,
    Tree,
    flatten,
    read_tree,
)
from edgefl.runs.results import RunResult
from edgefl.world.needs import Merge

# Small nets: fully connected, convolutional, with batch norm.
NETS = {
    "mlp": ("mlp", (1, 8, 8), {"hidden": (24,)}),
    "cnn": ("cnn2", (1, 16, 16), {"channels": (4, 6), "hidden": 16}),
    "batch norm": ("spherefed_convnet", (3, 8, 8), {"norm": "batch"}),
}
# Two full batches and a short last one, as a client of 16 samples at batch size 6 has them.
SIZES = (6, 6, 4)
STEPS = {6: 2, 4: 1}
MOMENTUM = LocalTraining(optimizer=Sgd(lr=0.1, momentum=0.9))


def site_of(net: Net, local: LocalTraining = MOMENTUM, base: Any = None, clients: int = 3) -> Site:
    """Where a method is built: a few clients, and as many public images as each client takes steps over."""
    generator = torch.Generator().manual_seed(0)
    public = torch.randint(256, (sum(SIZES), *net.shape), dtype=torch.uint8, generator=generator)
    return Site(net, local, base, clients, public)


def build_method(
    name: str, net: Net, local: LocalTraining = MOMENTUM, clients: int = 3, **settings: Any
) -> Method:
    """A method on a net, and below it the base that its parameters name."""
    return _built(catalogue.load("methods", name).Params(**settings), net, local, clients)


def _built(params: Any, net: Net, local: LocalTraining, clients: int) -> Method:
    def base(inner: Net) -> Method:
        return _built(params.base, inner, local, clients)

    return params.build(site_of(net, local, base, clients))


# What models need that cannot do without.
GIVEN = {"module": {"path": "torchvision.models", "make": "shufflenet_v2_x0_5"}}


# Others take seconds where they are exported or counted; by day two stand for them.
BY_DAY = ("mlp", "cnn2", "fedcka-cnn", "spherefed-convnet", "resnet18", "mobilenet-v2")


def build_net(name: str, shape: tuple[int, ...], classes: int = 10, **settings: Any) -> Net:
    """A model for samples of a shape."""
    module = catalogue.load("models", name)
    return module.Params(**GIVEN.get(name, {}), **settings).build(shape, classes)


def learned(run: RunResult) -> dict[str, torch.Tensor]:
    """The tensors of a run's version and state files, by file and key."""
    files = sorted([*(run.folder / "versions").iterdir(), *(run.folder / "states").iterdir()])
    return {
        f"{path.parent.name}/{path.name}/{key}": leaf
        for path in files
        for key, leaf in flatten(read_tree(path)).items()
    }


def same_trees(one: Tree, other: Tree) -> bool:
    """Whether two trees, or two Nones, are equal bit for bit."""
    if one is None or other is None:
        return one is other
    left, right = flatten(one), flatten(other)
    return left.keys() == right.keys() and all(torch.equal(left[key], right[key]) for key in left)


def arrival(upload: Tree, ctx: Ctx, received: Tree | None = None) -> Arrival:
    """An upload that is not stale, weighted by its client's samples."""
    return Arrival(upload, {} if received is None else received, ctx, 0, float(ctx.samples))


@dataclass
class Federation:
    """A server and clients with random data, driven through the public protocol alone."""

    method: Method
    net: Net
    seed: int = 0
    clients: int = 3
    server: Tree = None
    states: dict[int, Tree] = field(default_factory=dict)

    def __post_init__(self) -> None:
        initial = self.net.init(self.seed)
        self.server = self.method.server(initial)
        self.states = {client: self.method.client(initial) for client in range(self.clients)}

    def ctx(self, client: int) -> Ctx:
        """Clients of 16, 32, 48 ... samples."""
        return Ctx(client, 0, 0.1, len(SIZES), 16 * (client + 1), torch.full((self.net.classes,), 1.6))

    def batches(self, phase: Phase, client: int) -> Iterator[Batch]:
        """Random samples, the same for the same seed, client and phase; public ones for every client."""
        public = phase.data == "public"
        generator = torch.Generator().manual_seed(0 if public else 1000 * self.seed + client)
        for place, size in zip(np.cumsum((0, *SIZES)).tolist(), SIZES, strict=False):
            views = (phase.views,) if phase.views > 1 else ()
            x = torch.randn(*views, size, *self.net.shape, generator=generator)
            y = torch.randint(self.net.classes, (size,), generator=generator)
            yield Batch(x, torch.arange(place, place + size) if public else y)

    def work(self, exchange: Exchange, client: int) -> tuple[Tree, Tree]:
        """One job: (payload, upload); commits the client's state."""
        payload, fold = exchange.down(self.server, client), exchange.work
        carry = fold.start(payload, self.states[client], self.ctx(client))
        for phase in fold.phases:
            for batch in self.batches(phase, client):
                carry = phase.step(carry, batch)
        upload, state = fold.finished(carry, self.ctx(client), self.states[client])
        if state is not None:
            self.states[client] = state
        return payload, upload

    def arrivals(self, exchange: Exchange) -> list[Arrival]:
        """Every client's work."""
        found = []
        for client in range(self.clients):
            payload, upload = self.work(exchange, client)
            found.append(arrival(upload, self.ctx(client), payload))
        return found

    def through(self) -> "Federation":
        """Does every exchange once, in order."""
        for exchange in self.method.exchanges:
            self.server = exchange.merge(self.server, self.arrivals(exchange))
        return self


def merge_need(
    jobs: Sequence[TrainingJob], version: int = 1, *, weights=None, live: Sequence[int] = ()
) -> Merge:
    """A merge of jobs that no world made, each in full and unless told otherwise of equal weight."""
    rows = np.zeros(len(jobs), dtype=JOB)
    weights = (1.0,) * len(jobs) if weights is None else weights
    need = Merge(
        plan=None,
        late_rows=rows[:0],
        ready_rows=lambda: rows[:0],
        version=version,
        exchange="train",
        round=0,
        t_s=0.0,
        merged_rows=lambda: rows,
        weights=weights,
        scales=(1.0,) * len(jobs),
        correction="move",
        slowest=-1,
        live_versions=(*live, version),
        regular=True,
    )
    vars(need)["merged"] = tuple(jobs)
    return need
