"""Methods that add a term to the objective, against their papers' formulas in NumPy and float64.

Two clients work in a round, one of them and a new one in the next; every upload and merge is compared.
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from builders import build_method, build_net
from complex_step import Arrays, cross_entropy, descended, length, relu, softmax
from exact import Exact
from nightly import sampled
from torch import nn

from edgefl.core.errors import UserError
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.scenario import LocalTraining
from edgefl.methods.fedalign import lipschitz
from edgefl.protocol import Batch, Ctx, Net, Tree, flatten, tree_map
from edgefl.protocol.modules import functional_net
from edgefl.protocol.similarities import alignment, cosine, gaussian_gram, linear_gram

CLASSES, RATE, MOMENTUM = 3, 0.1, 0.9
LOCAL = LocalTraining(optimizer=Sgd(lr=RATE, momentum=MOMENTUM))
# The clients of each round, and the batches of each client.
ROUNDS = [(0, 1), (0, 2)]
SIZES = (4, 3)


@pytest.fixture(scope="module")
def mlp() -> Net:
    """Two hidden layers on 4 pixels."""
    return build_net("mlp", (1, 2, 2), CLASSES, hidden=(5, 3))


@pytest.fixture(scope="module")
def conv() -> Net:
    """Two convolutions on 4x4 pixels; the second, with a stride of 2, is the last stage."""

    def body() -> nn.Module:
        layers = {"conv1": nn.Conv2d(1, 4, 1), "relu1": nn.ReLU(), "conv2": nn.Conv2d(4, 3, 2, 2)}
        return nn.Sequential(OrderedDict(layers | {"relu2": nn.ReLU(), "flatten": nn.Flatten()}))

    return functional_net(
        "conv",
        body,
        (1, 4, 4),
        CLASSES,
        width=12,
        head_bias=True,
        layers=("relu1", "relu2"),
        stage=("relu1", "conv2", "relu2"),
    )


def begun(net: Net) -> Tree:
    """Initial weights in float64; positive ones and biases in the body, so that no sample's layer is dead."""
    tree = tree_map(torch.Tensor.double, net.init(0))
    return {**tree, "body": {key: leaf.abs() + key.endswith("bias") for key, leaf in tree["body"].items()}}


def batches(net: Net, client: int, at: int) -> list[Batch]:
    generator = torch.Generator().manual_seed(10 * at + client)
    return [
        Batch(
            torch.randn(size, *net.shape, generator=generator, dtype=torch.float64),
            torch.randint(net.classes, (size,), generator=generator),
        )
        for size in (SIZES[0] + client, SIZES[1])
    ]


Loss = Callable[[Arrays, Any, Arrays, Arrays], Any]


def arrays(tree: Tree) -> Arrays:
    return {key: leaf.numpy().astype(float) for key, leaf in flatten(tree).items()}


def assert_agrees(name: str, settings: dict[str, Any], net: Net, loss: Loss) -> None:
    """A method's rounds against descent on loss(weights, (x, y), received weights, previous weights)."""
    done = Exact(name, [()] * 3, settings, net, LOCAL, begun(net))
    server = arrays({part: begun(net)[part] for part in ("body", "head")})
    kept: dict[int, Arrays] = {}
    for at, clients in enumerate(ROUNDS):
        done.clients = [batches(net, client, at) for client in range(3)]
        done.do("train", clients)
        trained = {}
        for client, upload in zip(clients, done.uploads, strict=True):
            given = [(x.numpy(), y.numpy()) for x, y in done.clients[client]]
            objective = partial(loss, received=server, previous=kept.get(client, server))
            trained[client] = descended(objective, server, given, RATE, MOMENTUM)
            close(arrays(upload), trained[client])
        kept |= trained
        sizes = [sum(len(one.y) for one in done.clients[client]) for client in clients]
        server = {
            key: np.average([one[key] for one in trained.values()], axis=0, weights=sizes) for key in server
        }
        close(arrays({part: done.server[part] for part in ("body", "head")}), server)


def close(found: Arrays, expected: Arrays) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-8, err_msg=name)


