"""The engine auto: measures once, keeps what it chose, and says why."""

from __future__ import annotations

import json

import pytest

import edgefl
from edgefl.core.errors import UserError
from edgefl.runs import auto

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
# Uses an operator that vmap has no rule for.
SOURCE = """
'''FedAvg with an operator on lists.'''
import torch
from edgefl.core.params import Strict
from edgefl.protocol import averaging, local_training, plain_objective

class Params(Strict):
    pass

def build(params, site):
    plain = plain_objective(site.net)

    def objective(weights, batch, carry):
        (x,) = torch._foreach_mul([batch.x], 1.0)
        return plain(weights, batch._replace(x=x), carry)

    train = local_training(site, objective)
    return averaging(site, train, shared=(*site.net.trained, "buffers"))
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of the test's own, and nothing pinned."""
    monkeypatch.delenv("EDGEFL_ENGINE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "edgefl" / "engines.json"


def chosen(out, engine="auto", **changes):
    """What ``host.json`` says about a run's engine."""
    (one,) = edgefl.run({**SCENARIO, **changes}, engine=engine, out=out).runs
    assert one.status == "done"
    return json.loads((one.folder / "host.json").read_text(encoding="utf-8"))["engine"]


def test_it_measures_once_and_keeps_what_it_chose(tmp_path, cache):
    """The same work gets the same engine, whatever its seed; other work is measured for itself."""
    first = chosen(tmp_path / "1")
    assert first["auto"]["kept"] is False
    assert first["name"] in first["auto"]["measured"]["client_step_s"]
    assert set(first["auto"]["measured"]["client_step_s"]) == {"loop", "vmapped"}
    again = chosen(tmp_path / "2", seed=3)
    assert again["auto"] == {**first["auto"], "kept": True}
    assert len(json.loads(cache.read_text(encoding="utf-8"))) == 1
    assert chosen(tmp_path / "3", model={"name": "mlp", "hidden": [9]})["auto"]["kept"] is False


def test_what_was_kept_decides(tmp_path, cache):
    """A kept choice is taken without measuring; a damaged one is measured again."""
    chosen(tmp_path / "1")
    kept = json.loads(cache.read_text(encoding="utf-8"))
    (entry,) = kept.values()
    entry["engine"] = {"name": "vmapped", "group": 3}
    cache.write_text(json.dumps(kept), encoding="utf-8")
    again = chosen(tmp_path / "2")
    assert (again["name"], again["group"]) == ("vmapped", 3)
    for damaged in ({"name": "warp"}, {"name": "loop", "workers": 1}, None):
        entry["engine"] = damaged
        cache.write_text(json.dumps(kept), encoding="utf-8")
        assert chosen(tmp_path / f"{damaged}")["auto"]["kept"] is False
    cache.write_text("{", encoding="utf-8")
    assert chosen(tmp_path / "3")["auto"]["kept"] is False


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path, monkeypatch):
    """The choice is made, and made again the next time."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    for name in ("1", "2"):
        assert chosen(tmp_path / name)["auto"]["kept"] is False


def test_workers_are_tried_where_training_takes_long(tmp_path, monkeypatch):
    """They are measured like the others, and taken only where they are clearly faster."""
    monkeypatch.setattr(auto, "LONG_S", 0.0)
    monkeypatch.setattr(auto, "cores", lambda: 2)
    engine = chosen(tmp_path / "1")
    times = engine["auto"]["measured"]["client_step_s"]
    assert set(times) == {"loop", "vmapped", "processes"}
    fastest = min(times["loop"], times["vmapped"])
    assert (engine["name"] == "processes") == (times["processes"] * auto.CLEARLY < fastest)
    assert (
        "processes"
        not in chosen(tmp_path / "2", {"name": "auto", "workers": 1})["auto"]["measured"]["client_step_s"]
    )


def test_a_method_that_cannot_be_stacked_is_looped(tmp_path, monkeypatch):
    """Why vmapped was not taken is told."""
    folder = tmp_path / "own" / "methods"
    folder.mkdir(parents=True)
    (folder / "lists.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path / "own"))
    engine = chosen(tmp_path / "1", method="lists")
    assert engine["name"] == "loop"
    assert "_foreach_mul" in engine["auto"]["measured"]["notes"]["vmapped"]


def test_other_code_is_other_work(tmp_path, monkeypatch):
    """A choice is not kept where the user's own code has changed; other files there do not matter."""
    folder = tmp_path / "own" / "methods"
    folder.mkdir(parents=True)
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path / "own"))
    (folder / "lists.py").write_text(SOURCE, encoding="utf-8")
    chosen(tmp_path / "1", method="lists")
    (folder / "notes.txt").write_text("what to try next", encoding="utf-8")
    assert chosen(tmp_path / "2", method="lists")["auto"]["kept"] is True
    (folder / "lists.py").write_text(SOURCE + "# other\n", encoding="utf-8")
    assert chosen(tmp_path / "3", method="lists")["auto"]["kept"] is False


def test_measuring_changes_no_result(tmp_path):
    """A run by auto is, to the last bit, a run by the engine that it chose."""
    engine = chosen(tmp_path / "1", method="fedclassavg")
    chosen(tmp_path / "2", engine["auto"]["engine"], method="fedclassavg")
    one, other = (sorted((tmp_path / name / "versions").iterdir()) for name in ("1", "2"))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]


def test_the_environment_pins_it(tmp_path, monkeypatch):
    """EDGEFL_ENGINE names what auto is, for those who want one engine everywhere."""
    monkeypatch.setenv("EDGEFL_ENGINE", "vmapped")
    engine = chosen(tmp_path / "1")
    assert engine["name"] == "vmapped"
    assert "auto" not in engine


def test_the_pinned_engine_takes_the_parameters_that_it_has(tmp_path, monkeypatch):
    """A parameter of auto that the engine lacks is nothing to it; one that auto lacks is an error as ever."""
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


def test_a_run_whose_clients_are_all_refused_stops_no_other(tmp_path):
    """It fails with the numbers, before anything is measured; the sweep goes on."""
    sweep = {"runs": [{"model": {"name": "mlp", "hidden": [6000, 6000]}}, {"name": "small"}]}
    fleet = {"like": "home-lab", "members": [{"device": "raspberry-pi-zero-2w", "link": "wifi-pi4"}]}
    runs = edgefl.run({**SCENARIO, "fleet": fleet, "sweep": sweep}, out=tmp_path / "runs").runs
    assert [run.status for run in runs] == ["failed", "done"]
    assert "every client was refused" in runs[0].reason
    assert "parameters 146 MB" in runs[0].reason
