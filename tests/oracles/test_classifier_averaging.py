"""FedClassAvg's rows of its Table 4 against worked values in NumPy, in float64; CA alone is LG-FedAvg."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from complex_step import Arrays, cross_entropy, descended, length
from exact import CLOSE, RATE, Exact, arrays, data, hidden, pixels, unit

from edgefl.protocol import Batch

RHO, WEIGHT, TEMPERATURE = 0.4, 0.6, 0.5
ROWS: dict[str, dict[str, float]] = {
    "CA": {"rho": 0.0, "contrastive": 0.0},
    "+PR": {"rho": RHO, "contrastive": 0.0},
    "+CL": {"rho": 0.0, "contrastive": WEIGHT},
    "+PR, CL": {"rho": RHO, "contrastive": WEIGHT},
}
# Batches of two views each; a label may occur once.
CLIENTS = [[[data(size, seed), data(size, 50 + seed)] for seed in range(3)] for size in (6, 9)]


def contrast(f: np.ndarray, y: np.ndarray) -> Any:
    """SupCon of features (N, l) with labels (N,)."""
    others = ~np.eye(len(y), dtype=bool)
    s = unit(f) @ unit(f).T / TEMPERATURE
    shares = s - np.log((np.exp(s) * others).sum(axis=1, keepdims=True))
    positive = others & (y[:, None] == y)
    return -((shares * positive).sum(axis=1) / np.maximum(positive.sum(axis=1), 1)).mean()


def loss(model: Arrays, views: list[Batch], start: Arrays, row: dict[str, float]) -> Any:
    """The three terms; cross-entropy on the first view."""
    y = views[0].y.numpy()
    f = hidden(model, np.concatenate([pixels(one) for one in views]))
    total = cross_entropy(f[: len(y)] @ model["head"].T + model["bias"], y)
    if row["contrastive"]:
        total += row["contrastive"] * contrast(f, np.concatenate([y, y]))
    away = np.concatenate([(model[key] - start[key]).ravel() for key in ("head", "bias")])
    # Where nothing has moved yet, its gradient counts as 0.
    return total + row["rho"] * length(away) if np.real(away).any() else total


@pytest.mark.parametrize("name", ROWS)
def test_two_rounds_of_each_row(name: str):
    """Bodies stay; heads are averaged by samples, and kept as they were trained."""
    row = ROWS[name]
    given = [
        [
            Batch(torch.stack([one.x for one in views]), views[0].y) if row["contrastive"] else views[0]
            for views in batches
        ]
        for batches in CLIENTS
    ]
    done = Exact("fedclassavg", given, {**row, "contrastive_temperature": TEMPERATURE})
    models, samples = [arrays(done.initial)] * 2, [18, 27]
    shared = {key: models[0][key] for key in ("head", "bias")}
    for _ in range(2):
        done.do("train")
        for client, batches in enumerate(CLIENTS):
            start = {**models[client], **shared}
            seen = [views[: 2 if row["contrastive"] else 1] for views in batches]
            models[client] = descended(partial(loss, start=start, row=row), start, seen, RATE)
        shared = {key: np.average([one[key] for one in models], axis=0, weights=samples) for key in shared}
    for key, name_ in (("head", "weight"), ("bias", "bias")):
        np.testing.assert_allclose(done.server["head"][name_].numpy(), shared[key], **CLOSE)
    for state, expected in zip(done.states, models, strict=True):
        found = arrays(done.method.personal_model(done.server, state).weights)
        for key, value in expected.items():
            np.testing.assert_allclose(found[key], value, **CLOSE, err_msg=key)
