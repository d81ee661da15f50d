"""What calibrates or adds prototypes, on every method as its base."""

from typing import Any

import pytest
from builders import Federation, build_method
from nightly import paired

from edgefl.core import catalogue
from edgefl.core.errors import UserError
from edgefl.protocol import Net, leaves

OUTER = {"spherefed": {}, "ffc": {}, "ccvr": {"virtual": 4, "epochs": 1}, "fedproto": {}}
# What the papers, or this package's pages, put one on the other.
MUST = {
    "spherefed": {"fedavg", "fedprox", "fednova", "fedopt", "scaffold", "flexchill"},
    "ffc": {"fedavg", "fedprox", "fednova", "fedopt", "scaffold", "flexchill", "moon", "fedntd", "fedcka"},
    "ccvr": {"fedavg", "fedprox", "fednova", "fedopt", "scaffold", "flexchill"},
    "fedproto": {"local", "fedavg", "flexchill"},
}
BASES = tuple(catalogue.entries("methods"))


@pytest.mark.parametrize(("base", "outer"), paired(BASES, OUTER))
def test_every_base_works_or_is_refused(outer: str, base: str, mlp: Net):
    """All exchanges are gone through with finite states, or one message names the base and what to do."""
    refused: UserError | None = None
    try:
        federation = Federation(build_method(outer, mlp, base=base, **OUTER[outer]), mlp).through()
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
    plain = next(phase for one in method.exchanges for phase in one.work.phases if phase.views == 1)
    for model in models:
        logits = model.logits(model.weights, next(federation.batches(plain, 0)).x)
        assert logits.isfinite().all()
