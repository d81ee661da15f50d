"""What methods that add a term to the objective cost beside FedAvg, and what they are built on."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from builders import NETS, Federation, build_method, build_net
from nightly import sampled

from edgefl.compute import meta
from edgefl.core import catalogue
from edgefl.core.cost import Kernel
from edgefl.core.errors import UserError
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.scenario import LocalTraining
from edgefl.protocol import Net, nbytes

SIZE = 8
METHODS = ("fedprox", "moon", "fedcka", "fedntd", "fedalign")


@pytest.fixture(scope="module")
def cnn() -> Net:
    name, shape, settings = NETS["cnn"]
    return build_net(name, shape, 10, **settings)


@pytest.fixture(scope="module")
def normed() -> Net:
    name, shape, settings = NETS["batch norm"]
    return build_net(name, shape, 10, **settings)


def step(name: str, net: Net, **settings: Any) -> list[Kernel]:
    with torch.device("meta"):
        method = build_method(name, net, LocalTraining(optimizer=Sgd(lr=0.1)), **settings)
        federation, (exchange,) = Federation(method, net), method.exchanges
        given = exchange.down(federation.server, 0), federation.states[0], federation.ctx(0)
        (phase,) = exchange.work.phases
        return meta.traced_step(phase, exchange.work.start(*given), net.shape, SIZE).kernels


def flops(kernels: Sequence[Kernel], part: str | None = None) -> int:
    return sum(one.flops for one in kernels if part in (None, one.part))


def copies(name: str, net: Net, **settings: Any) -> int:
    method = build_method(name, net, LocalTraining(optimizer=Sgd(lr=0.1)), **settings)
    return meta.trace(method, method.exchanges[0], net, [[{SIZE: 1}]]).peaks[SIZE,].get("kept copies", 0)


@pytest.mark.nightly
def test_frozen_copies_are_in_memory(cnn: Net, normed: Net):
    """FedProx and FedNTD hold one model more, MOON two, FedCKA the first layers of two, FedAlign none."""
    for net in (cnn, normed):
        weights = net.on_meta()
        assert copies("moon", net) == 2 * copies("fedntd", net) == 2 * nbytes(weights)
        assert copies("fedprox", net) == nbytes(weights["body"]) + nbytes(weights["head"])
        assert copies("fedalign", net) == copies("fedavg", net) == 0
    kernels = {"conv1": 4 * (25 * 4 + 4), "conv2": 4 * (25 * 4 * 6 + 6), "fc1": 4 * (6 * 16 + 16)}
    for layers in (1, 2, 3):
        assert copies("fedcka", cnn, layers=layers) == 2 * sum(list(kernels.values())[:layers])


@sampled(2, "name", METHODS)
def test_without_its_term_a_method_costs_what_its_base_does(name: str, cnn: Net):
    """At weight 0 the step has FedAvg's kernels, nothing is kept, and no layers or stages are needed."""
    weight = {"fedntd": "beta"}.get(name, "mu")
    assert step(name, cnn, **{weight: 0}) == step("fedavg", cnn)
    assert copies(name, cnn, **{weight: 0}) == 0
    assert build_method(name, cnn, **{weight: 0}).client(cnn.on_meta()) is None
    build_method(name, build_net("mlp", (1, 4, 4), 10, hidden=()), **{weight: 0})
    params = catalogue.load("methods", name).Params
    assert params().neutral == {weight: 0.0, "base": {"name": "fedavg"}}
    assert params(base={"name": "local"}).neutral is None


@sampled(2, ("name", "base"), [*zip(METHODS, (METHODS[-1], *METHODS), strict=False)])
def test_terms_stand_on_each_other(name: str, base: str, cnn: Net):
    """Two of them go through a round, and a step has the work of both."""
    Federation(build_method(name, cnn, base={"name": base}), cnn).through()
    both = flops(step(name, cnn, base={"name": base})) - flops(step("fedavg", cnn))
    assert both == sum(flops(step(each, cnn)) - flops(step("fedavg", cnn)) for each in (name, base))


@pytest.mark.parametrize("name", ["moon"])
def test_a_method_with_a_previous_model_cannot_stand_on_itself(name: str, cnn: Net):
    with pytest.raises(UserError, match=f"{name} cannot be combined with itself"):
        Federation(build_method(name, cnn, base={"name": name}), cnn)


@pytest.mark.parametrize(("name", "base"), [("moon", "local"), ("fedcka", "fedclassavg")])
def test_a_term_needs_what_it_compares_with(name: str, base: str, cnn: Net):
    """Where clients receive no body there is no model to be near to."""
    with pytest.raises(UserError, match=f"{name} needs a base that sends its clients the body, which {base}"):
        build_method(name, cnn, base={"name": base})


def test_a_model_without_a_stage_is_refused():
    """FedAlign says which model cannot run its last stage in part; FedCKA how many layers one has."""
    flat, two = (build_net("mlp", (1, 4, 4), 10, hidden=widths) for widths in ((), (5, 4)))
    with pytest.raises(UserError, match="which mlp cannot"):
        build_method("fedalign", flat)
    with pytest.raises(UserError, match="the first 4 layers were asked for, and mlp has 3"):
        build_method("fedcka", two, layers=4)
    with pytest.raises(UserError, match="mlp has no inner layers"):
        build_method("fedcka", flat)
    assert copies("fedcka", build_net("mlp", (1, 4, 4), 10, hidden=(5,))) == 2 * 4 * (16 * 5 + 5)
