"""The whole catalogue of methods with the rest: policies, codecs, ONNX, and FLex&Chill over each of them."""

import pytest
import torch
from builders import Federation, build_method
from exported import images, perturbed, spec
from nightly import paired, sampled
from small import SKEWED, SMALL

import edgefl
from edgefl.core import catalogue
from edgefl.core.errors import ScenarioError
from edgefl.export.build import ExportOptions
from edgefl.export.graph import Served, to_onnx
from edgefl.export.make import export
from edgefl.export.model import ExportForm
from edgefl.export.verify import parity
from edgefl.planning.learning import DataAccess
from edgefl.protocol import Net, Predictor, flatten, leaves
from edgefl.protocol.trees import counterparts
from edgefl.runs.contract.setting import Setting, last_version
from edgefl.runs.learner import Learner

pytestmark = pytest.mark.usefixtures("one_registry", "as_engines_work")

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


def driven(name: str, policy: str) -> tuple[Learner, int]:
    """The learner after a run's merges, and the number of stale uploads."""
    server = [f"server.policy={policy}", "server.participants=2", "server.rounds=4"]
    given = Setting.of({"name": name}, [*server, "local.epochs=null", "local.steps=2"])
    stale = sum(job.version < one.need.version - 1 for one in given.rounds() for job in one.need.merged)
    return given.ended(), stale


def test_every_policy_is_covered():
    """A new policy must be added to the table, and those that merge stale uploads do so here."""
    assert POLICIES.keys() == set(catalogue.entries("policies"))
    for component, stale in POLICIES.values():
        _, found = driven("fedavg", component)
        assert bool(found) == stale


@sampled(5, ("name", "policy"), paired(METHODS, POLICIES, also=[(name, "fedbuff") for name in NEVER_STALE]))
def test_every_method_under_every_policy(name: str, policy: str):
    """It learns finite states and scores, or is refused with a message that names the two."""
    component, stale = POLICIES[policy]
    if stale and name in NEVER_STALE:
        with pytest.raises(ScenarioError) as refused:
            driven(name, component)
        assert f"'{policy}' merges stale uploads" in str(refused.value)
        assert name in str(refused.value)
        assert "sync" in refused.value.hint
        return
    learner, found = driven(name, component)
    assert stale or not found
    states = [learner.context.state(client) or {} for client in range(4)]
    for tree in (last_version(learner), *states):
        assert all(leaf.isfinite().all() for leaf in leaves(tree))
    scores = [one for one in learner.evaluate(max(learner.context.versions)) if one is not None]
    assert scores
    assert all(torch.as_tensor(one.loss).isfinite().all() for one in scores)


@sampled(8, "name", sorted({*METHODS} - NEVER_STALE))
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


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["fedclassavg", "spherefed", "fedproto", "fedrep"])
def test_models_of_all_kinds_export(name: str, mlp: Net):
    """What is scored becomes a file that computes the same, whatever the method's models are made of."""
    method = build_method(name, mlp)
    federation = Federation(method, mlp).through()
    x, y = images(mlp.shape)
    predictor = method.personal_model(federation.server, federation.states[0])
    model = Predictor(perturbed(predictor.weights), predictor.logits)
    module = Served(model, spec(mlp.shape), ExportForm()).eval()
    found = parity(to_onnx(module, mlp.shape, ExportForm(), {"method": name}), module, ExportForm(), x, y)
    assert found.passed, str(found)


def test_a_fine_tuned_client_exports_what_was_scored(tmp_path):
    """The file of a client of FedBABU has the accuracy of its last row, which is not the global model's."""
    task, evaluate = {**SKEWED, "clients": 3}, {"models": ["global", "personal"]}
    scenario = {**SMALL, "task": task, "server": {"rounds": 1}, "evaluate": evaluate}
    scenario["method"] = {"name": "fedbabu", "fine_tune": 2}
    (run,) = edgefl.run(scenario, out=tmp_path / "run").runs
    (found,) = export(run.folder, ExportOptions(client=1), DataAccess(), tmp_path / "model.onnx")
    rows = [row["accuracy"] for row in run.table("client_evaluations") if row["client"] == 1]
    assert found.reported == rows[-1] == pytest.approx(found.parity.accuracy, abs=5e-5)
    assert rows[-1] > rows[0]
