"""Methods that keep parts with clients, over two rounds against worked values in NumPy, in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from builders import NETS, Federation, arrival, build_method, build_net
from numpy.typing import NDArray

from edgefl.compute import meta
from edgefl.compute.threads import one_thread
from edgefl.core.cost import Trace
from edgefl.core.errors import UserError
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.params import Component
from edgefl.core.training import LocalTraining
from edgefl.protocol import BUFFERS, Batch, Ctx, Exchange, Method, Net, Tree, flatten, tree_map

CLASSES, PIXELS, WIDTH = 5, 12, 8
RATE, MOMENTUM = 0.3, 0.9
LOCAL = LocalTraining(optimizer=Sgd(lr=RATE, momentum=MOMENTUM))
SAMPLES = (16, 32, 48)
ROUNDS = 2

Values = dict[str, NDArray[np.float64]]
Pull = Callable[[str, NDArray[np.float64]], NDArray[np.float64]]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """As engines work."""
    with one_thread():
        yield


@pytest.fixture(scope="module")
def net() -> Net:
    """A fully connected net of 8 features on 12 pixels."""
    return build_net("mlp", (1, 3, 4), CLASSES, hidden=(WIDTH,))


# The worked values: a net of one hidden layer, its gradient by the chain rule, SGD with momentum.


def batches(client: int, round_: int, phase: str, count: int = 3) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """A client's samples in a phase of a round, by batch."""
    random = np.random.default_rng([client, round_, *phase.encode()])
    return [(random.normal(size=(6, PIXELS)), random.integers(CLASSES, size=6)) for _ in range(count)]


def gradient(w: Values, x: NDArray[Any], y: NDArray[Any]) -> Values:
    """Of the mean cross-entropy."""
    hidden = x @ w["body/fc1.weight"].T + w["body/fc1.bias"]
    features = np.maximum(hidden, 0)
    z = features @ w["head/weight"].T + w["head/bias"]
    shares = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    dz = (shares - np.eye(CLASSES)[y]) / len(y)
    dh = dz @ w["head/weight"] * (hidden > 0)
    return {
        "body/fc1.weight": dh.T @ x,
        "body/fc1.bias": dh.sum(axis=0),
        "head/weight": dz.T @ features,
        "head/bias": dz.sum(axis=0),
    }


def descended(
    w: Values, data: Sequence[tuple[NDArray[Any], NDArray[Any]]], *parts: str, pull: Pull | None = None
) -> Values:
    """The weights after a step on each batch; momentum begins at 0, and the other parts stay."""
    w, speed = dict(w), {key: np.zeros_like(value) for key, value in w.items()}
    for x, y in data:
        found = gradient(w, x, y)
        for key in w:
            if key.split("/")[0] in parts:
                speed[key] = MOMENTUM * speed[key] + found[key] + (pull(key, w[key]) if pull else 0)
        w = {key: value - RATE * speed[key] for key, value in w.items()}
    return w


def mean(clients: Sequence[Values], part: str) -> Values:
    """A part's mean over clients, by samples."""
    return {
        key: sum(n * one[key] for n, one in zip(SAMPLES, clients, strict=True)) / sum(SAMPLES)
        for key in clients[0]
        if key.startswith(part)
    }


# The methods, driven through the protocol.


def exact(weights: Tree) -> Tree:
    return tree_map(lambda leaf: leaf.double(), weights)


def initial(net: Net) -> Values:
    return {key: leaf.numpy() for key, leaf in flatten(exact(net.init(0))).items()}


class Driven:
    """A server and three clients in float64."""

    def __init__(self, method: Method, net: Net) -> None:
        self.method = method
        weights = exact(net.init(0))
        self.server = method.server(weights)
        self.states = [method.client(weights) for _ in SAMPLES]

    def does(self, name: str, round_: int) -> Driven:
        """One exchange with all clients."""
        exchange: Exchange = next(one for one in self.method.exchanges if one.name == name)
        arrivals = []
        for client, samples in enumerate(SAMPLES):
            ctx = Ctx(client, round_, RATE, 6, samples, torch.ones(CLASSES))
            payload = exchange.down(self.server, client)
            carry = exchange.work.start(payload, self.states[client], ctx)
            for phase in exchange.work.phases:
                for x, y in batches(client, round_, phase.name):
                    carry = phase.step(
                        carry, Batch(torch.from_numpy(x).view(-1, 1, 3, 4), torch.from_numpy(y))
                    )
            upload, state = exchange.work.finished(carry, ctx, self.states[client])
            self.states[client] = self.states[client] if state is None else state
            arrivals.append(arrival(upload, ctx, payload))
        self.server = exchange.merge(self.server, arrivals)
        return self

    def personal(self, client: int) -> Values:
        """The weights of a client's own model."""
        found = self.method.personal_model(self.server, self.states[client]).weights
        return {key: leaf.numpy() for key, leaf in flatten(found).items()}

    def global_model(self) -> Values:
        """The weights of the global model."""
        assert self.method.global_model is not None
        found = self.method.global_model(self.server).weights
        return {key: leaf.numpy() for key, leaf in flatten(found).items()}


