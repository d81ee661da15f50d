"""SphereFed's heads, losses and normalisation, against NumPy in float64."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from builders import build_method, build_net
from complex_step import cross_entropy, descended
from exact import CLOSE, RATE, WIDTH, Exact, arrays, data, hidden, hot, pixels, unit
from nightly import sampled

from edgefl.core import catalogue
from edgefl.core.errors import UserError
from edgefl.protocol import fixed_heads

CLIENTS = [[data(6, seed) for seed in range(3)], [data(8, 10), data(4, 11), data(8, 12)]]


def trained(model: dict[str, np.ndarray], batches, settings: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """A client's hidden layer after SGD under a head that stays."""

    def loss(at, one):
        f = hidden(at, pixels(one))
        logits = (unit(f) if settings.get("normalise", True) else f) @ model["head"].T
        if settings.get("loss", "mse") == "mse":
            return ((logits - hot(one.y)) ** 2).mean()
        return cross_entropy(settings.get("scale", 1.0) * logits, one.y.numpy())

    return descended(loss, {key: model[key] for key in ("w", "b")}, batches, RATE)


@sampled(
    4,
    "settings",
    [
        {},
        {"head": "gram_schmidt"},
        {"head": "random", "normalise": False},
        {"head": "tammes", "loss": "cross_entropy", "scale": 12.0},
        {"loss": "cross_entropy", "normalise": False},
    ],
    ids=lambda one: " ".join(map(str, one.values())) or "default",
)
def test_a_round_of_each_variant(settings: dict[str, Any]):
    """Three steps of two clients and their mean by samples; the head is as it was."""
    done = Exact("spherefed", CLIENTS, settings).do("announce")
    model = arrays({**done.server, "head": done.states[0]["head"]})
    clients = [trained(model, batches, settings) for batches in CLIENTS]
    done.do("train")
    for upload, own in zip(done.uploads, clients, strict=True):
        np.testing.assert_allclose(upload["body"]["fc1.weight"].numpy(), own["w"], **CLOSE)
        np.testing.assert_allclose(upload["body"]["fc1.bias"].numpy(), own["b"], **CLOSE)
    sizes = [sum(len(one.y) for one in batches) for batches in CLIENTS]
    merged = arrays(done.server)
    for key in ("w", "b"):
        mean = sum(size * own[key] for size, own in zip(sizes, clients, strict=True)) / sum(sizes)
        np.testing.assert_allclose(merged[key], mean, **CLOSE)
    np.testing.assert_array_equal(merged["head"], model["head"])


def head(name: str, classes: int, width: int) -> np.ndarray:
    """A head from a linear layer as torch initialises it."""
    generator = torch.Generator().manual_seed(0)
    random = (2 * torch.rand(classes, width, generator=generator, dtype=torch.float64) - 1) / width**0.5
    return fixed_heads.HEADS[name](random).numpy()


def test_gram_schmidt_is_qr():
    """Both give the orthonormal rows that span the random ones, with positive products along the way."""
    one, other = head("gram_schmidt", 10, 32), head("qr", 10, 32)
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
    np.testing.assert_allclose(one @ one.T, np.eye(10), rtol=0, atol=1e-12)


def test_tammes_steps_by_hand(monkeypatch: pytest.MonkeyPatch):
    """A few steps over all coordinates, with each pair's pull on both its rows: the objective's gradient."""
    monkeypatch.setattr(fixed_heads, "_STEPS", 4)
    fixed_heads.apart.cache_clear()
    found, rows = head("tammes", 5, 7), unit(head("random", 5, 7))
    fixed_heads.apart.cache_clear()
    for _ in range(4):
        gradient = np.zeros_like(rows)
        for i in range(5):
            j = max((j for j in range(5) if j != i), key=lambda j, i=i: rows[i] @ rows[j])
            gradient[i] += rows[j] / 5
            gradient[j] += rows[i] / 5
        rows = unit(rows - 0.1 * gradient)
    np.testing.assert_allclose(found, rows, **CLOSE)


def test_a_random_head_is_hes():
    """Uniform on +-sqrt(6 / l), of which the variance is 2 / l."""
    rows = head("random", 100, 600)
    assert np.abs(rows).max() <= np.sqrt(6 / 600)
    assert np.abs(rows).max() > 0.99 * np.sqrt(6 / 600)
    np.testing.assert_allclose(rows.var(), 2 / 600, rtol=0.02)


def test_orthonormal_rows_need_room():
    """More classes than features are refused, and Tammes is named, which can do with fewer."""
    narrow = build_net("mlp", (1, 3, 4), 5, hidden=(3,))
    with pytest.raises(UserError, match="at least as many features as classes") as told:
        build_method("spherefed", narrow)
    assert "head: tammes" in told.value.hint
    method = build_method("spherefed", narrow, head="tammes")
    assert method.server(narrow.init(0))["head"]["weight"].shape == (5, 3)


def test_a_scale_needs_cross_entropy():
    """Squared error has no scale."""
    params = catalogue.load("methods", "spherefed").Params
    with pytest.raises(ValueError, match="a scale needs loss: cross_entropy"):
        params(scale=4.0)


def test_a_trained_head_travels_with_the_body():
    """With head: trained nothing is announced, and the head is shared, trained and calibrated."""
    done = Exact("spherefed", CLIENTS, {"head": "trained", "loss": "cross_entropy"})
    assert [one.name for one in done.method.exchanges] == ["train", "calibrate", "deliver"]
    before = done.server["head"]["weight"]
    done.do("train")
    assert set(done.uploads[0]) == {"body", "head", "buffers"}
    trained_head = done.server["head"]["weight"]
    assert not torch.equal(trained_head, before)
    assert not torch.equal(done.do("calibrate").server["head"]["weight"], trained_head)
    assert done.server["head"]["weight"].shape == (4, WIDTH)
