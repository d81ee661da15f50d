"""`edgefl check --method`: shipped methods keep every promise, and each broken promise is found."""

from __future__ import annotations

import pytest
from commands import run_command
from mistakes import MISTAKES, written
from nightly import mostly

from edgefl.core import catalogue
from edgefl.core.errors import UserError
from edgefl.runs import contract
from edgefl.runs.contract import check_method


# That all methods keep them, test_methods.py and test_stacking.py claim as well.
@pytest.mark.parametrize(
    "name",
    mostly(
        catalogue.entries("methods"),
        ("fedavg", "fedclassavg", "spherefed", "scaffold", "ktpfl", "fedrep", "feddyn"),
    ),
)
def test_shipped_methods_keep_their_promises(name):
    """No shipped method breaks one; those without neutral parameters say so."""
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


@pytest.mark.parametrize("mistake", MISTAKES)
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
    """No check could be taken away without a test that fails."""
    assert contract.CHECKS.keys() == {mistake.promise for mistake in MISTAKES.values()}


# What a planted function does -> what is said of it.
SLIPS = {
    "step: carry['scalars']['loss'].item()": "step may not look at values",
    "step: float(batch.x.sum())": "step may not look at values",
    "step: batch.x.numpy()": "step may not look at values",
    "step: 1 if batch.x.sum() > 0 else 2": "step may not look at values",
    "step: batch.x[batch.x > 0]": "shapes depend on values",
    "step: batch.y.nonzero()": "shapes depend on values",
    "step: batch.x + torch.zeros(1, device='cpu')": "may not mix devices",
    "step: batch.x @ torch.zeros(3, 3)": "RuntimeError",
    "step: undefined": "NameError: name 'undefined' is not defined",
    "finish: carry['wieghts']": "KeyError: 'wieghts'",
}
_SLIP = """
    def {hook}(carry, batch):
        seen = {slip}  # here
        return {original}(carry, batch)

    return replace(method, exchanges=(replace(train, work=replace(fold, {made})),))
"""


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_in_a_function_names_its_line_and_its_promise(broken, monkeypatch, tmp_path, capsys, slip):
    """Before anything is trained: one broken promise, the line of the slip, and the traceback in a file."""
    hook, _, code = slip.partition(": ")
    original, made = {
        "step": ("fold.phases[0].step", "phases=(replace(fold.phases[0], step=step),)"),
        "finish": ("fold.finish", "finish=finish"),
    }[hook]
    text = _SLIP.format(hook=hook, slip=code, original=original, made=made)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    name = broken(text)
    status, out, _ = run_command(capsys, "check", "--method", name)
    assert status == 1
    file = tmp_path / "methods" / f"{name}.py"
    lines = file.read_text(encoding="utf-8").splitlines()
    line = 1 + next(nth for nth, one in enumerate(lines) if one.endswith("# here"))
    assert f"where: {file}:{line}" in out
    assert SLIPS[slip] in out
    assert out.count("BROKEN:") == 1
    assert "Traceback" not in out
    (trace,) = tmp_path.glob("edgefl-traceback-*.txt")
    assert f"line {line}" in trace.read_text(encoding="utf-8")


def test_the_command_fails_on_a_broken_promise(broken, capsys, monkeypatch):
    """Exit status 1 and a table; 0 where all is kept; 2 for an unknown name."""
    monkeypatch.setenv("COLUMNS", "120")
    wrong = broken(MISTAKES["the first arrival alone"].code)
    status, out, _ = run_command(capsys, "check", "--method", wrong)
    assert (status, "BROKEN" in out) == (1, True)
    status, out, _ = run_command(capsys, "check", "--method", "local")
    assert (status, "the method has no neutral parameters" in out) == (0, True)