def agree(found: Mapping[str, NDArray[Any]], expected: Values) -> None:
    assert found.keys() >= expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-8, atol=1e-8, err_msg=key)


@pytest.mark.parametrize(
    ("name", "shared", "kept"), [("lg_fedavg", "head", "body"), ("fedper", "body", "head")]
)
def test_one_part_is_averaged_and_the_other_stays(net: Net, name: str, shared: str, kept: str):
    """LG-FedAvg averages the head, FedPer the body; all is trained at once, the rest where it was left."""
    driven, start = Driven(build_method(name, net, LOCAL), net), initial(net)
    clients = [start] * 3
    for round_ in range(ROUNDS):
        driven.does("train", round_)
        clients = [
            descended(one, batches(client, round_, "train"), "body", "head")
            for client, one in enumerate(clients)
        ]
        clients = [{**one, **mean(clients, shared)} for one in clients]
    for client, expected in enumerate(clients):
        agree(driven.personal(client), expected)
    assert set(driven.server) - {"buffers"} == {shared}
    assert set(driven.states[0]) - {"buffers"} == {kept}
    assert driven.method.global_model is None


def test_fedrep_trains_the_head_and_then_the_body(net: Net):
    """Head steps at a fixed body, then body steps at the new head, momentum anew; the body is averaged."""
    driven, clients = Driven(build_method("fedrep", net, LOCAL), net), [initial(net)] * 3
    for round_ in range(ROUNDS):
        driven.does("train", round_)
        clients = [
            descended(
                descended(one, batches(client, round_, "head"), "head"),
                batches(client, round_, "body"),
                "body",
            )
            for client, one in enumerate(clients)
        ]
        clients = [{**one, **mean(clients, "body")} for one in clients]
    for client, expected in enumerate(clients):
        agree(driven.personal(client), expected)


def test_ditto_has_a_model_beside_fedavgs(net: Net):
    """V moves by the gradient at v plus lambda (v - w), w as received; w is FedAvg's."""
    strength = 0.7
    driven = Driven(build_method("ditto", net, LOCAL, lam=strength), net)
    shared, own = initial(net), [initial(net)] * 3
    for round_ in range(ROUNDS):
        driven.does("train", round_)
        own = [
            descended(
                one,
                batches(client, round_, "personal"),
                "body",
                "head",
                pull=lambda key, v, w=shared: strength * (v - w[key]),
            )
            for client, one in enumerate(own)
        ]
        trained = [descended(shared, batches(client, round_, "train"), "body", "head") for client in range(3)]
        shared = {**mean(trained, "body"), **mean(trained, "head")}
    agree(driven.global_model(), shared)
    for client, expected in enumerate(own):
        agree(driven.personal(client), expected)


@pytest.mark.parametrize("tuned", ["head", "body", "all"])
def test_fedbabu_never_trains_the_head_until_the_end(net: Net, tuned: str):
    """The body is FedAvg's at a fixed random head; then each client trains some parts on its own."""
    driven = Driven(build_method("fedbabu", net, LOCAL, fine_tune=2, parts=tuned), net)
    start = initial(net)
    shared = start
    driven.does("announce", -1)
    for round_ in range(ROUNDS):
        driven.does("train", round_)
        trained = [descended(shared, batches(client, round_, "train"), "body") for client in range(3)]
        shared = {**shared, **mean(trained, "body")}
    agree(driven.global_model(), shared)
    for client in range(3):
        # Before it is fine-tuned, a client's own model is the global one.
        agree(driven.personal(client), shared)
    driven.does("fine-tune", ROUNDS)
    parts = ("body", "head") if tuned == "all" else (tuned,)
    for client in range(3):
        agree(driven.personal(client), descended(shared, batches(client, ROUNDS, "fine-tune"), *parts))
    # The initial accuracy is the global model's.
    agree(driven.global_model(), shared)
    assert np.array_equal(driven.global_model()["head/bias"], start["head/bias"])


# What they cost, and what they are refused for.


