"""`edgefl check --method`: shipped methods keep every promise, and each broken promise is found."""

from __future__ import annotations

import pytest
from commands import run_command

from edgefl.cli import main
from edgefl.core import catalogue
from edgefl.core.errors import UserError
from edgefl.runs.contract import check_method

# A method like FedAvg with one thing wrong; {wrong} is put into the function named.
BROKEN = """
\"\"\"FedAvg with a mistake.\"\"\"
from dataclasses import replace

import torch

from edgefl.core.params import Strict
from edgefl.methods import fedavg


class Params(Strict):
    \"\"\"None.\"\"\"


def build(params, site):
    method = fedavg.build(fedavg.Params(), site)
    (train,) = method.exchanges
    fold = train.work

{wrong}
"""

MISTAKES = {
    "traced bytes match real payloads and uploads": """
    def finish(carry, ctx):
        upload, state = fold.finish(carry, ctx)
        if not upload["head"]["bias"].is_meta:
            upload = {**upload, "secret": {"x": torch.zeros(3)}}
        return upload, state

    return replace(method, exchanges=(replace(train, work=replace(fold, finish=finish)),))
""",
    "functions leave their arguments unchanged": """
    def merge(server, arrivals):
        server["head"]["bias"].add_(1.0)
        return train.merge(server, arrivals)

    return replace(method, exchanges=(replace(train, merge=merge),))
""",
    "merging does not depend on the order of arrivals": """
    def merge(server, arrivals):
        return arrivals[0].upload

    return replace(method, exchanges=(replace(train, merge=merge),))
""",
    "equal seeds give equal bits": """
    def merge(server, arrivals):
        merged = train.merge(server, arrivals)
        noise = torch.randn(10)
        return {**merged, "head": {**merged["head"], "bias": merged["head"]["bias"] + noise}}

    return replace(method, exchanges=(replace(train, merge=merge),))
""",
    "training together equals training alone": """
    calls = []

    def start(payload, state, ctx):
        calls.append(ctx.client)
        carry = fold.start(payload, state, ctx)
        return {**carry, "lr": carry["lr"] / len(calls)}

    return replace(method, exchanges=(replace(train, work=replace(fold, start=start)),))
""",
    "models predict finite logits": """
    def personal(server, state):
        predictor = method.personal_model(server, state)
        return replace(predictor, logits=lambda weights, x: predictor.logits(weights, x) / 0.0)

    return replace(method, personal_model=personal, global_model=None)
""",
    "equals FedAvg bit for bit at neutral parameters": """
    def merge(server, arrivals):
        merged = train.merge(server, arrivals)
        return {**merged, "head": {**merged["head"], "bias": merged["head"]["bias"] * 0.5}}

    return replace(method, exchanges=(replace(train, merge=merge),))
""",
}


@pytest.mark.parametrize("name", catalogue.entries("methods"))
def test_shipped_methods_keep_their_promises(name):
    """No shipped method breaks one; those without neutral parameters say so."""
    assert [one for one in check_method({"name": name}) if one.kept is False] == []


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """Puts a broken method on EDGEFL_PATH and gives its name."""

    def write(promise):
        (tmp_path / "methods").mkdir()
        name = f"broken{list(MISTAKES).index(promise)}"
        path = tmp_path / "methods" / f"{name}.py"
        path.write_text(BROKEN.replace("{wrong}", MISTAKES[promise]), encoding="utf-8")
        monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
        return name

    return write


# The function that a mistake is in, by promise.
BLAMED = {
    "traced bytes match real payloads and uploads": "finish",
    "functions leave their arguments unchanged": "merge",
    "merging does not depend on the order of arrivals": "merge",
    "equal seeds give equal bits": "merge",
    "training together equals training alone": "start",
    "models predict finite logits": "personal",
    "equals FedAvg bit for bit at neutral parameters": "build",
}


@pytest.mark.parametrize("promise", MISTAKES)
def test_a_broken_promise_is_found(broken, tmp_path, promise):
    """Each mistake breaks its promise, and the finding says how, and in which file and line."""
    name = broken(promise)
    found = {one.promise: one for one in check_method({"name": name})}
    assert found[promise].kept is False
    assert found[promise].detail
    file = tmp_path / "methods" / f"{name}.py"
    lines = file.read_text(encoding="utf-8").splitlines()
    line = 1 + next(nth for nth, one in enumerate(lines) if f"def {BLAMED[promise]}(" in one)
    assert found[promise].where == f"{file}:{line}"


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
    monkeypatch.setitem(MISTAKES, "equal seeds give equal bits", text)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    name = broken("equal seeds give equal bits")
    status, out, err = run_command(capsys, "check", "--method", name)
    assert status == 1
    file = tmp_path / "methods" / f"{name}.py"
    lines = file.read_text(encoding="utf-8").splitlines()
    line = 1 + next(nth for nth, one in enumerate(lines) if one.endswith("# here"))
    assert f"where: {file}:{line}" in out
    assert SLIPS[slip] in out
    assert out.count("BROKEN:") == 1
    assert "Traceback" not in out + err
    (trace,) = tmp_path.glob("edgefl-traceback-*.txt")
    assert f"line {line}" in trace.read_text(encoding="utf-8")


