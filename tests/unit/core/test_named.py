"""Users' own optimizers, schedules and samplers: one file each, named in a scenario."""

from __future__ import annotations

import pytest

from edgefl.core.drafts import load
from edgefl.core.errors import ScenarioError, UserError
from edgefl.core.fleet import Fleet
from edgefl.core.scenario import LearningSpec
from edgefl.core.training import LocalTraining
from edgefl.core.yamls import Document
from edgefl.planning.schema import schema
from edgefl.runs import run

SIGN = """
from edgefl.core.optimizers import Optimizer


class Params(Optimizer):
    width: float = 1.0

    def state(self, zeros):
        return {}

    def update(self, each, values, gradients, state, lr):
        each("add_", values, each("mul", each("sign", gradients), self.width), alpha=-lr)
        return state
"""
WARMUP = """
from edgefl.core.schedules import Schedule


class Params(Schedule):
    rounds: int

    def factor(self, round_, rounds):
        return min(1.0, (round_ + 1) / self.rounds)
"""
TWO_SPEEDS = """
import numpy as np

from edgefl.core.samplers import Sampler


class Params(Sampler):
    slow: float = 2.0

    def draw(self, uniform):
        return np.where(uniform[0] < 0.5, 1.0, self.slow)
"""
SCENARIO = """
task: {dataset: digits, clients: 4}
model: {name: mlp, hidden: [4]}
method: fedavg
local:
  batch_size: 64
  optimizer:
    name: sign-sgd
    lr: 0.01
    schedule: {name: warmup, rounds: 2}
fleet: {like: home-lab, slowdown: {name: two-speeds, slow: 3.0}}
server: {rounds: 2}
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A function that writes a file under a directory on EDGEFL_PATH."""
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def all_three(own):
    """An optimizer, a schedule and a sampler."""
    own("optimizers/sign_sgd.py", SIGN)
    own("schedules/warmup.py", WARMUP)
    own("samplers/two_speeds.py", TWO_SPEEDS)


@pytest.mark.usefixtures("all_three")
def test_own_records_are_found_by_name():
    """They are read with their parameters, and written out with all of them."""
    (draft,) = load(Document.parse(SCENARIO, "s.yaml"))
    optimizer = draft.scenario.local.optimizer
    assert [optimizer.schedule.factor(round_, 3) for round_ in range(3)] == [0.5, 1.0, 1.0]
    written = draft.scenario.resolved()
    assert written["local"]["optimizer"] == {
        "name": "sign-sgd",
        "lr": 0.01,
        "weight_decay": 0.0,
        "schedule": {"name": "warmup", "rounds": 2},
        "width": 1.0,
    }
    assert written["fleet"]["slowdown"] == {"name": "two-speeds", "slow": 3.0}


@pytest.mark.usefixtures("all_three")
def test_underscore_and_hyphen_are_one_in_a_name():
    """A record has its file's name, however the scenario spells it."""
    text = SCENARIO.replace("sign-sgd", "sign_sgd")
    (draft,) = load(Document.parse(text, "s.yaml"))
    assert draft.scenario.local.optimizer.name == "sign-sgd"


@pytest.mark.usefixtures("all_three")
@pytest.mark.parametrize("engine", ["loop", "vmapped"])
def test_own_records_train(tmp_path, engine):
    """Each step moves every weight by the rate, or not at all; two kinds of speeds are drawn."""
    (done,) = run(Document.parse(SCENARIO, "s.yaml").data, engine=engine, out=tmp_path / "runs").runs
    assert done.status == "done"
    assert {client["slowdown"] for client in done.table("clients")} <= {1.0, 3.0}


@pytest.mark.usefixtures("all_three")
def test_own_records_are_in_the_schema():
    """Editors offer them beside the shipped ones."""
    definitions = schema()["$defs"]
    names = {kind: definitions[kind]["anyOf"][0]["enum"] for kind in ("optimizers", "schedules", "samplers")}
    assert names["optimizers"] == ["adam", "adamw", "sgd", "sign-sgd"]
    assert "warmup" in names["schedules"]
    assert "two-speeds" in names["samplers"]


@pytest.mark.usefixtures("all_three")
def test_a_wrong_parameter_of_an_own_record_has_its_line():
    """File, line and key, and the nearest of the record's own keys."""
    with pytest.raises(ScenarioError) as caught:
        load(Document.parse(SCENARIO.replace("rounds: 2}\nfleet", "round: 2}\nfleet"), "s.yaml"))
    assert caught.value.what == "'rounds' is missing"
    with pytest.raises(ScenarioError) as caught:
        load(Document.parse(SCENARIO.replace("slow: 3.0", "slaw: 3.0"), "s.yaml"))
    assert caught.value.what == "unknown key 'slaw'"
    assert caught.value.where == "s.yaml:11, key 'fleet.slowdown.slaw'"
    assert caught.value.hint == "did you mean 'slow'?"


@pytest.mark.parametrize("text", ["", "Params = 3\n", "from edgefl.core.params import Strict as Params\n"])
def test_a_file_without_a_record_is_named(own, text):
    """A user's file that has no record of its kind is the user's error."""
    path = own("optimizers/empty.py", text)
    with pytest.raises(UserError, match="has no class Params") as caught:
        LocalTraining.model_validate({"optimizer": {"name": "empty"}})
    assert caught.value.where == str(path)


def test_a_record_without_a_function_of_its_kind_is_named(own):
    """An optimizer that cannot step is the user's error, and no traceback."""
    path = own("optimizers/idle.py", SIGN.split("    def update", maxsplit=1)[0])
    with pytest.raises(UserError, match="lack 'update'") as caught:
        LocalTraining.model_validate({"optimizer": {"name": "idle", "lr": 0.1}})
    assert caught.value.where == str(path)


def test_null_is_kept_where_it_is_not_the_default(own):
    """Workers and exports read a record back from plain data, and get the one that was written."""
    own("optimizers/sign_sgd.py", SIGN.replace("width: float = 1.0", "width: float | None = 1.0"))
    own("schedules/warmup.py", WARMUP)
    own("samplers/two_speeds.py", TWO_SPEEDS)
    (draft,) = load(Document.parse(SCENARIO.replace("lr: 0.01", "lr: 0.01\n    width: null"), "s.yaml"))
    written = draft.scenario.resolved()
    assert written["local"]["optimizer"]["width"] is None
    assert "clip_norm" not in written["local"]["optimizer"]
    read, _ = LearningSpec.of_resolved(written, "plan.yaml")
    assert read.local == draft.scenario.local


def test_a_record_of_another_kind_is_refused(own):
    """A schedule in the folder of samplers is no sampler."""
    own("samplers/warmup.py", WARMUP)
    with pytest.raises(UserError, match="Sampler"):
        Fleet.model_validate(
            {"members": [{"device": "d", "link": "l"}], "jitter": {"name": "warmup", "rounds": 2}}
        )
