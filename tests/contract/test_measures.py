"""Measures in whole runs: what they see, what is stored and shown, what is refused, and what they cost."""

import json
import sys

import numpy as np
import pytest
import torch
from commands import run_command
from damage import verify
from nightly import mostly, sampled
from small import SKEWED
from small import SMALL as BASE
from torch.nn import functional as F

import edgefl
from edgefl.core import catalogue
from edgefl.core.errors import UserError
from edgefl.core.user_code import LOADED
from edgefl.protocol import leaves

pytestmark = pytest.mark.usefixtures("preloaded_processes")

MEASURES, METHODS = list(catalogue.entries("measures")), list(catalogue.entries("methods"))
SMALL = {**BASE, "task": {**SKEWED, "clients": 4}}
# Gives one row, and keeps what it saw.
SPY = '''"""Sees all, counts clients."""
from edgefl.measures import Measure
from edgefl.protocol import Row
SEEN = []
class Params(Measure):
    """How much."""
    scale: float = 1.0

    def measure(self, seen):
        SEEN.append((seen, seen.participants, seen.personal_accuracies))
        return [Row(self.scale * len(seen.participants), "people", client=None)]
'''
RETRAINS = SPY.replace("    scale:", '    NEEDS = ("local steps",)\n    scale:')
MINE = '''"""Mine."""
from edgefl.protocol import Row
from edgefl.measures import Measure


class Params(Measure):
    def measure(self, seen):
        %s
'''


def small(*measures, **changes):
    return {**SMALL, **changes, "evaluate": {"measures": list(measures), **changes.get("evaluate", {})}}


def observed(own, tmp_path, text=SPY, **changes):
    """What a measure sees in the evaluations of a run: (observation, participants, personal accuracies)."""
    own("measures", "spy", text)
    (run,) = edgefl.run(small("spy", **changes), out=tmp_path / "spied").runs
    assert run.status == "done", run.reason
    return run, sys.modules[f"{LOADED}measures.spy"].SEEN


@sampled(2, "method", mostly(METHODS, METHODS[::6]))
def test_every_measure_of_every_method(tmp_path, method):
    """Each has rows where the method has what it reads, none where it has not, and each row but once."""
    task = {**SMALL["task"], "public": {"samples": 40}}
    (run,) = edgefl.run(small(*MEASURES, method=method, task=task), out=tmp_path / "run").runs
    assert run.status == "done", run.reason
    rows = run.table("measures")
    keys = [tuple(row[key] for key in row if key != "value") for row in rows]
    assert len(set(keys)) == len(keys)
    assert np.isfinite([row["value"] for row in rows]).all()
    scored = {row["model"] for row in run.table("evaluations")}
    given = {row["measure"] for row in rows}
    needs = {name: catalogue.load("measures", name) for name in MEASURES}
    for name, module in needs.items():
        if "global model" in module.Params.NEEDS:
            # Gradients are of what clients send.
            assert name in given or "global" not in scored or name == "gradient-diversity"
            assert name not in given or "global" in scored
    assert {"local-accuracy", "personal-accuracy", "accuracy-drop", "classifier-consistency"} <= given
    moved = [row["value"] for row in rows if row["measure"] == "weight-divergence" and row["figure"] == ""]
    assert all(value > 0 for value in moved)
    sent = {row["part"] for row in run.table("payloads") if row["direction"] == "up"}
    assert bool(moved) == bool(sent & {"body", "head"})
    assert not verify(run.folder)


def test_what_clients_trained_is_what_was_merged(own, tmp_path):
    """The weighted mean of the participants' models is the global one; they began with the one before."""
    local = {**SMALL["local"], "epochs": None, "steps": 1, "batch_size": 8}
    run, seen = observed(own, tmp_path, model={"name": "spherefed_convnet", "norm": "batch"}, local=local)
    assert [one.version for one, *_ in seen] == [1, 2]
    clients = run.table("clients")
    for one, people, _ in seen:
        assert [each.client for each in people] == sorted(each.client for each in people)
        weights = np.array([clients[each.client]["samples"] for each in people], dtype=float)
        weights /= weights.sum()
        trained = [leaves(each.trained.weights) for each in people]
        for place, leaf in enumerate(leaves(one.global_model.weights)):
            mean = sum(w * own[place] for w, own in zip(weights, trained, strict=True))
            torch.testing.assert_close(mean, leaf)
        for each in people:
            assert each.sent == ("body", "head")
            start = leaves(each.start.weights)
            assert all(mine is theirs for mine, theirs in zip(start, leaves(one.before.weights), strict=True))
            assert not all(map(torch.equal, start, leaves(each.own.weights)))
    earlier = leaves(seen[0][0].global_model.weights)
    assert all(map(torch.equal, leaves(seen[1][0].before.weights), earlier))


