"""What selectors read of training: the losses of single samples, on every engine and for every method."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from builders import MOMENTUM, NETS, build_method, build_net
from nightly import paired, sampled
from test_processes import run
from test_stacking import NAMES, SIZES, batches_of, group, initial_of, together

from edgefl.compute import loop
from edgefl.compute.vmapped import Vmapped
from edgefl.core.errors import RunError
from edgefl.protocol import Exchange, GradientStep, Net, Tree, chilled, flatten
from edgefl.protocol.sample_losses import SQUARES, measured, summarised

pytestmark = pytest.mark.usefixtures("preloaded_processes")

# One phase, two views, several exchanges, several models: all others at night.
BY_DAY = [("ragged", name) for name in ("fedclassavg", "spherefed", "moon")] + [("recorded", "scaffold")]
# Frequent enough for a tape.
LONG = ([6] * 12, [6] * 12, [6] * 12 + [4])


def with_losses(exchange: Exchange) -> Exchange:
    return replace(exchange, work=measured(exchange.work))


def reckoned(net: Net, weights: Tree, batch) -> np.ndarray:
    """The samples' losses in training mode, from logits alone, in NumPy's float64."""
    features, _ = net.features(weights, batch.x, True)
    logits = chilled(net, net.head(weights["head"], features), batch.y, {}).numpy().astype(np.float64)
    labels = batch.y.numpy()
    if getattr(net.loss, "__name__", "") == "_squared_error":
        return ((logits - np.eye(net.classes)[labels]) ** 2).mean(axis=1)
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(labels)), labels]


@pytest.mark.parametrize(
    ("method", "net"), [("fedavg", "batch norm"), ("flexchill", "mlp"), ("spherefed", "cnn")]
)
def test_the_root_mean_square_is_that_of_all_samples(method, net):
    """``loss_rms`` of ragged clients equals a reckoning along their steps, on loop and on vmapped."""
    name, shape, settings = NETS[net]
    built = build_net(name, shape, 10, **settings)
    federated = build_method(method, built, MOMENTUM)
    exchange = next(each for each in federated.exchanges if each.name == "train")
    used = _net_of(method, built)
    server = federated.server(initial_of(built))
    states = [federated.client(initial_of(built)) for _ in SIZES]
    given = group(with_losses(exchange), built, server, states)
    expected = [_rms(used, exchange, task, client) for client, task in enumerate(given.tasks)]
    alone = [loop.work(task) for task in given.tasks]
    for outcomes in (alone, together(Vmapped(64, 10**9), given)):
        found = [summarised(outcome.scalars)["loss_rms"] for outcome in outcomes]
        assert found == pytest.approx(expected, rel=1e-9)


def _net_of(method: str, net: Net) -> Net:
    if method == "flexchill":
        return replace(net, temperature=0.25)
    if method == "spherefed":
        from edgefl.methods.spherefed import Params, _sphere

        return _sphere(net, Params())
    return net


def _rms(net: Net, exchange: Exchange, task, client: int) -> float:
    """Walks through a client's steps without measuring, and reckons its samples' losses before each."""
    carry, losses = exchange.work.start(task.payload, task.state, task.ctx), []
    (phase,) = exchange.work.phases
    for batch in batches_of(phase, net, client):
        losses.append(reckoned(net, carry["weights"], batch))
        carry = phase.step(carry, batch)
    return float(np.sqrt(np.square(np.concatenate(losses)).mean()))


@sampled(3, ("clients", "method"), paired(["ragged", "recorded"], NAMES, also=BY_DAY))
def test_measuring_changes_no_bit_of_the_training(clients, method):
    """Uploads, states and losses are the same with and without, and both engines measure the same."""
    sizes = {"ragged": SIZES, "recorded": LONG}[clients]
    net = build_net("mlp", (1, 8, 8), 10, hidden=(24,))
    federated = build_method(method, net, MOMENTUM, len(sizes))
    initial = initial_of(net)
    server, states = federated.server(initial), [federated.client(initial) for _ in sizes]
    for exchange in federated.exchanges:
        plain = group(exchange, net, server, states, sizes)
        watched = group(with_losses(exchange), net, server, states, sizes)
        alone = [loop.work(task) for task in watched.tasks]
        pairs = [
            (alone, [loop.work(task) for task in plain.tasks]),
            (together(Vmapped(64, 10**9), watched), together(Vmapped(64, 10**9), plain)),
        ]
        for outcomes, expected in pairs:
            for one, other, reference in zip(outcomes, expected, alone, strict=True):
                assert one.scalars.get("loss") == other.scalars.get("loss")
                assert ("loss" in one.scalars) == (SQUARES in one.scalars)
                assert summarised(one.scalars) == pytest.approx(summarised(reference.scalars), rel=1e-9)
                for mine, theirs in ((one.upload, other.upload), (one.state, other.state)):
                    found, wanted = flatten(mine or {}), flatten(theirs or {})
                    assert all(torch.equal(leaf, wanted[key]) for key, leaf in found.items())


def test_an_objective_that_does_not_tell_is_named():
    """A method that computes its loss on its own cannot be measured, and the message says what to do."""
    net = build_net("mlp", (1, 8, 8), 10, hidden=(24,))
    federated = build_method("fedavg", net, MOMENTUM)
    (train,) = federated.exchanges

    def objective(weights, batch, carry):  # noqa: ARG001
        features, buffers = net.features(weights, batch.x, True)
        return net.loss(net.head(weights["head"], features), batch.y), buffers

    (phase,) = train.work.phases
    own = replace(phase, step=GradientStep(objective, MOMENTUM.optimizer, net.trained))
    exchange = with_losses(replace(train, work=replace(train.work, phases=(own,))))
    given = group(exchange, net, federated.server(initial_of(net)), [None] * 2, SIZES[:2])
    with pytest.raises(RunError, match="does not tell samples' losses"):
        loop.work(given.tasks[0])
    with pytest.raises(RunError, match="does not tell samples' losses"):
        together(Vmapped(64, 10**9), given)


@pytest.mark.nightly
def test_workers_measure_too(tmp_path):
    """Jobs' scalars are the loop's in worker processes, and there is no ``loss_rms`` that nobody reads."""
    server = {"rounds": 2, "selector": {"name": "oort"}}
    changes = {"method": {"name": "fedclassavg"}, "server": server}
    found = {
        name: [json.loads(job["scalars"]) for job in run(tmp_path / name, engine, **changes).table("jobs")]
        for name, engine in {
            "loop": {"name": "loop"},
            "workers": {"name": "processes", "workers": 2},
            "vmapped": {"name": "vmapped"},
        }.items()
    }
    assert found["workers"] == found["loop"]
    for own, reference in zip(found["vmapped"], found["loop"], strict=True):
        assert set(reference) == {"loss", "loss_rms"}
        assert own == pytest.approx(reference, rel=1e-4)
    server["selector"] = {"name": "fastest"}
    unread = run(tmp_path / "unread", {"name": "loop"}, **changes).table("jobs")
    assert all(set(json.loads(job["scalars"])) == {"loss"} for job in unread)
