"""The engine auto: what it chooses follows from the plan, and it says why."""

import json
from types import SimpleNamespace

import pytest
import torch
from nightly import sampled
from plans import plan as hand_made
from plans import prices

import edgefl
from edgefl.compute.engines.auto import Params
from edgefl.core.errors import UserError
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.runs import auto
from edgefl.runs.context import Context
from edgefl.runs.group import drafts
from edgefl.runs.states import States
from edgefl.store.reader import read
from edgefl.trackers import Callbacks

SCENARIO = {
    "name": "chosen",
    "task": {"dataset": "digits", "clients": 6, "partition": "iid"},
    "model": {"name": "mlp", "hidden": [8]},
    "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.1}},
    "method": "fedavg",
    "fleet": "home-lab",
    "server": {"participants": 4, "rounds": 1},
    "evaluate": {"models": ["global"]},
}
FEW = {"server": {"participants": 2, "rounds": 1}}
MANY = {"task": {**SCENARIO["task"], "clients": 12}, "server": {"rounds": 1}}
LARGE = {**MANY, "model": {"name": "mlp", "hidden": [2000]}}


@pytest.fixture(autouse=True)
def nothing_pinned(monkeypatch):
    monkeypatch.delenv("EDGEFL_ENGINE")


def chosen(out, engine="auto", callbacks=None, **changes):
    """What ``host.json`` says about a run's engine."""
    (one,) = edgefl.run({**SCENARIO, **changes}, engine=engine, out=out, callbacks=callbacks).runs
    assert one.status == "done"
    return json.loads((one.folder / "host.json").read_text(encoding="utf-8"))["engine"]


def context_of(tmp_path, changes=None):
    """A scenario's run before anything was learned."""
    (draft,) = drafts({**SCENARIO, **(changes or {})})
    return Context(plan(draft, DataAccess(need="embedded")), States(tmp_path / "states", 10**9))


def choice(tmp_path, changes=None, **params):
    """What auto chooses for a scenario, without training."""
    return auto.choose(context_of(tmp_path, changes), Params(**params))


@pytest.mark.parametrize(
    ("kernels", "kernel_bytes", "together", "stacks"),
    [(20, 8e3, 3.5, False), (20, 8e3, 3.7, True), (20, 127e3, 64, True), (20, 129e3, 64, False)],
)
def test_small_kernels_are_stacked_where_enough_clients_share_a_step(kernels, kernel_bytes, together, stacks):
    """A stacked step costs 1.6 of a client's own and 40 kernels; one of large kernels gains nothing."""
    shape = auto.Shape(kernels, kernel_bytes, together, units=1, jobs=64, expected_s=1.0)
    assert shape.stacks(gpu=False) is stacks
    assert shape.stacks(gpu=True)


@sampled(
    2,
    ("changes", "family", "why"),
    [(FEW, "loop", "clients share a step"), (MANY, "vmapped", "kB each"), (LARGE, "loop", "too large")],
)
def test_the_plan_alone_chooses_the_family(tmp_path, monkeypatch, changes, family, why):
    first = choice(tmp_path, changes)
    assert first.engine["name"] == family
    assert why in first.why
    monkeypatch.setattr(auto, "START_S", 0.0)
    for cores, workers in ((1, None), (8, None), (1, 1), (1, 3)):
        monkeypatch.setattr(auto, "cores", lambda cores=cores: cores)
        found = choice(tmp_path, changes, workers=workers).engine
        assert found.get("inner", found["name"]) == family


@pytest.mark.parametrize(
    ("at", "every", "steps", "heaviest"),
    [("round", 4, 2, "first"), ("end", 1, 9, "first"), ("end", 1, 11, "second")],
)
def test_the_heaviest_exchange_is_that_of_the_most_steps(at, every, steps, heaviest):
    """One step in each of 10 rounds, beside every round, every fourth, or once at the end; of all clients."""
    second = prices("second", 5, at=at, every=every, everyone=True, steps=steps)
    plan_ = hand_made([prices("first", 5, steps=1), second], rounds=10, participants=3, refused=[1])
    jobs = auto.cohort_of(SimpleNamespace(planned=SimpleNamespace(plan=plan_)))
    assert {job.exchange for job in jobs} == {heaviest}
    assert [job.client for job in jobs] == ([0, 2, 3] if heaviest == "first" else [0, 2, 3, 4])


