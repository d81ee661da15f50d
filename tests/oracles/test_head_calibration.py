"""FFC and CCVR against least squares and covariances of all samples at once, in NumPy."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from builders import build_method, build_net
from complex_step import cross_entropy, descended
from exact import (
    CLASSES,
    CLOSE,
    NET,
    RATE,
    WIDTH,
    Exact,
    arrays,
    data,
    hidden,
    hot,
    logits,
    pixels,
    unit,
    wide,
)

from edgefl.compute import meta
from edgefl.core.errors import UserError
from edgefl.methods.ccvr import Params, virtual_features
from edgefl.protocol import nbytes
from edgefl.protocol.calibration import solve
from edgefl.protocol.statistics import add_moments, pooled_moments

# Two clients; nobody has class 3 but the second.
CLIENTS = [[data(9, 0, [0, 1, 2]), data(6, 1, [0, 1, 2])], [data(20, 2), data(5, 3)]]


def everything(clients, model) -> tuple[np.ndarray, np.ndarray]:
    """All features and one-hot labels."""
    batches = [one for batches in clients for one in batches]
    found = np.concatenate([hidden(model, pixels(one)) for one in batches])
    return found, np.concatenate([hot(one.y) for one in batches])


def least_squares(f: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    """The head of least sum ||W f - y||^2 + ridge ||W||^2, by stacking the ridge's rows below the data."""
    below = np.sqrt(ridge) * np.eye(f.shape[1])
    return np.linalg.lstsq(np.vstack([f, below]), np.vstack([y, 0 * below[:, : y.shape[1]]]), rcond=1e-12)[
        0
    ].T


@pytest.mark.parametrize(("base", "ridge"), [("fedavg", 0.5), ("fedprox", 0.0)])
def test_ffc_is_ridge_least_squares_on_any_base(base: str, ridge: float):
    """After a round of cross-entropy the head is that of least squares on all features; its bias is 0."""
    done = Exact("ffc", CLIENTS, {"base": base, "ridge": ridge}).do("train")
    f, y = everything(CLIENTS, arrays(done.server))
    assert not np.allclose(done.server["head"]["weight"].numpy(), least_squares(f, y, ridge))
    done.do("calibrate")
    np.testing.assert_allclose(done.server["head"]["weight"].numpy(), least_squares(f, y, ridge), **CLOSE)
    assert not done.server["head"]["bias"].any()
    assert torch.equal(done.do("deliver").payload["head"]["weight"], done.server["head"]["weight"])


def test_fewer_samples_than_features_take_the_least_norm():
    """V of 3 samples has rank 3: accumulated in float32, its other eigenvalues are noise and count as 0."""
    f = torch.randn(3, 8, generator=torch.Generator().manual_seed(1))
    y = torch.eye(3)
    expected = np.linalg.lstsq(f.double().numpy(), y.double().numpy(), rcond=None)[0].T
    found = solve(f.T @ y, f.T @ f, 0.0, torch.float32)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_spherefed_and_ffc_calibrate_alike():
    """SphereFed's calibration is FFC on its body, to the last bit."""
    one = Exact("spherefed", CLIENTS)
    other = Exact("spherefed", CLIENTS, {"calibrate": "never", "base": "ffc"})
    for exchange in ("announce", "train", "calibrate", "deliver"):
        one.do(exchange), other.do(exchange)
    assert torch.equal(one.server["head"]["weight"], other.server["head"]["weight"])
    assert torch.equal(one.states[0]["head"]["weight"], other.states[1]["head"]["weight"])


def test_a_head_of_each_clients_own():
    """Personal FFC: least squares on a client's own unit features; the server learns and receives nothing."""
    done = Exact("spherefed", CLIENTS, {"calibrate": "personal", "ridge": 0.1}).do("train")
    common = done.method.personal_model(done.server, done.states[0]).weights["head"]["weight"]
    assert torch.equal(common, done.server["head"]["weight"])
    done.do("calibrate")
    assert done.uploads == [{}, {}]
    for batches, state in zip(CLIENTS, done.states, strict=True):
        f, y = everything([batches], arrays(done.server))
        own = done.method.personal_model(done.server, state).weights["head"]["weight"]
        np.testing.assert_allclose(own.numpy(), least_squares(unit(f), y, 0.1), **CLOSE)
    assert torch.equal(done.method.global_model(done.server).weights["head"]["weight"], common)