@pytest.mark.nightly
def test_engines_measure_alike(tmp_path):
    """One client after another, in groups, and in other processes."""
    found = []
    for engine in ("loop", "vmapped", {"name": "processes", "workers": 1}):
        folder = tmp_path / str(len(found))
        (run,) = edgefl.run(small("weight-divergence", "linear-cka"), engine=engine, out=folder).runs
        found.append([(tuple(row.values())[:-1], row["value"]) for row in run.table("measures")])
    for others in found[1:]:
        assert [key for key, _ in others] == [key for key, _ in found[0]]
        assert [value for _, value in others] == pytest.approx([value for _, value in found[0]], rel=1e-3)


@sampled(
    1,
    ("method", "engine"),
    [
        ("fedavg", "loop"),
        ("fedclassavg", "loop"),
        ({"name": "flexchill", "temperature": {"by": "work", "full": 0.5, "power": 1}}, "loop"),
    ],
    ids=str,
)
def test_scores_inside_a_local_training(own, tmp_path, method, engine):
    """After k steps a client has what a run has whose jobs are k steps long; after all, what it sent."""
    people = {}
    for steps in (3, 7):
        local = {"steps": steps, "batch_size": 16, "optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9}}
        changes = {"method": method, "engine": engine, "server": {"participants": 4, "rounds": 1}}
        _, seen = observed(own, tmp_path / str(steps), RETRAINS, local=local, **changes)
        people[steps] = seen[-1][1]
    for short, whole in zip(people[3], people[7], strict=True):
        assert (short.client, short.steps, whole.steps) == (whole.client, 3, 7)
        early = leaves(whole.after(3).weights)
        torch.testing.assert_close(early, leaves(short.trained.weights), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(
            leaves(whole.after(7).weights), leaves(whole.trained.weights), rtol=1e-4, atol=1e-5
        )
        assert not all(map(torch.equal, early, leaves(whole.trained.weights)))


@sampled(1, "method", ["scaffold", "fedclassavg"])
def test_a_client_is_trained_again_from_the_state_that_it_had(own, tmp_path, method):
    """In a later round, after its own training has replaced that state."""
    server = {"participants": 4, "rounds": 3}
    _, seen = observed(
        own, tmp_path, RETRAINS, method=method, server=server, engine="loop", evaluate={"every": 3}
    )
    (_, people, _) = seen[-1]
    for one in people:
        # Three rounds are evaluated together, when the state of the third is written.
        torch.testing.assert_close(leaves(one.after(one.steps).weights), leaves(one.trained.weights))


def test_class_accuracies_are_compared_with_the_round_before(tmp_path):
    """With ``every: 2``, too: round 4's model with round 3's, as when all rounds are evaluated."""
    found = []
    for every in (1, 2):
        evaluate = {"every": every, "measures": ["class-accuracy-similarity"]}
        scenario = {**SMALL, "evaluate": evaluate, "server": {"participants": 2, "rounds": 4}}
        (run,) = edgefl.run(scenario, out=tmp_path / str(every)).runs
        found.append({row["round"]: row["value"] for row in run.table("measures")})
    assert found[1] == {round_: found[0][round_] for round_ in (1, 3)}


def test_the_training_loss_is_at_the_methods_temperature(own, tmp_path, capsys):
    """One step of all a client's samples: CE(z / T) of what it received, and its mean over samples."""
    local = {**SMALL["local"], "batch_size": 2000, "optimizer": {"name": "sgd", "lr": 0.1}}
    server = {"participants": 4, "rounds": 1}
    method = {"name": "flexchill", "temperature": 0.25}
    run, [(seen, *_)] = observed(own, tmp_path, method=method, local=local, server=server)
    losses = []
    for client in seen.clients:
        x, y = seen.training(client, None)
        losses.append(
            F.cross_entropy(seen.before.net.logits(seen.before.weights, x) / 0.25, y, reduction="none")
        )
    expected = float(torch.cat(losses).mean())
    assert run.summary().training_loss == pytest.approx(expected, rel=1e-5)
    _, out, _ = run_command(capsys, "compare", run.folder, "--rows", "training loss")
    assert f"{expected:.3g}" in out
    assert edgefl.run(SMALL, out=tmp_path / "clock", engine="null").runs[0].summary().training_loss is None


def test_measures_change_no_result_and_no_cost(tmp_path):
    """Events, prices, evaluations and models are those of a run without; time is the host's alone."""
    plain, measured = (
        edgefl.run(scenario, out=tmp_path / str(place)).runs[0]
        for place, scenario in enumerate((SMALL, small(*MEASURES)))
    )
    for table in ("events", "prices", "client_evaluations"):
        assert plain.table(table) == measured.table(table)
    hashes = [[row["sha256"] for row in run.table("versions")] for run in (plain, measured)]
    assert hashes[0] == hashes[1]
    host = json.loads((measured.folder / "host.json").read_text(encoding="utf-8"))
    assert host["host_s"]["measure"] > 0
    assert measured.summary().measures_host_s == host["host_s"]["measure"]


def test_a_measure_without_its_model_is_said_once(tmp_path, capsys):
    """A method without a global model has no rows of it, and a line says so before the run."""
    path = tmp_path / "s.json"
    path.write_text(json.dumps(small("forgetting", "personal-accuracy", method="local")), encoding="utf-8")
    status, _, err = run_command(capsys, "run", path, "--out", tmp_path / "run")
    assert status == 0
    assert err.count("evaluate.measures: forgetting: no values, since local has no global model") == 1
    (run,) = edgefl.open(tmp_path / "run").runs
    assert {row["measure"] for row in run.table("measures")} == {"personal-accuracy"}


@pytest.mark.parametrize(
    ("measures", "what"),
    [
        ([{"name": "calibration-error", "bin": 5}], "unknown key 'bin'"),
        (["forgetting", "class_accuracy", "class-accuracy"], "the measure 'class-accuracy' is listed twice"),
        ([{"name": "linear-cka", "reference": "no/such.safetensors"}], "no file no/such.safetensors"),
    ],
)
def test_mistakes_are_refused_before_the_run(tmp_path, capsys, measures, what):
    """With one message that names the place, and exit status 2."""
    path = tmp_path / "s.json"
    path.write_text(json.dumps(small(*measures)), encoding="utf-8")
    status, _, err = run_command(capsys, "run", path, "--out", tmp_path / "run")
    assert (status, what in err, "s.json" in err) == (2, True, True)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("body", "what"),
    [("return None", "returned None"), ("return [Row(1.0), Row(2.0)]", "two rows of the same")],
)
def test_mistakes_in_ones_own_measure_are_named(own, tmp_path, body, what):
    path = own("measures", "mine", MINE % body)
    (run,) = edgefl.run(small("mine"), out=tmp_path / "run").runs
    assert run.status == "failed"
    assert what in run.reason
    assert path.name in run.reason


def test_figures_are_numbers_of_all_clients_and_classes_together(own, tmp_path):
    """NaN and infinities are left out; rows of one client, or of one class, are in the table alone."""
    rows = 'Row(float("nan")), Row(float("inf"), "far"), Row(2.0, "two"), Row(5.0, "two", client=1)'
    own("measures", "mine", MINE % f'return [{rows}, Row(7.0, "two", label="1")]')
    (run,) = edgefl.run(small("mine"), out=tmp_path / "run").runs
    assert len(run.table("measures")) == 6
    assert run.summary().measures["mine"].figures == {"global two": 2.0}


def test_linear_cka_to_a_reference(tmp_path):
    """A run is like its own last version; versions of other models are refused."""
    (first,) = edgefl.run(small(), out=tmp_path / "first").runs
    file = first.folder / first.table("versions")[-1]["file"]
    asked = {"name": "linear-cka", "reference": str(file), "samples": 50}
    (again,) = edgefl.run(small(asked), out=tmp_path / "again").runs
    last = [row for row in again.table("measures") if row["version"] == 2 and row["figure"] == "to reference"]
    same = {row["label"]: row["value"] for row in last if row["model"] == "global"}
    assert same == {name: pytest.approx(1, abs=1e-6) for name in ("relu1", "features", "logits", "")}
    assert {row["client"] for row in last if row["model"] == "trained"} > {None}
    for model in ({"name": "mlp", "hidden": [13]}, {"name": "mlp", "hidden": [12, 12]}):
        with pytest.raises(UserError) as caught:
            edgefl.run(small(asked, model=model), out=tmp_path / "other")
        assert "is not a version of this model" in caught.value.what