@pytest.mark.parametrize(
    ("family", "cores", "expected_s", "workers"),
    [
        *[("loop", 2, 5.9, 1), ("loop", 2, 6.1, 2), ("loop", 8, 4.1, 4), ("loop", 1, 1e6, 1)],
        # Four clients to a step of 20 kernels take nine tenths of a client's time.
        *[("vmapped", 2, 6.6, 1), ("vmapped", 2, 6.8, 2), ("vmapped", 8, 1e6, 3)],
    ],
)
def test_workers_train_where_they_save_more_than_their_start(monkeypatch, family, cores, expected_s, workers):
    monkeypatch.setattr(auto, "cores", lambda: cores)
    shape = auto.Shape(20, 8e3, 4.0, units=3, jobs=4, expected_s=expected_s)
    assert shape.workers(family) == workers


def test_workers_share_the_groups_that_there_are(tmp_path, monkeypatch):
    monkeypatch.setattr(auto, "cores", lambda: 8)
    assert choice(tmp_path, FEW).engine["name"] == "loop"
    assert choice(tmp_path, FEW, workers=3).engine["workers"] == 3
    monkeypatch.setattr(auto, "START_S", 0.0)
    assert choice(tmp_path, FEW).engine["workers"] == 2
    # One group cannot be shared.
    assert choice(tmp_path, MANY).engine["name"] == "vmapped"
    assert choice(tmp_path, FEW, workers=1).engine["name"] == "loop"


@pytest.mark.parametrize(("device", "engine"), [("cpu", "processes"), ("cuda", "loop")])
def test_a_gpu_trains_in_one_process(monkeypatch, device, engine):
    monkeypatch.setattr(auto, "cores", lambda: 8)
    monkeypatch.setattr(auto, "shape_of", lambda _: auto.Shape(20, 8e3, 1.0, units=4, jobs=4, expected_s=1e6))
    context = SimpleNamespace(builder=SimpleNamespace(device=torch.device(device)))
    assert auto.choose(context, Params()).engine["name"] == engine
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    Params(workers=2, device="cpu").check()
    with pytest.raises(UserError, match="2 workers would train on the CPU"):
        Params(workers=2).check()


def test_the_engine_is_told_once_and_kept_with_the_run(tmp_path):
    class Told(Callbacks):
        lines = ()

        def told(self, so_far):
            if so_far.what == "ready":
                self.lines += (so_far.engine,)

    told = Told()
    engine = chosen(tmp_path / "1", callbacks=told, **MANY)
    assert told.lines == (f"engine: vmapped ({engine['auto']['why']}), 1 process",)
    with read(tmp_path / "1") as reader:
        assert reader.meta["engine"] == "vmapped"
        assert reader.meta["trainer"] == {"family": "vmapped", "group": 64, "memory": 2e9, "device": "cpu"}
    chosen(tmp_path / "2", "loop", callbacks=told, **FEW)
    assert told.lines[1:] == ("engine: loop (as asked), 1 process",)


def test_the_pinned_engine_takes_the_parameters_that_it_has(tmp_path, monkeypatch):
    monkeypatch.setenv("EDGEFL_ENGINE", "loop")
    given = {"name": "auto", "device": "cpu", "state_memory": "5 MB", "workers": 3}
    engine = chosen(tmp_path / "1", given)
    assert (engine["name"], engine["device"], engine["state_memory"]) == ("loop", "cpu", 5e6)
    assert "workers" not in engine
    with pytest.raises(UserError, match="wrokers"):
        chosen(tmp_path / "2", {**given, "wrokers": 3})
    monkeypatch.setenv("EDGEFL_ENGINE", "lop")
    with pytest.raises(UserError, match="unknown engine 'lop'") as caught:
        chosen(tmp_path / "3")
    assert caught.value.where == "EDGEFL_ENGINE"