def test_a_head_of_each_clients_own_by_sgd():
    """The head alone moves, by the gradient of cross-entropy on features that stay."""
    done = Exact("ffc", CLIENTS, {"calibrate": "personal_sgd"}).do("tune")
    for batches, state in zip(CLIENTS, done.states, strict=True):
        model = arrays(done.initial)

        def loss(at, one, model=model):
            return cross_entropy(logits({**model, **at}, pixels(one)), one.y.numpy())

        head = descended(loss, {key: model[key] for key in ("head", "bias")}, batches, RATE)
        own = arrays(done.method.personal_model(done.server, state).weights)
        for key, value in {**model, **head}.items():
            np.testing.assert_allclose(own[key], value, **CLOSE)


def covariances(f: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """The unbiased covariance of each class; zeros where it has fewer than two samples."""
    rows = [f[y[:, label] == 1] for label in range(y.shape[1])]
    return [np.cov(one.T) if len(one) > 1 else np.zeros((f.shape[1],) * 2) for one in rows]


def test_moments_are_gathered_batch_by_batch():
    """Counts, means and unbiased covariances of each class, of features far from 0; absent classes have 0."""
    moments = {
        "counts": torch.zeros(CLASSES, dtype=torch.float64),
        "means": torch.zeros(CLASSES, WIDTH, dtype=torch.float64),
        "scatter": torch.zeros(CLASSES, WIDTH, WIDTH, dtype=torch.float64),
    }
    labels = torch.tensor([0, 1, 0, 0, 2, 1, 0, 0, 1] * 30)
    f = torch.randn(len(labels), WIDTH, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 50
    for first, last in ((0, 2), (2, 5), (5, 9), (9, 109), (109, len(labels))):
        add_moments(moments, f[first:last], labels[first:last])
    counts = torch.bincount(labels, minlength=CLASSES)
    assert moments["counts"].tolist() == counts.tolist()
    for label, expected in enumerate(covariances(f.numpy(), hot(labels))):
        spread = moments["scatter"][label] / max(moments["counts"][label] - 1, 1)
        np.testing.assert_allclose(spread.numpy(), expected, **CLOSE)
        if counts[label]:
            np.testing.assert_allclose(moments["means"][label], f[labels == label].mean(dim=0), **CLOSE)
    assert not moments["means"][3].any()


def test_covariances_pool_to_those_of_all_samples():
    """Merged statistics of clients are those of their samples together, class by class."""
    clients = [*CLIENTS, [data(1, 5, [2])]]
    done = Exact("ccvr", clients, {"virtual": 3}).do("train")
    f, y = everything(clients, arrays(done.server))
    pool = pooled_moments([upload["statistics"] for upload in done.do("statistics").uploads])
    np.testing.assert_allclose(pool["counts"].numpy(), y.sum(axis=0), **CLOSE)
    np.testing.assert_allclose(pool["means"].numpy(), (y.T @ f) / y.sum(axis=0)[:, None], **CLOSE)
    np.testing.assert_allclose(pool["covariances"].numpy(), covariances(f, y), **CLOSE)


def test_virtual_features_have_the_pooled_moments():
    """Many draws have the class's mean and covariance; a power of 0.5 is the root of what is above 0."""
    root = np.random.default_rng(0).normal(size=(WIDTH, WIDTH))
    covariance = torch.tensor(root @ root.T)
    pool = {
        "counts": torch.tensor([0.0, 9.0, 0.0, 4.0]),
        "means": torch.arange(CLASSES * WIDTH, dtype=torch.float64).view(CLASSES, WIDTH),
        "covariances": covariance.expand(CLASSES, -1, -1),
    }
    drawn, labels = virtual_features(pool, Params(virtual=40_000, power=1.0))
    assert labels.unique(return_counts=True)[1].tolist() == [40_000, 40_000]
    own = drawn[labels == 3].numpy()
    np.testing.assert_allclose(own.mean(axis=0), pool["means"][3].numpy(), atol=0.1)
    np.testing.assert_allclose(np.cov(own.T), covariance.numpy(), atol=0.3)
    tukey, _ = virtual_features(pool, Params(virtual=40_000, power=0.5))
    np.testing.assert_allclose(tukey.numpy(), np.sqrt(np.maximum(drawn.numpy(), 0)), **CLOSE)


def test_ccvr_trains_the_head_on_virtual_features():
    """SGD with momentum 0.9 on cross-entropy, the same batches in NumPy; the body stays."""
    settings = {"virtual": 20, "lr": 0.05, "epochs": 2, "batch_size": 16, "power": 1.0}
    done = Exact("ccvr", CLIENTS, settings)
    before = arrays(done.server)
    pool = pooled_moments([one["statistics"] for one in done.do("statistics").uploads])
    drawn, labels = virtual_features(pool, Params(**settings))
    f, y, generator = drawn.numpy(), labels.numpy(), torch.Generator().manual_seed(0)
    orders = [torch.randperm(len(f), generator=generator) for _ in range(2)]
    batches = [chosen.numpy() for order in orders for chosen in order.split(16)]

    def loss(at, chosen):
        return cross_entropy(f[chosen] @ at["head"].T + at["bias"], y[chosen])

    head = {key: before[key] for key in ("head", "bias")}
    model = {**before, **descended(loss, head, batches, 0.05, 0.9)}
    for key, value in arrays(done.server).items():
        np.testing.assert_allclose(value, model[key], **CLOSE)
    assert np.abs(model["head"] - before["head"]).max() > 1e-2


def traced_bytes(name: str, exchange: str, **settings) -> tuple[int, int]:
    """Down and up, without data."""
    method = build_method(name, NET, **settings)
    found = next(one for one in method.exchanges if one.name == exchange)
    trace = meta.trace(method, found, NET, [[{8: 1}] * len(found.work.phases)])
    return sum(trace.down.values()), sum(trace.up.values())


def test_bytes_by_formula():
    """Float32: the body down; l (l + C) up for FFC, C (1 + l + l^2) for CCVR, nothing for own heads."""
    body, head = nbytes(NET.on_meta()["body"]), nbytes(NET.on_meta()["head"])
    assert traced_bytes("ffc", "calibrate") == (body, 4 * WIDTH * (WIDTH + CLASSES))
    assert traced_bytes("ffc", "deliver") == (head, 0)
    assert traced_bytes("ffc", "calibrate", calibrate="personal") == (body, 0)
    assert traced_bytes("ffc", "tune", calibrate="personal_sgd") == (body + head, 0)
    assert traced_bytes("spherefed", "tune", calibrate="personal_sgd") == (body, 0)
    assert traced_bytes("ccvr", "statistics") == (body, 4 * CLASSES * (1 + WIDTH + WIDTH**2))
    assert traced_bytes("ccvr", "deliver") == (head, 0)


@pytest.mark.parametrize(
    ("name", "base", "told"),
    [
        ("ccvr", "fedclassavg", "ccvr needs a base that shares the body, and fedclassavg leaves it"),
        ("ffc", "spherefed", "ffc needs a base that predicts with the model's own features and head"),
        ("ccvr", "ffc", "ccvr would calibrate the head that ffc calibrates already"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, base: str, told: str):
    """One message names the two parts that do not fit."""
    with pytest.raises(UserError, match=told):
        build_method(name, NET, base=base)


def test_rounding_does_not_turn_a_ridge_negative():
    """An eigenvalue a little below 0, as float32 sums have, counts as 0."""
    v, u = torch.diag(torch.tensor([4.0, -0.001], dtype=torch.float64)), torch.ones(2, 1, dtype=torch.float64)
    torch.testing.assert_close(solve(u, v, 0.001), torch.tensor([[1 / 4.001, 1000.0]], dtype=torch.float64))


def test_own_heads_need_the_shared_body():
    """Ditto's personal models have other bodies than the one whose features a head is solved on."""
    with pytest.raises(UserError, match="heads for the shared body, and ditto gives each its own body"):
        build_method("ffc", NET, base="ditto", calibrate="personal")
    assert build_method("ffc", NET, base="fedper", calibrate="personal").exchanges[-1].name == "calibrate"


def test_a_head_that_is_not_linear_is_refused():
    """FFC solves for a matrix."""
    net = build_net("mlp", (1, 3, 4), CLASSES, hidden=(WIDTH,))
    deep = replace(net, init=lambda seed: {**net.init(seed), "head": wide(net.init(seed))["body"]})
    with pytest.raises(UserError, match="ffc needs a linear head"):
        build_method("ffc", deep)
