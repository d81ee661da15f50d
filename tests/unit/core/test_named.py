"""Users' own optimizers, schedules and samplers: one file each, named in a scenario."""

import pytest

from edgefl.core.drafts import load
from edgefl.core.yamls import Document
from edgefl.planning.schema import schema
from edgefl.runs.group import run

SIGN = """
from edgefl.core.optimizers import Optimizer


class Params(Optimizer):
    width: float | None = 1.0
    scale: dict[str, float] = {"all": 1.0}

    def state(self, zeros):
        return {}

    def update(self, each, values, gradients, state, lr):
        each("add_", values, each("mul", each("sign", gradients), self.width), alpha=-lr * self.scale["all"])
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
    name: sign_sgd
    lr: 0.01
    schedule: {name: warmup, rounds: 2}
fleet: {like: home-lab, slowdown: {name: two-speeds, slow: 3.0}}
server: {rounds: 2}
"""


@pytest.fixture(autouse=True)
def all_three(own):
    own("optimizers/sign_sgd.py", SIGN)
    own("schedules/warmup.py", WARMUP)
    own("samplers/two_speeds.py", TWO_SPEEDS)


def test_own_records_are_found_by_name():
    """They are read with their parameters, written out with all of them, and offered to editors."""
    (draft,) = load(Document.parse(SCENARIO, "s.yaml"))
    optimizer = draft.scenario.local.optimizer
    assert [optimizer.schedule.factor(round_, 3) for round_ in range(3)] == [0.5, 1.0, 1.0]
    written = draft.scenario.resolved()
    schedule = {"name": "warmup", "rounds": 2}
    settings = {"name": "sign-sgd", "lr": 0.01, "weight_decay": 0.0, "schedule": schedule, "width": 1.0}
    settings["scale"] = {"all": 1.0}
    assert written["local"]["optimizer"] == settings
    assert written["fleet"]["slowdown"] == {"name": "two-speeds", "slow": 3.0}
    definitions = schema()["$defs"]
    for kind, name in (("optimizers", "sign-sgd"), ("schedules", "warmup"), ("samplers", "two-speeds")):
        assert name in definitions[kind]["anyOf"][0]["enum"]


@pytest.mark.parametrize("engine", ["loop", "vmapped"])
def test_own_records_train(tmp_path, engine):
    (done,) = run(Document.parse(SCENARIO, "s.yaml").data, engine=engine, out=tmp_path / "runs").runs
    assert done.status == "done"
    assert {client["slowdown"] for client in done.table("clients")} <= {1.0, 3.0}