def traced(name: str, net: Net, exchange: str = "train", **settings: Any) -> Trace:
    """The trace of an exchange, a step of 6 samples in each phase."""
    method = build_method(name, net, LOCAL, **settings)
    found = next(one for one in method.exchanges if one.name == exchange)
    return meta.trace(method, found, net, [[{6: 1}] * len(found.work.phases)])


def test_only_what_is_shared_travels(net: Net):
    """Each way: the head under LG-FedAvg, the body under FedPer, FedRep and FedBABU, both under Ditto."""
    body, head = 4 * (PIXELS * WIDTH + WIDTH), 4 * (WIDTH * CLASSES + CLASSES)
    sent = {
        "lg_fedavg": {"head": head},
        "fedper": {"body": body, "buffers": 0},
        "fedrep": {"body": body, "buffers": 0},
        "ditto": {"body": body, "head": head, "buffers": 0},
        "fedbabu": {"body": body, "buffers": 0},
    }
    for name, expected in sent.items():
        found = traced(name, net)
        assert found.down == found.up == expected, name
    announced, tuned = (traced("fedbabu", net, one) for one in ("announce", "fine-tune"))
    assert (announced.down, announced.up) == ({"head": head}, {})
    assert (tuned.down, tuned.up) == ({"body": body, "buffers": 0}, {})


@pytest.mark.parametrize("name", ["fedrep", "fedbabu"])
def test_a_part_must_be_there_to_be_trained_alone(name: str):
    """Softmax regression has no body."""
    bare = build_net("mlp", (1, 3, 4), CLASSES, hidden=())
    with pytest.raises(UserError, match=f"{name} trains the body by itself, and mlp has none"):
        build_method(name, bare)


@pytest.mark.parametrize(
    ("name", "settings", "what"),
    [
        ("ditto", {"base": "fedper"}, "ditto needs a base with a global model of the same parts, and fedper"),
        ("ditto", {"base": "spherefed"}, "ditto needs a base .* and spherefed"),
        ("fedbabu", {"base": "lg_fedavg"}, "fedbabu needs a base that shares the body, and lg-fedavg"),
        ("fedbabu", {"base": "spherefed"}, "fedbabu fixes the head, and spherefed has another"),
        (
            "fedbabu",
            {"base": "fedper", "train_head": True},
            "fedbabu needs a base with a global model, and fedper",
        ),
        ("fedbabu", {"base": "ditto"}, "ditto trains the head, and .* keeps the head fixed"),
        ("fedbabu", {"base": "fedrep"}, "fedrep trains the head, and .* keeps the head fixed"),
    ],
)
def test_parts_that_do_not_fit_are_refused(net: Net, name: str, settings: dict[str, Any], what: str):
    """Before anything runs, and both are named."""
    with pytest.raises(UserError, match=what):
        build_method(name, net, **settings)


@pytest.mark.parametrize("base", ["fedprox", "flexchill", {"name": "moon"}])
@pytest.mark.parametrize("name", ["ditto", "fedbabu"])
def test_the_global_model_is_the_bases(net: Net, name: str, base: Any):
    """Ditto's is the base's bit for bit, and so is FedBABU's body where it trains the head as well."""
    settings = {"train_head": True} if name == "fedbabu" else {}
    ours, theirs = (
        Driven(build_method(name, net, LOCAL, base=base, **settings), net),
        Driven(build_method(Component.model_validate(base).name, net, LOCAL), net),
    )
    for round_ in range(ROUNDS):
        ours.does("train", round_)
        theirs.does("train", round_)
    found = ours.global_model()
    assert all(np.array_equal(found[key], value) for key, value in theirs.global_model().items())


def test_batch_norms_statistics_go_where_the_text_says():
    """FedRep's frozen body moves them in both phases; Ditto's and a fine-tuned model have their own."""
    model, shape, settings = NETS["batch norm"]
    net = build_net(model, shape, 10, **settings)

    def means(tree: Tree) -> torch.Tensor:
        return tree[BUFFERS]["norm1.running_mean"]

    method = build_method("fedrep", net, LOCAL)
    federation, (exchange,) = Federation(method, net), method.exchanges
    carry = exchange.work.start(federation.server, federation.states[0], federation.ctx(0))
    for phase in exchange.work.phases:
        before = means(carry["weights"])
        carry = phase.step(carry, next(federation.batches(phase, 0)))
        assert not torch.equal(means(carry["weights"]), before)
    for name in ("ditto", "fedbabu"):
        method = build_method(name, net, LOCAL)
        done = Federation(method, net).through()
        assert method.global_model is not None
        common = means(method.global_model(done.server).weights)
        own = means(method.personal_model(done.server, done.states[0]).weights)
        assert not torch.equal(own, common)


# Whole runs.
