"""An error in a user's file is one message with the file and line in that file, wherever it is raised."""

import json
import sys

import pytest
from commands import run_command
from nightly import sampled
from planted import ERRORS, FORGOTTEN, PLANTS
from small import SMALL

from edgefl.core.user_code import LOADED

SCENARIO = {
    **SMALL,
    "local": {**SMALL["local"], "batch_size": 180},
    "server": {"rounds": 1, "participants": 2},
    "engine": "loop",
}


@pytest.fixture
def scenario(tmp_path, monkeypatch):
    """A scenario's file, and a folder on EDGEFL_PATH; traces go to a folder of the test's."""
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("EDGEFL_PATH", str(own))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(SCENARIO), encoding="utf-8")
    return path, own


def _run(scenario, tmp_path, capsys, plant):
    settings = [f"--set={key}={value}" for key, value in plant.settings.items()]
    return run_command(capsys, "run", scenario, *settings, "--out", tmp_path / "run", "--json")


# SimPy raises copies of what its processes raise.
IN_THE_WORLD = {"policies", "selectors", "availability", "speed"}
# By day each plant raises the one or the other.
CASES = [
    pytest.param(
        plant,
        error,
        id=f"{plant.kind} {plant.hook} {error}",
        marks=() if error == "Odd" or place == nth % 2 else pytest.mark.nightly,
    )
    for nth, plant in enumerate(PLANTS)
    for place, error in enumerate(ERRORS)
    if error != "Odd" or plant.kind in IN_THE_WORLD
]


@sampled(16, ("plant", "error"), CASES)
def test_an_error_names_its_file_and_line(scenario, tmp_path, capsys, plant, error):
    """Exit status 2 in planning and 1 in the run, a short message, and the traceback in a file."""
    path, own = scenario
    file, line = plant.write(own, ERRORS[error])
    status, out, err = _run(path, tmp_path, capsys, plant)
    assert status == plant.status
    assert f"{file}:{line}" in err
    assert len(err.splitlines()) < 8
    assert ("SystemExit: 0" if error == "SystemExit" else f"{error}: planted") in err
    traces = [*tmp_path.glob("edgefl-traceback-*.txt"), *tmp_path.glob("run/traceback.txt")]
    assert [f"line {line}" in trace.read_text(encoding="utf-8") for trace in traces] == [True]
    if status == 1:
        (run,) = json.loads(out)["runs"]
        assert f"{file}:{line}" in run["reason"]
    else:
        assert not out


@sampled(8, "plant", [one for one in PLANTS if one.expected], ids=lambda one: f"{one.kind} {one.hook}")
def test_a_forgotten_return_names_its_function(scenario, tmp_path, capsys, plant):
    path, own = scenario
    file, _ = plant.write(own, FORGOTTEN)
    status, _, err = _run(path, tmp_path, capsys, plant)
    assert status == plant.status
    assert str(file) in err
    assert plant.expected in err
    assert len(err.splitlines()) < 7


DROPPED = """
from torch import nn
from edgefl.models import ModelParams
from edgefl.protocol.modules import functional_net

class Params(ModelParams):
    def build(self, shape, classes):
        return functional_net("dropped", Body, shape, classes, width=64, head_bias=True)


class Body(nn.Module):
    def forward(self, x):
        x = x.flatten(1)
        return nn.functional.dropout(x, training=self.training)
"""


@pytest.mark.nightly
def test_an_operator_without_a_cost_is_placed(scenario, capsys):
    """Dropout is refused at the line of the user's that calls it, as bad input."""
    path, own = scenario
    file = own / "models" / "dropped.py"
    file.parent.mkdir()
    file.write_text(DROPPED, encoding="utf-8")
    status, _, err = run_command(capsys, "check", path, "--set", "model=dropped")
    assert status == 2
    assert "draws random numbers" in err
    line = 1 + DROPPED.splitlines().index("        return nn.functional.dropout(x, training=self.training)")
    assert f"where: {file}:{line}" in err


MISFITS = {
    "Params.build": "    def build(self):\n        return 1\n",
    "start": (
        "    def build(self, site):\n"
        "        method = super().build(site)\n"
        "        (train,) = method.exchanges\n"
        "        def start(payload):\n"
        "            return {}\n"
        "        work = replace(train.work, start=start)\n"
        "        return replace(method, exchanges=(replace(train, work=work),))\n"
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_function_of_other_arguments_is_named(scenario, capsys, monkeypatch, name):
    """Nothing of it runs when edgefl calls it: the error is raised in edgefl's line."""
    # Of two functions of one name nobody knows which was called; others' tests have loaded some.
    for other in [one for one in sys.modules if one.startswith(LOADED)]:
        monkeypatch.delitem(sys.modules, other)
    path, own = scenario
    (own / "methods").mkdir()
    head = (
        "from dataclasses import replace\nfrom edgefl.methods import fedavg\nclass Params(fedavg.Params):\n"
    )
    file = own / "methods" / "misfit.py"
    file.write_text(head + MISFITS[name], encoding="utf-8")
    status, _, err = run_command(capsys, "check", path, "--set=method=misfit")
    line = next(
        at
        for at, text in enumerate(file.read_text().splitlines(), 1)
        if f"def {name.split('.')[-1]}(" in text
    )
    assert status == 2
    assert "methods/misfit.py cannot be called as it is: TypeError" in err
    assert f"where: {file}:{line}\n" in err
