"""`edgefl check --method`: shipped methods keep every promise, and each broken promise is found."""

import given_modules
import pytest
from commands import run_command
from mistakes import MISTAKES, written
from nightly import mostly, sampled

from edgefl.core import catalogue
from edgefl.runs import contract
from edgefl.runs.contract import check_method

NORMED = f"model={{name: module, path: {given_modules.__file__}, make: Plain}}"
# What a method does often, and need not do often to be checked.
LESS = {"fedcurv": ["method.samples=50"], "ccvr": ["method.epochs=1"]}
METHODS = tuple(catalogue.entries("methods"))
NORMED_TOO = ("fedavg", "lg-fedavg")
# By day the first mistake against each promise.
FIRST = {mistake.promise: name for name, mistake in reversed(MISTAKES.items())}.values()


@sampled(1, "name", METHODS)
def test_shipped_methods_keep_their_promises(name):
    """No shipped method breaks one, on batch norm neither; those without neutral parameters say so."""
    settings = [*LESS.get(name, []), "evaluate.holdout=0.8"]
    for more in ([], [NORMED])[: 1 + (name in NORMED_TOO)]:
        found = check_method({"name": name}, [*settings, *more])
        assert [one for one in found if one.kept is False] == []


SINGLE = """
'''FedAvg whose step multiplies by the identity in single precision.'''
from dataclasses import replace
import torch
from edgefl.methods import fedavg


class Params(fedavg.Params):
    def build(self, site):
        method = super().build(site)
        (train,) = method.exchanges
        (phase,) = train.work.phases

        def step(carry, batch):
            one = torch.eye(batch.x.shape[-1], dtype=torch.float32, device=batch.x.device)
            return phase.step(carry, batch._replace(x=batch.x @ one))

        work = replace(train.work, phases=(replace(phase, step=step),))
        return replace(method, exchanges=(replace(train, work=work),))
"""


@pytest.mark.nightly
def test_a_method_of_single_precision_keeps_its_promises(own):
    """Where clients are compared in double precision, it cannot run."""
    name = own("methods", "single", SINGLE).stem
    assert [one for one in check_method({"name": name}) if one.kept is False] == []


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """Puts a method with a mistake on EDGEFL_PATH and gives its name."""

    def write(wrong):
        monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
        name = f"broken{abs(hash(wrong))}"
        written(tmp_path, name, wrong)
        return name

    return write


@sampled(5, "mistake", mostly(MISTAKES, FIRST))
def test_a_mistake_is_found(broken, monkeypatch, tmp_path, mistake):
    """The promise that it breaks is named, with how, and with the file and line of the mistake."""
    promise, begins, words, wrong = MISTAKES[mistake]
    # The other checks take a second.
    first = contract.FIRST if promise in contract.FIRST else {}
    monkeypatch.setattr(contract, "CHECKS", {**first, promise: contract.CHECKS[promise]})
    found = {one.promise: one for one in check_method({"name": broken(wrong)})}
    assert [one.promise for one in found.values() if one.kept is False] == [promise]
    assert words in found[promise].detail
    assert found[promise].where == _place(tmp_path, begins)
    assert "please report" not in "".join(one.hint for one in found.values())


def test_every_promise_has_a_mistake():
    assert contract.CHECKS.keys() == {mistake.promise for mistake in MISTAKES.values()}


# What a step does -> what is said of it.
SLIPS = {
    "carry['scalars']['loss'].item()": "step may not look at values",
    "batch.x[batch.x > 0]": "shapes depend on values",
    "batch.x + torch.zeros(1, device='cpu')": "may not mix devices",
    "carry['wieghts']": "KeyError: 'wieghts'",
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_in_a_function_names_its_line_and_its_promise(broken, monkeypatch, tmp_path, capsys, slip):
    """Before anything is trained: one broken promise, the line of the slip, and the traceback in a file."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    name = broken(f"""
    def step(carry, batch):
        seen = {slip}  # here
        return fold.phases[0].step(carry, batch)

    return stepping(step)
""")
    status, out, _ = run_command(capsys, "check", "--method", name)
    assert status == 1
    where = _place(tmp_path, "  # here")
    assert f"where: {where}" in out
    assert SLIPS[slip] in out
    assert out.count("BROKEN:") == 1
    assert "Traceback" not in out
    (trace,) = tmp_path.glob("edgefl-traceback-*.txt")
    assert f"line {where.rpartition(':')[2]}" in trace.read_text(encoding="utf-8")


@pytest.mark.nightly
def test_parameters_and_the_scenario_can_be_set(capsys):
    """`--set` reaches the checked method and its base; FedAvg, which it is compared with, has the model."""
    settings = ("method.base=fedprox", "method.base.mu=0.5", "model.hidden=[6]")
    given = [part for setting in settings for part in ("--set", setting)]
    status, out, _ = run_command(capsys, "check", "--method", "flexchill", *given)
    assert status == 0
    assert "BROKEN" not in out


@pytest.mark.parametrize(
    ("given", "message"),
    [("method=local", "--method says which"), ("sweep.seed=[1, 2]", "one method is checked at a time")],
)
def test_wrong_settings_are_bad_input(capsys, given, message):
    status, _, err = run_command(capsys, "check", "--method", "fedprox", "--set", given)
    assert (status, message in err) == (2, True)


def _place(folder, text):
    (file,) = (folder / "methods").glob("*.py")
    before, _, _ = file.read_text(encoding="utf-8").partition(text)
    return f"{file}:{before.count(chr(10)) + 1}"


# What an objective returns -> what is said of it.
OBJECTIVES = {
    "loss": "returned an object of class 'Tensor' instead of (loss, buffers)",
    "(batch.y * loss, {})": "the objective's loss has the shape (32,) instead of being one number",
}


@pytest.mark.parametrize("returned", OBJECTIVES)
def test_what_an_objective_returns_is_checked(broken, tmp_path, returned):
    """A loss alone, no buffers, a loss for each sample: the finding names the objective's line."""
    mistake = f"""
    from edgefl.protocol import NetObjective, averaging, local_training

    def objective(weights, batch, carry):
        loss, _ = NetObjective(site.net)(weights, batch, carry)
        return {returned}

    return averaging(site, local_training(site, objective), shared=("body", "head", "buffers"))
"""
    (found,) = check_method({"name": broken(mistake)})
    assert OBJECTIVES[returned] in found.detail
    assert found.where == _place(tmp_path, "def objective")
