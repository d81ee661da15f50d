"""What every method keeps, whatever its file says."""

from typing import Any

import pytest
import torch
from builders import STEPS, Federation, build_method, build_net
from builders import same_trees as same
from made_methods import counting
from nightly import paired, sampled

from edgefl.compute import meta
from edgefl.core import catalogue
from edgefl.core.errors import UserError
from edgefl.core.optimizers.adam import Params as Adam
from edgefl.core.optimizers.adamw import Params as AdamW
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.scenario import LocalTraining
from edgefl.protocol import Batch, Net, nbytes

pytestmark = pytest.mark.usefixtures("as_engines_work")

NAMES = tuple(catalogue.entries("methods"))
CLASSES = 10
# Methods that take a client's move for a sum of its gradients.
SGD_ALONE = {"fednova", "scaffold"}


@sampled(8, "name", NAMES)
def test_a_model_without_a_body_is_priced_or_refused(name: str):
    bare = build_net("mlp", (1, 4, 4), CLASSES, hidden=())
    try:
        method = build_method(name, bare)
    except UserError:
        return
    for exchange in method.exchanges:
        traced = meta.trace(method, exchange, bare, [[STEPS] * len(exchange.work.phases)])
        assert traced.exchange == exchange.name


OPTIMIZERS = {
    "plain": Sgd(lr=0.1),
    "nesterov": Sgd(lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3, clip_norm=1.0),
    "adam": Adam(lr=0.1),
    "adamw": AdamW(lr=0.1),
}


@sampled(8, ("name", "given"), paired(NAMES, OPTIMIZERS))
def test_every_step_costs_the_same(name: str, given: str, mlp: Net):
    """A second step's kernels are those of the first; methods that need plain SGD refuse the others."""
    optimizer = OPTIMIZERS[given]
    if name in SGD_ALONE and not isinstance(optimizer, Sgd):
        with pytest.raises(UserError, match=f"{name} cannot be combined with {optimizer.name}"):
            build_method(name, mlp, LocalTraining(optimizer=optimizer))
        return
    method = build_method(name, mlp, LocalTraining(optimizer=optimizer))
    for exchange in method.exchanges:
        with torch.device("meta"):
            federation = Federation(method, mlp)
            carry = exchange.work.start(
                exchange.down(federation.server, 0), federation.states[0], federation.ctx(0)
            )
            for phase in exchange.work.phases:
                first = meta.traced_step(phase, carry, mlp.shape, 6).kernels
                x = torch.empty(*((phase.views,) if phase.views > 1 else ()), 6, *mlp.shape)
                carry = phase.step(carry, Batch(x, torch.zeros(6, dtype=torch.int64)))
                assert meta.traced_step(phase, carry, mlp.shape, 6).kernels == first


def peak_of(name: str, net: Net, optimizer: Any = Sgd(lr=0.1), **settings: Any) -> dict[str, int]:  # noqa: B008 - frozen
    method = build_method(name, net, LocalTraining(optimizer=optimizer), **settings)
    exchange = next(one for one in method.exchanges if one.name == "train")
    return dict(meta.trace(method, exchange, net, [[{64: 1}]]).peaks[64,])


def test_memory_has_the_parts_that_the_methods_say(mlp: Net):
    """Beside FedAvg: FedProx keeps the received weights, momentum a buffer, Adam two, FedClassAvg a head."""
    weights = mlp.on_meta()
    trained, head = nbytes(weights), nbytes(weights["head"])
    plain = peak_of("fedavg", mlp)
    assert plain["parameters"] == trained
    assert plain["gradients" if "gradients" in plain else "activations"] > 0
    assert {"optimizer", "kept copies"}.isdisjoint(plain)
    assert peak_of("fedavg", mlp, Sgd(lr=0.1, momentum=0.9))["optimizer"] == trained
    assert peak_of("fedavg", mlp, Adam(lr=0.1))["optimizer"] == 2 * trained
    assert peak_of("fedprox", mlp)["kept copies"] == trained
    assert "kept copies" not in peak_of("fedprox", mlp, mu=0.0)
    assert peak_of("fedclassavg", mlp)["kept copies"] == head
    assert "kept copies" not in peak_of("fedclassavg", mlp, rho=0.0)
    # SphereFed's head weighs the same but has no bias, no momentum.
    sphere = peak_of("spherefed", mlp, Sgd(lr=0.1, momentum=0.9))
    assert sphere["optimizer"] == nbytes(weights["body"])
    assert sphere["parameters"] == nbytes(weights["body"]) + nbytes(weights["head"]["weight"])


def test_extensions_nest(mlp: Net):
    """Each has its own part of states, payloads and uploads; what the base learns is the same."""
    method = counting(counting(build_method("fedprox", mlp), "inner"), "outer")
    federation, plain = Federation(method, mlp), Federation(build_method("fedprox", mlp), mlp)
    for _ in range(2):
        federation.through()
        plain.through()
    assert same({part: federation.server[part] for part in plain.server}, plain.server)
    for name in ("inner", "outer"):
        assert federation.server[name]["count"] == 2 * federation.clients
        assert all(state[name]["rounds"] == 2 for state in federation.states.values())
    assert federation.states[0].keys() == {"inner", "outer"}
