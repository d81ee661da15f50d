"""The whole catalogue of methods with the rest: policies, codecs, ONNX, and FLex&Chill over each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from builders import NETS, Federation, build_method, build_net
from exported import CLASSES, images, perturbed, spec
from nightly import mostly, paired

import edgefl
from edgefl.compute.meta import Sizes, trace
from edgefl.compute.threads import one_thread
from edgefl.core import catalogue
from edgefl.core.errors import ScenarioError
from edgefl.export.build import ExportOptions
from edgefl.export.graph import Served, to_onnx
from edgefl.export.make import export
from edgefl.export.model import ExportForm
from edgefl.export.verify import parity
from edgefl.planning.learning import DataAccess
from edgefl.protocol import Method, Net, Predictor, flatten, leaves, shapes
from edgefl.protocol.coding import counterparts
from edgefl.runs.contract.setting import Setting, last_version
from edgefl.runs.learner import Learner

pytestmark = pytest.mark.usefixtures("one_registry")

METHODS = tuple(catalogue.entries("methods"))
# policy -> how a scenario of four clients asks for it, and whether FedAvg's uploads are stale then
POLICIES = {
    "sync": ("sync", False),
    "overselect": ("{name: overselect, factor: 2}", False),
    "deadline": ("{name: deadline, quantile: 0.5, late: merge, allow_partial: true}", True),
    "fedasync": ("fedasync", True),
    "fedbuff": ("{name: fedbuff, buffer: 2}", True),
    "semi-sync": ("{name: semi-sync, interval: 10 ms}", True),
}
# Methods whose uploads are not updates of what their clients received.
NEVER_STALE = {"fedcurv", "feddyn", "fedproto"}


@pytest.fixture(autouse=True)
def _same_bits() -> Iterator[None]:
    """One thread, as engines work."""
    with one_thread():
        yield


def setting(method: dict[str, Any], policy: str = "sync", rounds: int = 2) -> Setting:
    """A method on digits with four clients, two of them at work at a time."""
    return Setting.of(
        method,
        [
            f"server.policy={policy}",
            "server.participants=2",
            f"server.rounds={rounds}",
            "local.epochs=null",
            "local.steps=2",
        ],
    )


def driven(given: Setting) -> tuple[Learner, int]:
    """The learner after the run's merges, and the number of stale uploads."""
    stale = sum(job.version < one.need.version - 1 for one in given.rounds() for job in one.need.merged)
    return given.ended(), stale


def test_every_policy_is_covered():
    """A new policy must be added to the table, and those that merge stale uploads do so here."""
    assert POLICIES.keys() == set(catalogue.entries("policies"))
    for component, stale in POLICIES.values():
        _, found = driven(setting({"name": "fedavg"}, component, rounds=4))
        assert bool(found) == stale


@pytest.mark.parametrize(
    ("name", "policy"), paired(METHODS, POLICIES, also=[(name, "fedbuff") for name in NEVER_STALE])
)
def test_every_method_under_every_policy(name: str, policy: str):
    """It learns finite states and scores, or is refused with a message that names the two."""
    component, stale = POLICIES[policy]
    given = setting({"name": name}, component, rounds=4)
    if stale and name in NEVER_STALE:
        with pytest.raises(ScenarioError) as refused:
            driven(given)
        assert f"'{policy}' merges stale uploads" in str(refused.value)
        assert name in str(refused.value)
        assert "sync" in refused.value.hint
        return
    learner, found = driven(given)
    assert stale or not found
    states = [learner.context.state(client) or {} for client in range(4)]
    for tree in (last_version(learner), *states):
        assert all(leaf.isfinite().all() for leaf in leaves(tree))
    scores = [one for one in learner.evaluate(max(learner.context.versions)) if one is not None]
    assert scores
    assert all(torch.as_tensor(one.loss).isfinite().all() for one in scores)


@pytest.fixture(scope="module")
def mlp() -> Net:
    """The smallest net."""
    name, shape, settings = NETS["mlp"]
    return build_net(name, shape, CLASSES, **settings)


@pytest.mark.parametrize("name", sorted({*METHODS} - NEVER_STALE))
def test_an_upload_without_work_is_what_was_received(name: str, mlp: Net):
    """What re-expressing takes for an update is one: where no step was taken, it is zero."""
    method = build_method(name, mlp)
    federation = Federation(method, mlp).through()
    for exchange in method.exchanges:
        if exchange.when.at != "round":
            continue
        payload, ctx = exchange.down(federation.server, 0), federation.ctx(0)
        carry = exchange.work.start(payload, federation.states[0], ctx)
        upload, _ = exchange.work.finish(carry, ctx)
        flat = flatten(upload)
        for (key, leaf), received in zip(flat.items(), counterparts(upload, payload), strict=True):
            if received is not None and leaf.is_floating_point():
                torch.testing.assert_close(leaf, received, msg=f"{name}'s {key}")


