"""Passes of models that nobody trains have running statistics: batch norm written out in NumPy."""

from collections import OrderedDict
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from builders import build_method
from complex_step import Arrays, cross_entropy, gradient, relu
from torch import nn

from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.scenario import LocalTraining
from edgefl.protocol import Batch, Ctx, Net, Tree, flatten, frozen, layers_of, tree_map
from edgefl.protocol.modules import functional_net

PIXELS, WIDTH, CLASSES, EPS = 6, 4, 3, 1e-5


@pytest.fixture
def net() -> Net:
    """A layer with batch norm on 6 pixels."""

    def body() -> nn.Module:
        layers = {"flatten": nn.Flatten(), "fc1": nn.Linear(PIXELS, WIDTH), "norm1": nn.BatchNorm1d(WIDTH)}
        return nn.Sequential(OrderedDict(layers | {"relu1": nn.ReLU()}))

    return functional_net("normed", body, (1, 2, 3), CLASSES, width=WIDTH, head_bias=True, layers=("relu1",))


def begun(net: Net) -> Tree:
    """Weights in float64, with running statistics that no batch has."""
    weights = tree_map(torch.Tensor.double, net.init(0))
    weights["buffers"] = {
        "norm1.running_mean": torch.linspace(-0.4, 0.5, WIDTH, dtype=torch.float64),
        "norm1.running_var": torch.linspace(0.3, 2.0, WIDTH, dtype=torch.float64),
    }
    return weights


def batch() -> Batch:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(5, 1, 2, 3, generator=generator, dtype=torch.float64)
    return Batch(x, torch.tensor([0, 1, 2, 1, 0]))


def arrays(tree: Tree) -> Arrays:
    return {key: leaf.numpy() for key, leaf in flatten(tree).items()}


def evaluated(w: Arrays, x: Any) -> tuple[Any, Any]:
    """Features and logits with the running statistics."""
    z = x.reshape(len(x), -1) @ w["body/fc1.weight"].T + w["body/fc1.bias"]
    z = (z - w["buffers/norm1.running_mean"]) / np.sqrt(w["buffers/norm1.running_var"] + EPS)
    features = relu(z * w["body/norm1.weight"] + w["body/norm1.bias"])
    return features, features @ w["head/weight"].T + w["head/bias"]


def test_frozen_models_have_running_statistics(net: Net):
    """Features, logits and inner layers of a frozen model are those of evaluation, not of the batch."""
    weights, (x, _) = begun(net), batch()
    features, logits = evaluated(arrays(weights), x.numpy())
    np.testing.assert_allclose(frozen(net, weights, x)[0], features, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(frozen(net, weights, x)[1], logits, rtol=1e-10, atol=1e-12)
    found = layers_of(net, weights, x, ["relu1"])["relu1"]
    np.testing.assert_allclose(found, features, rtol=1e-10, atol=1e-12)
    assert not np.allclose(net.features(weights, x, True)[0], features)


def test_the_fisher_information_has_running_statistics(net: Net):
    """FedCurv squares gradients of single samples in evaluation mode, at the weights and statistics sent."""
    method = build_method("fedcurv", net, LocalTraining(optimizer=Sgd(lr=0.1)), 1)
    (exchange,) = method.exchanges
    weights, ctx = begun(net), Ctx(0, 0, 0.1, 1, 5, torch.ones(CLASSES))
    carry = exchange.work.start(exchange.down(method.server(weights), 0), method.client(weights), ctx)
    for phase in exchange.work.phases:
        carry = phase.step(carry, batch())
    upload, state = exchange.work.finish(carry, ctx)
    w = arrays({part: upload[part] for part in ("body", "head", "buffers")})
    x, y = (each.numpy() for each in batch())
    trained = {name: value for name, value in w.items() if not name.startswith("buffers")}

    def loss(at: Arrays, i: int) -> Any:
        return cross_entropy(evaluated({**w, **at}, x[i : i + 1])[1], y[i : i + 1])

    slopes = [gradient(partial(loss, i=i), trained) for i in range(len(y))]
    assert state
    for name, found in arrays(state["fedcurv"]["fisher"]).items():
        expected = np.mean([slope[name] ** 2 for slope in slopes], axis=0)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-12, err_msg=name)
