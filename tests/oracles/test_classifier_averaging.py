"""FedClassAvg's rows of its Table 4 against worked values in NumPy, in float64; CA alone is LG-FedAvg."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from builders import arrival, build_method, build_net
from numpy.typing import NDArray

from edgefl.compute.threads import one_thread
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.training import LocalTraining
from edgefl.protocol import Batch, Ctx, Net, flatten, tree_map

CLASSES, PIXELS, SIZE = 3, 12, 6
RATE, RHO, WEIGHT, TEMPERATURE = 0.2, 0.4, 0.6, 0.5
LOCAL = LocalTraining(optimizer=Sgd(lr=RATE))
SAMPLES = (16, 48)
ROWS: dict[str, dict[str, float]] = {
    "CA": {"rho": 0.0, "contrastive": 0.0},
    "+PR": {"rho": RHO, "contrastive": 0.0},
    "+CL": {"rho": 0.0, "contrastive": WEIGHT},
    "+PR, CL": {"rho": RHO, "contrastive": WEIGHT},
}

Array = NDArray[np.float64]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """As engines work."""
    with one_thread():
        yield


@pytest.fixture(scope="module")
def net() -> Net:
    """A fully connected net of 8 features on 12 pixels."""
    return build_net("mlp", (1, 3, 4), CLASSES, hidden=(8,))


def views(client: int, round_: int) -> list[tuple[Array, NDArray[Any]]]:
    """Three batches of two views, x (2, 6, 12), and labels of which one occurs once."""
    random = np.random.default_rng([client, round_])
    return [(random.normal(size=(2, SIZE, PIXELS)), np.array([0, 1, 0, 2, 1, 0])) for _ in range(3)]


def contrast(f: Array, y: NDArray[Any]) -> tuple[float, Array]:
    """SupCon of features (N, l) with labels (N,), and its gradient."""
    norms = np.linalg.norm(f, axis=1, keepdims=True)
    u, count = f / norms, len(y)
    s = u @ u.T / TEMPERATURE
    value, ds = 0.0, np.zeros_like(s)
    for i in range(count):
        others = [a for a in range(count) if a != i]
        positives = [p for p in others if y[p] == y[i]]
        if positives:
            total = sum(np.exp(s[i, a]) for a in others)
            for p in positives:
                value -= (s[i, p] - np.log(total)) / len(positives) / count
                ds[i, p] -= 1 / len(positives) / count
            for a in others:
                ds[i, a] += np.exp(s[i, a]) / total / count
    du = (ds + ds.T) @ u / TEMPERATURE
    return value, (du - u * (u * du).sum(axis=1, keepdims=True)) / norms


def minimised(
    w: dict[str, Array], start: dict[str, Array], x: Array, y: NDArray[Any], row: dict[str, float]
) -> tuple[float, dict[str, Array]]:
    """The three terms and their gradient; cross-entropy on the first view."""
    both = x.reshape(-1, PIXELS) if row["contrastive"] else x[0]
    hidden = both @ w["body/fc1.weight"].T + w["body/fc1.bias"]
    features = np.maximum(hidden, 0)
    z = features[:SIZE] @ w["head/weight"].T + w["head/bias"]
    shares = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    value = -np.log(shares[np.arange(SIZE), y]).mean()
    dz = (shares - np.eye(CLASSES)[y]) / SIZE
    df = np.zeros_like(features)
    df[:SIZE] = dz @ w["head/weight"]
    if row["contrastive"]:
        term, gradient = contrast(features, np.concatenate([y, y]))
        value, df = value + row["contrastive"] * term, df + row["contrastive"] * gradient
    dh = df * (hidden > 0)
    found = {
        "body/fc1.weight": dh.T @ both,
        "body/fc1.bias": dh.sum(axis=0),
        "head/weight": dz.T @ features[:SIZE],
        "head/bias": dz.sum(axis=0),
    }
    away = {key: w[key] - start[key] for key in ("head/weight", "head/bias")}
    distance = np.sqrt(sum((one**2).sum() for one in away.values()))
    if distance:
        value += row["rho"] * distance
        found |= {key: found[key] + row["rho"] * one / distance for key, one in away.items()}
    return value, found


@pytest.mark.parametrize("row", ROWS)
def test_two_rounds_of_each_row(net: Net, row: str):
    """Losses, bodies that stay, heads that are averaged by samples and kept as they were trained."""
    method = build_method("fedclassavg", net, LOCAL, contrastive_temperature=TEMPERATURE, **ROWS[row])
    (exchange,) = method.exchanges
    (phase,) = exchange.work.phases
    weights = tree_map(lambda leaf: leaf.double(), net.init(0))
    server, states = method.server(weights), [method.client(weights) for _ in SAMPLES]
    first = {key: leaf.numpy() for key, leaf in flatten(weights).items()}
    shared, clients = {key: first[key] for key in ("head/weight", "head/bias")}, [first, first]
    for round_ in range(2):
        arrivals = []
        for client, samples in enumerate(SAMPLES):
            ctx = Ctx(client, round_, RATE, 3, samples, torch.ones(CLASSES))
            payload = exchange.down(server, client)
            carry = exchange.work.start(payload, states[client], ctx)
            start = w = {**clients[client], **shared}
            loss = 0.0
            for x, y in views(client, round_):
                shown = torch.from_numpy(x if phase.views == 2 else x[0])
                carry = phase.step(
                    carry, Batch(shown.reshape(*shown.shape[:-1], 1, 3, 4), torch.from_numpy(y))
                )
                value, gradient = minimised(w, start, x, y, ROWS[row])
                loss, w = loss + value, {key: w[key] - RATE * gradient[key] for key in w}
            upload, states[client] = exchange.work.finished(carry, ctx, states[client])
            clients[client] = w
            assert float(carry["scalars"]["loss"]) == pytest.approx(loss, rel=1e-10)
            arrivals.append(arrival(upload, ctx, payload))
        server = exchange.merge(server, arrivals)
        shared = {
            key: sum(n * one[key] for n, one in zip(SAMPLES, clients, strict=True)) / sum(SAMPLES)
            for key in shared
        }
    for found, expected in (
        (flatten(server), shared),
        *(
            (flatten(method.personal_model(server, state).weights), one)
            for state, one in zip(states, clients, strict=True)
        ),
    ):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            np.testing.assert_allclose(found[key].numpy(), value, rtol=1e-8, atol=1e-8, err_msg=key)