def test_parameters_and_the_scenario_can_be_set(capsys):
    """`--set` reaches the checked method and its base; FedAvg, which it is compared with, has the model."""
    settings = ("method.base=fedprox", "method.base.mu=0.5", "model.hidden=[6]")
    given = [part for setting in settings for part in ("--set", setting)]
    status, out, _ = run_command(capsys, "check", "--method", "flexchill", *given)
    assert status == 0
    assert "BROKEN" not in out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("method.nu=1", "unknown key 'nu'"),
        ("method=local", "--method says which method is checked"),
        ("method.name=local", "--method says which method is checked"),
        ("sweep.seed=[1, 2]", "one method is checked at a time"),
        ("method.mu=-1", "--set method.mu=-1"),
    ],
)
def test_wrong_settings_are_bad_input(capsys, given, message):
    """Exit status 2, and where it stands."""
    status, _, err = run_command(capsys, "check", "--method", "fedprox", "--set", given)
    assert status == 2
    assert message in err
    assert "--set" in err


def test_an_unknown_method_is_bad_input():
    """The nearest name is suggested."""
    with pytest.raises(UserError, match="unknown method 'fedagv'") as caught:
        check_method({"name": "fedagv"})
    assert caught.value.hint == "did you mean 'fedavg'?"


@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        ("methods", "return 3", "its build returned int, not edgefl.protocol.Method"),
        ("methods", None, "the Params of this method lack 'build'"),
        ("models", "return None", "its build returned NoneType, not edgefl.protocol.Net"),
        ("models", None, "the Params of this model lack 'build'"),
    ],
)
def test_what_builds_nothing_is_named(tmp_path, monkeypatch, capsys, kind, code, message):
    """The file at fault, not the one that would have used what it built."""
    base = {"methods": "MethodParams", "models": "ModelParams"}[kind]
    build = "pass" if code is None else f"def build(self, *given):\n        {code}\n"
    head = f"from edgefl.{kind} import {base}\nclass Params({base}):\n    "
    (tmp_path / kind).mkdir()
    (tmp_path / kind / "mine.py").write_text(f"'''Mine.'''\n{head}{build}", encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    setting = f"{kind.removesuffix('s')}=mine"
    status, _, err = run_command(capsys, "check", "quickstart", "--set", "sweep=null", "--set", setting)
    assert (status, message in " ".join(err.split())) == (2, True)
    assert f"{kind}/mine.py" in err


def _place(folder, text):
    """The file and line of a text in the broken method."""
    (file,) = (folder / "methods").glob("*.py")
    before, _, _ = file.read_text(encoding="utf-8").partition(text)
    return f"{file}:{before.count(chr(10)) + 1}"


# What an objective returns -> what is said of it.
OBJECTIVES = {
    "loss": "returned an object of class 'Tensor' instead of (loss, buffers)",
    "(loss, None)": "returned an object of class 'tuple' instead of (loss, buffers)",
    "(batch.y * loss, {})": "the objective's loss has the shape (32,) instead of being one number",
}


@pytest.mark.parametrize("returned", OBJECTIVES)
def test_what_an_objective_returns_is_checked(broken, tmp_path, returned):
    """A loss alone, no buffers, a loss for each sample: the finding names the objective's line."""
    mistake = f"""
    from edgefl.protocol import averaging, local_training, plain_objective

    def objective(weights, batch, carry):
        loss, _ = plain_objective(site.net)(weights, batch, carry)
        return {returned}

    return averaging(site, local_training(site, objective), shared=("body", "head", "buffers"))
"""
    (found,) = check_method({"name": broken(mistake)})
    assert OBJECTIVES[returned] in found.detail
    assert found.where == _place(tmp_path, "def objective")


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("shared=('body', 'classifier')", "shared names 'classifier'; the net has body, head, buffers"),
        ("shared=('body',), own=('head',)", "own names 'head'; shared are body"),
    ],
)
def test_parts_that_do_not_exist_are_named(broken, tmp_path, given, what):
    """With those that do, and the line of the call."""
    mistake = f"""
    from edgefl.protocol import averaging, local_training, plain_objective
    return averaging(site, local_training(site, plain_objective(site.net)), {given})
"""
    (found,) = check_method({"name": broken(mistake)})
    assert what in found.detail
    assert found.where == _place(tmp_path, "return averaging(site, local_training")