def activations(w: Arrays, x: Any) -> tuple[Any, Any, Any]:
    """The two hidden layers and the logits."""
    one = relu(x.reshape(len(x), -1) @ w["body/fc1.weight"].T + w["body/fc1.bias"])
    two = relu(one @ w["body/fc2.weight"].T + w["body/fc2.bias"])
    return one, two, two @ w["head/weight"].T + w["head/bias"]


def nearer(good: Any, bad: Any) -> Any:
    return -np.log(np.exp(good) / (np.exp(good) + np.exp(bad)))


def prox(w: Arrays, batch: Any, received: Arrays, previous: Arrays) -> Any:  # noqa: ARG001
    away = sum(((w[name] - received[name]) ** 2).sum() for name in w)
    return cross_entropy(activations(w, batch[0])[2], batch[1]) + 0.7 / 2 * away


def moon(w: Arrays, batch: Any, received: Arrays, previous: Arrays) -> Any:
    x, y = batch
    _, h, z = activations(w, x)
    total = 0
    for i in range(len(y)):
        good, bad = (
            (h[i] * other[i]).sum() / (length(h[i]) * length(other[i])) / 0.3
            for other in (activations(received, x)[1], activations(previous, x)[1])
        )
        total = total + nearer(good, bad)
    return cross_entropy(z, y) + 1.5 * total / len(y)


def linear_cka(a: Any, b: Any) -> Any:
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    return ((b.T @ a) ** 2).sum() / (length(a.T @ a) * length(b.T @ b))


def kernel_cka(a: Any, b: Any) -> Any:
    return linear_cka_of_grams(*map(gaussian, (a, b)))


