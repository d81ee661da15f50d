"""What calibrates or adds prototypes, on every method as its base."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from builders import NETS, Federation, build_method, build_net, learned

from edgefl.core import catalogue
from edgefl.core.errors import UserError
from edgefl.protocol import Net, leaves
from edgefl.runs import run

OUTER = {"spherefed": {}, "ffc": {}, "ccvr": {"virtual": 4, "epochs": 1}, "fedproto": {}}
# What the papers, or this package's pages, put one on the other.
MUST = {
    "spherefed": {"fedavg", "fedprox", "fednova", "fedopt", "scaffold", "flexchill"},
    "ffc": {"fedavg", "fedprox", "fednova", "fedopt", "scaffold", "flexchill", "moon", "fedntd", "fedcka"},
    "ccvr": {"fedavg", "fedprox", "fednova", "fedopt", "scaffold", "flexchill"},
    "fedproto": {"local", "fedavg", "flexchill"},
}
BASES = tuple(catalogue.entries("methods"))


@pytest.fixture(scope="module")
def net() -> Net:
    """The smallest net."""
    name, shape, settings = NETS["mlp"]
    return build_net(name, shape, 10, **settings)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("outer", OUTER)
def test_every_base_works_or_is_refused(outer: str, base: str, net: Net):
    """All exchanges are gone through with finite states, or one message names the base and what to do."""
    refused: UserError | None = None
    try:
        federation = Federation(build_method(outer, net, base=base, **OUTER[outer]), net).through()
    except UserError as error:
        refused = error
    if refused:
        assert base not in MUST[outer], refused
        assert base in refused.what or "itself" in refused.what
        assert refused.hint
        return
    method, states = federation.method, federation.states
    kept = [state or {} for state in states.values()]
    assert all(leaf.isfinite().all() for leaf in leaves([federation.server, kept]))
    models: list[Any] = [method.personal_model(federation.server, states[0])]
    models += [method.global_model(federation.server)] if method.global_model else []
    for model in models:
        logits = model.logits(model.weights, next(federation.batches(_plain(federation), 0)).x)
        assert logits.isfinite().all()


def _plain(federation: Federation) -> Any:
    """A phase whose batches have one view."""
    return next(phase for one in federation.method.exchanges for phase in one.work.phases if phase.views == 1)


SMALL = {
    "name": "calibrated",
    "task": {"dataset": "digits", "partition": {"name": "dirichlet", "alpha": 0.5}, "clients": 4},
    "model": {"name": "mlp", "hidden": [16]},
    "local": {"steps": 3, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.1}},
    "fleet": "home-lab",
    "server": {"rounds": 2, "participants": 3},
}


@pytest.mark.parametrize(
    "method",
    [
        {"name": "ffc", "calibrate": "personal", "ridge": 0.1},
        {"name": "spherefed", "calibrate": "personal_sgd", "head": "tammes"},
        {"name": "spherefed", "calibrate": 1, "ridge": 0.1},
        {"name": "ccvr", "lr": 0.01},
        {"name": "fedproto", "predict": "head"},
    ],
    ids=lambda method: " ".join(map(str, method.values())),
)
def test_clients_together_learn_what_they_learn_alone(method: dict[str, Any], tmp_path):
    """Server versions and client states are those of the reference engine but for rounding."""
    found = []
    for engine in ("loop", "vmapped"):
        (one,) = run({**SMALL, "method": method}, engine=engine, out=tmp_path / engine).runs
        assert one.status == "done", one.reason
        found.append(learned(one))
    alone, together = found
    assert alone.keys() == together.keys()
    for key, leaf in alone.items():
        torch.testing.assert_close(together[key], leaf, rtol=1e-3, atol=1e-4, msg=key)
