"""FedClassAvg's rows of its Table 4 against worked values in NumPy, in float64; CA alone is LG-FedAvg."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from exact import CLOSE, RATE, Exact, arrays, data, hidden, hot, pixels, softmax

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


def contrast(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The gradient of SupCon of features (N, l) with labels (N,)."""
    norms = np.linalg.norm(f, axis=1, keepdims=True)
    u, count = f / norms, len(y)
    s = u @ u.T / TEMPERATURE
    ds = np.zeros_like(s)
    for i in range(count):
        others = [a for a in range(count) if a != i]
        positives = [p for p in others if y[p] == y[i]]
        if positives:
            total = sum(np.exp(s[i, a]) for a in others)
            for p in positives:
                ds[i, p] -= 1 / len(positives) / count
            for a in others:
                ds[i, a] += np.exp(s[i, a]) / total / count
    du = (ds + ds.T) @ u / TEMPERATURE
    return (du - u * (u * du).sum(axis=1, keepdims=True)) / norms


def gradient(model, start, views: list[Batch], row: dict[str, float]) -> dict[str, np.ndarray]:
    """Of the three terms; cross-entropy on the first view."""
    x, y = np.concatenate([pixels(one) for one in views]), views[0].y
    f, first = hidden(model, x), len(y)
    slope = (softmax(f[:first] @ model["head"].T + model["bias"]) - hot(y)) / first
    below = np.concatenate([slope @ model["head"], np.zeros_like(f[first:])])
    if row["contrastive"]:
        below += row["contrastive"] * contrast(f, np.concatenate([y, y]))
    below *= f > 0
    found = {
        "w": below.T @ x,
        "b": below.sum(axis=0),
        "head": slope.T @ f[:first],
        "bias": slope.sum(axis=0),
    }
    away = {key: model[key] - start[key] for key in ("head", "bias")}
    distance = np.sqrt(sum((one**2).sum() for one in away.values()))
    if distance:
        found |= {key: found[key] + row["rho"] * one / distance for key, one in away.items()}
    return found


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
            start = model = {**models[client], **shared}
            for views in batches:
                slopes = gradient(model, start, views[: 2 if row["contrastive"] else 1], row)
                model = {key: model[key] - RATE * slopes[key] for key in model}
            models[client] = model
        shared = {key: np.average([one[key] for one in models], axis=0, weights=samples) for key in shared}
    for key, name_ in (("head", "weight"), ("bias", "bias")):
        np.testing.assert_allclose(done.server["head"][name_].numpy(), shared[key], **CLOSE)
    for state, expected in zip(done.states, models, strict=True):
        found = arrays(done.method.personal_model(done.server, state).weights)
        for key, value in expected.items():
            np.testing.assert_allclose(found[key], value, **CLOSE, err_msg=key)