def gaussian(x: Any) -> Any:
    n = len(x)
    squares = np.array([[((x[i] - x[j]) ** 2).sum() for j in range(n)] for i in range(n)])
    ordered = squares.flatten()[np.argsort(squares.flatten().real, kind="stable")]
    median = (ordered[(n * n - 1) // 2] + ordered[n * n // 2]) / 2
    return np.exp(-squares / (2 * 0.6**2 * median))


def linear_cka_of_grams(k: Any, m: Any) -> Any:
    h = np.eye(len(k)) - 1 / len(k)
    k, m = h @ k @ h, h @ m @ h
    return (k * m).sum() / (length(k) * length(m))


SIMILARITIES = {
    "linear": linear_cka,
    "kernel": kernel_cka,
    "frobenius": lambda a, b: -((a - b) ** 2).sum(),
    "cosine": lambda a, b: (a * b).sum() / (length(a) * length(b)),
}


def cka(
    w: Arrays,
    batch: Any,
    received: Arrays,
    previous: Arrays,
    layers: int = 2,
    s: str = "linear",
) -> Any:
    x, y = batch
    term = 0
    for n in range(layers):
        a, g, v = (activations(each, x)[n] for each in (w, received, previous))
        term = term + nearer(SIMILARITIES[s](a, g), SIMILARITIES[s](a, v))
    return cross_entropy(activations(w, x)[2], y) + 1.2 * term / layers


def divergence(q: Any, p: Any) -> Any:
    return (q * np.log(q / p)).sum()


def ntd(
    w: Arrays,
    batch: Any,
    received: Arrays,
    previous: Arrays,  # noqa: ARG001 - the same for all losses
    mix: float = 1,
    squared: bool = False,  # noqa: FBT001, FBT002
) -> Any:
    x, y = batch
    z, teacher, tau = activations(w, x)[2], activations(received, x)[2], 2.5
    total = 0
    for i in range(len(y)):
        own, other = np.delete(z[i], y[i]), np.delete(teacher[i], y[i])
        if squared:
            total = total + ((own - other) ** 2).sum() / (CLASSES - 1)
            continue
        true_too = divergence(softmax(teacher[i] / tau), softmax(z[i] / tau))
        others = divergence(softmax(other / tau), softmax(own / tau))
        total = total + tau**2 * (mix * others + (1 - mix) * true_too)
    return cross_entropy(z, y) + 0.8 * total / len(y)


def singular(before: Any, after: Any) -> Any:
    """The largest singular value of (D, HW) times (HW, D') over HW, by ten power iterations."""
    matrix = before @ after.T / before.shape[1]
    gram, v = matrix @ matrix.T, np.ones(len(matrix))
    for _ in range(10):
        v = gram @ v
        size = length(v)
        v = v / size
    return np.sqrt(size)


def align(before: Any, after: Any, part: Any, pooled: Callable[[Any], Any], ce: Any) -> Any:
    """0.45 * sg(CE / l) * l; the real part has no derivative."""
    total = 0
    for i in range(len(after)):
        a = pooled(np.real(before[i]))
        whole = singular(a, np.real(after[i]).reshape(len(after[i]), -1))
        own = singular(a[: -(-len(a) // 2)], part[i].reshape(len(part[i]), -1))
        total = total + (own - whole) ** 2
    away = total / len(after)
    return 0.45 * np.real(ce / away) * away


def align_dense(w: Arrays, batch: Any, received: Arrays, previous: Arrays) -> Any:  # noqa: ARG001
    x, y = batch
    one, two, z = activations(w, x)
    # Half of 5 channels is 3, half of 3 is 2.
    part = relu(np.real(one)[:, :3] @ w["body/fc2.weight"][:2, :3].T + w["body/fc2.bias"][:2])
    ce = cross_entropy(z, y)
    return ce + align(one, two, part, lambda a: a.reshape(len(a), 1), ce)


def strided(w: Any, b: Any, x: Any) -> Any:
    """A 2x2 convolution of stride 2."""
    found = np.zeros((len(x), len(w), 2, 2), dtype=complex)
    for i, j in np.ndindex(2, 2):
        window = x[:, :, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
        found[:, :, i, j] = np.einsum("bcij,ocij->bo", window, w) + b
    return found


def align_conv(w: Arrays, batch: Any, received: Arrays, previous: Arrays) -> Any:  # noqa: ARG001
    x, y = batch
    one = relu(
        np.einsum("bcij,oc->boij", x, w["body/conv1.weight"][:, :, 0, 0])
        + w["body/conv1.bias"][:, None, None]
    )
    two = relu(strided(w["body/conv2.weight"], w["body/conv2.bias"], one))
    # Half of 4 channels is 2, half of 3 is 2.
    part = relu(strided(w["body/conv2.weight"][:2, :2], w["body/conv2.bias"][:2], np.real(one)[:, :2]))
    z = two.reshape(len(x), -1) @ w["head/weight"].T + w["head/bias"]

    def pooled(a: Any) -> Any:
        return a.reshape(len(a), 2, 2, 2, 2).mean(axis=(2, 4)).reshape(len(a), -1)

    ce = cross_entropy(z, y)
    return ce + align(one, two, part, pooled, ce)


CASES: dict[str, tuple[str, dict[str, Any], Loss]] = {
    "fedprox": ("fedprox", {"mu": 0.7}, prox),
    "moon": ("moon", {"mu": 1.5, "tau": 0.3}, moon),
    "fedcka": ("fedcka", {"mu": 1.2}, cka),
    "fedcka, one layer": ("fedcka", {"mu": 1.2, "layers": 1}, partial(cka, layers=1)),
    "fedcka, the logits too": ("fedcka", {"mu": 1.2, "layers": 3}, partial(cka, layers=3)),
    "fedcka, kernel": (
        "fedcka",
        {"mu": 1.2, "similarity": "kernel", "bandwidth": 0.6},
        partial(cka, s="kernel"),
    ),
    "fedcka, frobenius": ("fedcka", {"mu": 1.2, "similarity": "frobenius"}, partial(cka, s="frobenius")),
    "fedcka, cosine": ("fedcka", {"mu": 1.2, "similarity": "cosine"}, partial(cka, s="cosine")),
    "fedntd": ("fedntd", {"beta": 0.8, "tau": 2.5}, ntd),
    "fedntd, mixed": ("fedntd", {"beta": 0.8, "tau": 2.5, "kd_mix": 0.3}, partial(ntd, mix=0.3)),
    "fedntd, distillation": ("fedntd", {"beta": 0.8, "tau": 2.5, "kd_mix": 0}, partial(ntd, mix=0)),
    "fedntd, squares": ("fedntd", {"beta": 0.8, "distance": "mse"}, partial(ntd, squared=True)),
    "fedalign": ("fedalign", {"width": 0.5}, align_dense),
}


@sampled(6, "case", CASES)
def test_a_term_is_minimised_as_the_paper_prints_it(case: str, mlp: Net):
    """Uploads and merges over three rounds are those of gradient descent on the formula."""
    name, settings, loss = CASES[case]
    assert_agrees(name, settings, mlp, loss)


def test_fedalign_pools_and_slices_convolutions(conv: Net):
    """The stage's input is pooled to its output's size, and half the width has half the channels."""
    assert_agrees("fedalign", {"width": 0.5}, conv, align_conv)


@pytest.mark.parametrize("similarity", ["linear", "cosine"])
def test_a_batch_of_one_has_no_similarity(similarity: str, mlp: Net):
    """FedCKA's step on one sample is FedAvg's, whatever the previous model and the similarity."""
    found = []
    for name, settings in (("fedcka", {"similarity": similarity}), ("fedavg", {})):
        method = build_method(name, mlp, LOCAL, **settings)
        (exchange,) = method.exchanges
        initial = begun(mlp)
        ctx = Ctx(0, 0, RATE, 1, 1, torch.ones(CLASSES))
        state = method.client(initial)
        if state is not None:
            state["fedcka"]["round"].fill_(0)
            state = tree_map(lambda leaf: leaf + 1, state)
        carry = exchange.work.start(exchange.down(method.server(initial), 0), state, ctx)
        one = batches(mlp, 0, 0)[0]
        carry = exchange.work.phases[0].step(carry, Batch(one.x[:1], one.y[:1]))
        found.append(arrays(exchange.work.finish(carry, ctx)[0]))
    close(*found)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "does nothing with two classes"),
        ({"kd_mix": 0.5, "distance": "mse"}, "kd_mix mixes two divergences"),
    ],
)
def test_fedntd_refuses_what_does_nothing(settings: dict[str, Any], message: str):
    """Two classes leave one that is not the label; mixing needs divergences."""
    two = build_net("mlp", (1, 2, 3), 2, hidden=(5,))
    with pytest.raises(UserError, match=message):
        build_method("fedntd", two, LOCAL, **settings)
    for other in ({"kd_mix": 0.5}, {"distance": "mse"}, {"beta": 0}):
        build_method("fedntd", two, LOCAL, **other)


def test_a_dead_stage_has_finite_gradients(mlp: Net):
    """Where no channel of the stage is active, the estimate is 0 and its gradient is not NaN."""
    dead = torch.zeros(3, 4, requires_grad=True)
    found = lipschitz(torch.ones(3, 5), dead)
    assert found.max() < 1e-8
    assert torch.autograd.grad(found.sum(), dead)[0].isfinite().all()
    whole = Exact("fedalign", [batches(mlp, 0, 0)], {"width": 1.0}, mlp, LOCAL, begun(mlp)).do("train")
    assert all(leaf.isfinite().all() for leaf in flatten(whole.server).values())


@pytest.mark.parametrize("kind", ["linear", "kernel", "cosine"])
def test_what_does_not_vary_is_not_similar(kind: str):
    """A layer that is 0 for all samples has the similarity 0, and gradients are finite."""
    x = torch.zeros(4, 6, dtype=torch.float64, requires_grad=True)
    y = torch.randn(4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = {
        "linear": lambda: alignment(linear_gram(x), linear_gram(y)),
        "kernel": lambda: alignment(gaussian_gram(x, 1.0), gaussian_gram(y, 1.0)),
        "cosine": lambda: cosine(x, y).sum(),
    }[kind]()
    assert found == 0
    assert torch.autograd.grad(found, x)[0].isfinite().all()