CHILLED = tuple(name for name in METHODS if name != "flexchill")


@pytest.mark.parametrize(
    "name", mostly(CHILLED, ("fedavg", "fedclassavg", "spherefed", "scaffold", "fedproto", "ktpfl"))
)
def test_a_jobs_temperature_reaches_all_that_the_nets_does(name: str):
    """One T for all jobs learns what T of the net learns, to the bit, and something else than T = 1."""
    constant = {"by": "device", "values": {}, "default": 0.5}
    job, net, warm = (
        driven(setting({"name": "flexchill", "temperature": temperature, "base": name}))[0]
        for temperature in (constant, 0.5, 1.0)
    )
    found, expected, other = (
        [leaf for client in range(4) for leaf in leaves(one.context.state(client) or {})]
        + leaves(last_version(one))
        for one in (job, net, warm)
    )
    assert all(torch.equal(one, two) for one, two in zip(found, expected, strict=True))
    assert not all(torch.equal(one, two) for one, two in zip(found, other, strict=True))


# What was exported already, so that no function is twice.
_exported: set[Any] = set()


def function(model: Predictor) -> Any:
    """What a model computes, and of which weights: two of the same make the same graph."""
    net = getattr(model.logits, "__self__", None)
    computes = (net.features, net.head) if isinstance(net, Net) else model.logits
    return computes, str(shapes(model.weights))


def models(method: Method, federation: Federation) -> Iterator[Predictor]:
    """The global model, if there is one, and a client's own."""
    if method.global_model is not None:
        yield method.global_model(federation.server)
    yield method.personal_model(federation.server, federation.states[0])


@pytest.mark.parametrize("name", METHODS)
def test_every_method_exports(name: str, mlp: Net):
    """What is scored becomes a file that computes the same, whatever the method's models are made of."""
    method = build_method(name, mlp)
    federation = Federation(method, mlp).through()
    x, y = images(mlp.shape)
    for predictor in models(method, federation):
        if function(predictor) in _exported:
            continue
        _exported.add(function(predictor))
        model = Predictor(perturbed(predictor.weights), predictor.logits)
        module = Served(model, spec(mlp.shape), ExportForm()).eval()
        found = parity(to_onnx(module, mlp.shape, ExportForm(), {"method": name}), module, ExportForm(), x, y)
        assert found.passed, str(found)


def test_a_fine_tuned_client_exports_what_was_scored(tmp_path):
    """The file of a client of FedBABU has the accuracy of its last row, which is not the global model's."""
    scenario = {
        "task": {"dataset": "digits", "clients": 3, "partition": {"name": "dirichlet", "alpha": 0.3}},
        "model": {"name": "mlp", "hidden": [12]},
        "method": {"name": "fedbabu", "fine_tune": 2},
        "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.1}},
        "fleet": "home-lab",
        "server": {"rounds": 1},
        "evaluate": {"models": ["global", "personal"]},
    }
    (run,) = edgefl.run(scenario, out=tmp_path / "run").runs
    (found,) = export(run.folder, ExportOptions(client=1), DataAccess(), tmp_path / "model.onnx")
    rows = [row["accuracy"] for row in run.table("client_evaluations") if row["client"] == 1]
    assert found.reported == rows[-1] == pytest.approx(found.parity.accuracy, abs=5e-5)
    assert rows[-1] > rows[0]


CODECS = tuple(catalogue.entries("codecs"))


@pytest.mark.parametrize("name", METHODS)
def test_traced_payloads_are_coded_in_the_bytes_traced(name: str, mlp: Net):
    """Of every exchange after a round, by each codec: what is written is what was traced."""
    method = build_method(name, mlp)
    federation = Federation(method, mlp).through()
    for exchange in method.exchanges:
        payload, upload = federation.work(exchange, 0)
        for codec in (catalogue.load("codecs", each).Params() for each in CODECS):
            lengths = [[{6: 1}] * len(exchange.work.phases)]
            traced = trace(method, exchange, mlp, lengths, Sizes(codec.sizes, codec.sizes))
            assert sum(dict(traced.down).values()) == len(codec.encode(payload, None))
            assert sum(dict(traced.up).values()) == len(codec.encode(upload, payload))
