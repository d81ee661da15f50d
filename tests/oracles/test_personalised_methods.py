"""Methods that keep parts with clients, over two rounds against worked values in NumPy, in float64."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from builders import NETS, Federation, build_method, build_net
from complex_step import cross_entropy, descended
from exact import CLASSES, CLOSE, NET, PIXELS, RATE, WIDTH, Exact, arrays, data, logits, pixels

from edgefl.compute import meta
from edgefl.core.errors import UserError
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.scenario import LocalTraining
from edgefl.protocol import BUFFERS, Batch, Tree

MOMENTUM = 0.9
LOCAL = LocalTraining(optimizer=Sgd(lr=RATE, momentum=MOMENTUM))
CLIENTS = [[data(3 + client, 10 * client + nth) for nth in range(3)] for client in range(3)]
SAMPLES = [sum(len(one.y) for one in batches) for batches in CLIENTS]
PARTS = {"body": ("w", "b"), "head": ("head", "bias")}
ROUNDS = 2

Values = dict[str, np.ndarray]


def trained(model: Values, client: int, *parts: str, term: Callable[[Values], Any] = lambda _: 0) -> Values:
    """The weights after a step on each batch; momentum begins at 0, and the other parts stay."""

    def loss(at: Values, batch: Batch) -> Any:
        return cross_entropy(logits({**model, **at}, pixels(batch)), batch.y.numpy()) + term(at)

    own = {key: model[key] for part in parts for key in PARTS[part]}
    return {**model, **descended(loss, own, CLIENTS[client], RATE, MOMENTUM)}


def mean(clients: Sequence[Values], *parts: str) -> Values:
    """Parts' means over clients, by samples."""
    keys = [key for part in parts for key in PARTS[part]]
    return {key: np.average([one[key] for one in clients], axis=0, weights=SAMPLES) for key in keys}


def begun(name: str, **settings: Any) -> Exact:
    """A method's server and clients."""
    return Exact(name, CLIENTS, settings, local=LOCAL)


def personal(done: Exact, client: int) -> Values:
    """The weights of a client's own model."""
    return arrays(done.method.personal_model(done.server, done.states[client]).weights)


def global_model(done: Exact) -> Values:
    """The weights of the global model."""
    return arrays(done.method.global_model(done.server).weights)


def agree(found: Values, expected: Values) -> None:
    assert found.keys() >= expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, **CLOSE, err_msg=key)


@pytest.mark.parametrize(
    ("name", "shared", "kept"), [("lg_fedavg", "head", "body"), ("fedper", "body", "head")]
)
def test_one_part_is_averaged_and_the_other_stays(name: str, shared: str, kept: str):
    """LG-FedAvg averages the head, FedPer the body; all is trained at once, the rest where it was left."""
    done = begun(name)
    clients = [arrays(done.initial)] * 3
    for _ in range(ROUNDS):
        done.do("train")
        clients = [trained(one, client, "body", "head") for client, one in enumerate(clients)]
        clients = [{**one, **mean(clients, shared)} for one in clients]
    for client, expected in enumerate(clients):
        agree(personal(done, client), expected)
    assert set(done.server) - {"buffers"} == {shared}
    assert set(done.states[0]) - {"buffers"} == {kept}
    assert done.method.global_model is None


def test_fedrep_trains_the_head_and_then_the_body():
    """Head steps at a fixed body, then body steps at the new head, momentum anew; the body is averaged."""
    done = begun("fedrep")
    clients = [arrays(done.initial)] * 3
    for _ in range(ROUNDS):
        done.do("train")
        clients = [
            trained(trained(one, client, "head"), client, "body") for client, one in enumerate(clients)
        ]
        clients = [{**one, **mean(clients, "body")} for one in clients]
    for client, expected in enumerate(clients):
        agree(personal(done, client), expected)


def test_ditto_has_a_model_beside_fedavgs():
    """V moves by the gradient at v plus lambda (v - w), w as received; w is FedAvg's."""
    strength, done = 0.7, begun("ditto", lam=0.7)
    shared = arrays(done.initial)
    own = [shared] * 3
    for _ in range(ROUNDS):
        done.do("train")

        def pull(v: Values, w: Values = shared) -> Any:
            return strength / 2 * sum(((v[key] - w[key]) ** 2).sum() for key in w)

        own = [trained(one, client, "body", "head", term=pull) for client, one in enumerate(own)]
        shared = mean([trained(shared, client, "body", "head") for client in range(3)], "body", "head")
    agree(global_model(done), shared)
    for client, expected in enumerate(own):
        agree(personal(done, client), expected)


@pytest.mark.parametrize("tuned", ["head", "body", "all"])
def test_fedbabu_never_trains_the_head_until_the_end(tuned: str):
    """The body is FedAvg's at a fixed random head; then each client trains some parts on its own."""
    done = begun("fedbabu", fine_tune=2, parts=tuned)
    start = shared = arrays(done.initial)
    done.do("announce")
    for _ in range(ROUNDS):
        done.do("train")
        shared = {**shared, **mean([trained(shared, client, "body") for client in range(3)], "body")}
    agree(global_model(done), shared)
    for client in range(3):
        # Before it is fine-tuned, a client's own model is the global one.
        agree(personal(done, client), shared)
    done.do("fine-tune")
    for client in range(3):
        parts = ("body", "head") if tuned == "all" else (tuned,)
        agree(personal(done, client), trained(shared, client, *parts))
    # The initial accuracy is the global model's.
    agree(global_model(done), shared)
    assert np.array_equal(global_model(done)["bias"], start["bias"])


def test_only_what_is_shared_travels():
    """Each way: the head under LG-FedAvg, the body under FedPer, FedRep and FedBABU, both under Ditto."""

    def traced(name: str, exchange: str = "train"):
        method = build_method(name, NET, LOCAL)
        found = next(one for one in method.exchanges if one.name == exchange)
        trace = meta.trace(method, found, NET, [[{6: 1}] * len(found.work.phases)])
        return trace.down, trace.up

    body = {"body": 4 * (PIXELS * WIDTH + WIDTH), "buffers": 0}
    head = {"head": 4 * (WIDTH * CLASSES + CLASSES)}
    sent = {"lg_fedavg": head, "fedper": body, "fedrep": body, "ditto": {**body, **head}, "fedbabu": body}
    for name, expected in sent.items():
        assert traced(name) == (expected, expected), name
    assert traced("fedbabu", "announce") == (head, {})
    assert traced("fedbabu", "fine-tune") == (body, {})


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
def test_parts_that_do_not_fit_are_refused(name: str, settings: dict[str, Any], what: str):
    """Before anything runs, and both are named."""
    with pytest.raises(UserError, match=what):
        build_method(name, NET, **settings)


@pytest.mark.parametrize(("name", "base"), [("ditto", "moon"), ("fedbabu", "fedprox")])
def test_the_global_model_is_the_bases(name: str, base: str):
    """Ditto's is the base's bit for bit, and so is FedBABU's body where it trains the head as well."""
    ours = begun(name, base=base, **({"train_head": True} if name == "fedbabu" else {}))
    theirs = begun(base)
    for _ in range(ROUNDS):
        ours.do("train"), theirs.do("train")
    found = global_model(ours)
    assert all(np.array_equal(found[key], value) for key, value in global_model(theirs).items())


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
        common = means(method.global_model(done.server).weights)
        own = means(method.personal_model(done.server, done.states[0]).weights)
        assert not torch.equal(own, common)