def test_what_cannot_be_stacked_is_found(broken, monkeypatch):
    """A start that branches on a client's samples works alone; the finding has torch's words."""
    promise = "training together equals training alone"
    mistake = """
    def start(payload, state, ctx):
        carry = fold.start(payload, state, ctx)
        return carry if ctx.samples > 100 else {**carry}

    return replace(method, exchanges=(replace(train, work=replace(fold, start=start)),))
"""
    monkeypatch.setitem(MISTAKES, promise, mistake)
    found = {one.promise: one for one in check_method({"name": broken(promise)})}
    assert [one for one in found.values() if one.kept is False] == [found[promise]]
    assert "data-dependent control flow" in found[promise].detail


def test_the_command_fails_on_a_broken_promise(broken, capsys, monkeypatch):
    """Exit status 1 and a table; 0 where all is kept; 2 for an unknown name."""
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit) as ended:
        main(["check", "--method", broken("merging does not depend on the order of arrivals")])
    assert ended.value.code == 1
    assert "BROKEN" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["check", "--method", "local"])
    assert ended.value.code == 0
    assert "the method has no neutral parameters" in capsys.readouterr().out


def test_an_unknown_method_is_bad_input():
    """The nearest name is suggested."""
    with pytest.raises(UserError, match="unknown method 'fedagv'") as caught:
        check_method({"name": "fedagv"})
    assert caught.value.hint == "did you mean 'fedavg'?"


@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        ("methods", "return 3", "its build returned int, not edgefl.protocol.Method"),
        ("methods", None, "the method 'mine' has no function 'build'"),
        ("models", "return None", "its build returned NoneType, not edgefl.protocol.Net"),
        ("models", None, "the model 'mine' has no function 'build'"),
    ],
)
def test_what_builds_nothing_is_named(tmp_path, monkeypatch, capsys, kind, code, message):
    """The file at fault, not the one that would have used what it built."""
    build = "" if code is None else f"\ndef build(*given):\n    {code}\n"
    (tmp_path / kind).mkdir()
    (tmp_path / kind / "mine.py").write_text(f"'''Mine.'''\n{build}", encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(["check", "quickstart", "--set", "sweep=null", "--set", f"{kind.removesuffix('s')}=mine"])
    assert ended.value.code == 2
    err = " ".join(capsys.readouterr().err.split())
    assert message in err
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
def test_what_an_objective_returns_is_checked(broken, monkeypatch, tmp_path, returned):
    """A loss alone, no buffers, a loss for each sample: the finding names the objective's line."""
    mistake = f"""
    from edgefl.protocol import averaging, local_training, plain_objective

    def objective(weights, batch, carry):
        loss, _ = plain_objective(site.net)(weights, batch, carry)
        return {returned}

    return averaging(site, local_training(site, objective), shared=("body", "head", "buffers"))
"""
    monkeypatch.setitem(MISTAKES, "equal seeds give equal bits", mistake)
    (found,) = check_method({"name": broken("equal seeds give equal bits")})
    assert OBJECTIVES[returned] in found.detail
    assert found.where == _place(tmp_path, "def objective")


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("shared=('body', 'classifier')", "shared names 'classifier'; the net has body, head, buffers"),
        ("shared=('body',), anchored=('head',)", "anchored names 'head'; shared are body"),
    ],
)
def test_parts_that_do_not_exist_are_named(broken, monkeypatch, tmp_path, given, what):
    """With those that do, and the line of the call."""
    mistake = f"""
    from edgefl.protocol import averaging, local_training, plain_objective
    return averaging(site, local_training(site, plain_objective(site.net)), {given})
"""
    monkeypatch.setitem(MISTAKES, "equal seeds give equal bits", mistake)
    (found,) = check_method({"name": broken("equal seeds give equal bits")})
    assert what in found.detail
    assert found.where == _place(tmp_path, "return averaging")


def test_a_function_with_other_arguments_is_named_once(broken, monkeypatch, tmp_path, capsys):
    """Its line, below all the promises that it breaks, in a table that fits 80 columns."""
    mistake = """
    def merge(arrivals):
        return arrivals[0].upload

    return replace(method, exchanges=(replace(train, merge=merge),))
"""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setitem(MISTAKES, "equal seeds give equal bits", mistake)
    status, out, _ = run_command(capsys, "check", "--method", broken("equal seeds give equal bits"))
    assert status == 1
    assert out.count("merge() takes 1 positional argument but 2 were given") == 1
    assert out.count(_place(tmp_path, "def merge")) == 1
    assert out.count("BROKEN:") > 1
    assert out.count("promises of broken3") == 1
