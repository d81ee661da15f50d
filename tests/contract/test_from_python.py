"""What commands answer, from Python: the same document, the same tables as HTML, and mistakes that say so."""

import inspect
import json
import re
import traceback
from collections import Counter
from html import unescape

import pytest
from commands import run_command, shown
from nightly import sampled
from typer.main import get_command

import edgefl
from edgefl.cli.answering import app

TINY = {"sweep": None, "server.rounds": 1, "evaluate.every": 1, "task.clients": 4, "server.participants": 2}
SET = [word for key, value in TINY.items() for word in ("--set", f"{key}={json.dumps(value)}")]
# Not the same in two processes, or in two folders.
OWN = {"host_s", "group_dir", "run_dir"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    run = edgefl.run("quickstart", overrides=TINY, engine="loop", out=folder / "run", progress=False)
    edgefl.export(run, out=folder / "model.onnx")
    return folder


# Each: the words of the command, and the same in Python; RUN and MODEL stand for what was made.
ASKED = {
    "check": (["quickstart", *SET, "--seeds", "2"], ("quickstart",), {"overrides": TINY, "seeds": 2}),
    "check --method": (["--method", "local"], (), {"method": "local"}),
    "profile": (
        ["quickstart", *SET, "--device", "raspberry-pi-5", "--layers", "--link", "4g"],
        ("quickstart",),
        {"overrides": TINY, "device": "raspberry-pi-5", "layers": True, "link": "4g"},
    ),
    "compare": (["RUN", "--target", "0.1", "--all"], ("RUN",), {"target": 0.1, "all": True}),
    "report": (["RUN", "--out", "page.html"], ("RUN",), {"out": "page.html", "force": True}),
    "export": (
        ["RUN", "--out", "m.onnx", "--softmax"],
        ("RUN",),
        {"out": "m.onnx", "softmax": True, "force": True},
    ),
    "bench": (
        ["MODEL", "--device", "raspberry-pi-5", "--device", "galaxy-s22", "--predict-only"],
        ("MODEL",),
        {"device": ["raspberry-pi-5", "galaxy-s22"], "predict_only": True},
    ),
    "replay": (
        ["RUN", "--fleet", "city-phones", "--fleet", "home-lab", "--link", "4g"],
        ("RUN",),
        {"fleet": ["city-phones", "home-lab"], "link": "4g"},
    ),
}


def stripped(document):
    if isinstance(document, dict):
        return {key: stripped(value) for key, value in document.items() if key not in OWN}
    return [stripped(value) for value in document] if isinstance(document, list) else document


def ask(asked, made):
    _, given, options = ASKED[asked]
    known = {"RUN": edgefl.open(made / "run"), "MODEL": made / "model.onnx"}
    return getattr(edgefl, asked.split()[0])(*(known.get(one, one) for one in given), **options)


@sampled(2, "asked", ASKED)
def test_the_document_is_the_commands(asked, made, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = {"RUN": made / "run", "MODEL": made / "model.onnx"}
    command = [asked.split()[0], *(words.get(one, one) for one in ASKED[asked][0]), "--json"]
    status, out, _ = run_command(capsys, *command)
    assert status == 0
    answer = ask(asked, made)
    assert stripped(answer.document) == stripped(json.loads(out)) != {}
    assert capsys.readouterr() == ("", "")
    assert len(repr(answer)) < 100


def test_a_run_has_the_document_of_its_command(capsys, tmp_path):
    options = ("--engine", "null", "--seed", "3", "--out", tmp_path / "one", "--json")
    status, out, _ = run_command(capsys, "run", "quickstart", *SET, *options)
    given = {"overrides": TINY, "engine": "null", "seed": 3, "out": tmp_path / "two", "progress": False}
    assert status == 0
    assert stripped(edgefl.run("quickstart", **given).document) == stripped(json.loads(out))
    assert edgefl.open(tmp_path / "one").document == json.loads(out)
    assert list(json.loads(out)) == ["group_dir", "runs", "averages", "pairs", "published", "differences"]
    assert capsys.readouterr() == ("", "")


def in_html(text):
    cells = [unescape(cell) for cell in re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", text, re.DOTALL)]
    return Counter(line.strip() for cell in cells for line in cell.split("\n") if line.strip())


def in_terminal(answer):
    lines = shown(answer, 10_000).replace("\u2503", "\u2502").splitlines()
    cells = [cell.strip() for line in lines if "\u2502" in line for cell in line.split("\u2502")]
    return Counter(cell for cell in cells if cell)


@sampled(1, "asked", [one for one in ASKED if one != "report"])
def test_a_notebook_shows_the_same_cells(asked, made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = ask(asked, made)
    html, terminal = answer._repr_html_(), in_terminal(answer)
    assert terminal
    assert terminal - in_html(html) == Counter()
    for line in (*answer.lines, *answer.notes):
        assert line in unescape(html)


MISTAKES = {
    "an unknown scenario": (lambda _: edgefl.check("quikstart"), "did you mean 'quickstart'"),
    "a setting": (lambda _: edgefl.check("quickstart", overrides={"server.round": 3}), "unknown key 'round'"),
    "a number's type": (
        lambda _: edgefl.profile("quickstart", sensitivity="2"),
        "sensitivity must be a number",
    ),
    "no run": (lambda _: edgefl.compare([]), "no run is given"),
    "two runs": (lambda run: edgefl.export([run, run]), "2 runs are given"),
    "a file": (lambda _: edgefl.bench("nowhere.onnx"), "cannot read nowhere.onnx"),
    "what was learned": (
        lambda run: edgefl.replay(run, overrides={"local.epochs": 9}),
        "nothing is learned again",
    ),
}


@pytest.mark.parametrize(("wrong", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_error(wrong, words, made, capsys):
    """Without what happened inside, and without a word on stdout."""
    with pytest.raises(edgefl.UserError) as caught:
        wrong(made / "run")
    assert words in str(caught.value)
    inside = [frame.name for frame in traceback.extract_tb(caught.tb) if "/edgefl/" in frame.filename]
    assert inside == ["call"]
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert capsys.readouterr().out == ""


def test_a_mistake_keeps_what_was_found(made, tmp_path):
    with pytest.raises(edgefl.UserError, match="quikstart") as caught:
        edgefl.check(["quikstart", "quickstart"], overrides=TINY)
    assert [run["name"] for run in caught.value.answer.document["runs"]] == ["quickstart"]
    with pytest.raises(edgefl.UserError, match="city") as caught:
        edgefl.replay(made / "run", fleet=["city", "home-lab"], out=tmp_path / "replayed")
    assert [one["fleet"] for one in caught.value.answer.document["refused"]] == ["city"]
    assert len(edgefl.open(tmp_path / "replayed").runs) == 1


def test_what_fails_is_in_the_answer():
    """A scenario that is right but cannot run is no mistake: it has a status, and an error that says why."""
    nobody = {"fleet": {"members": [{"device": "coral-edge-tpu", "link": "4g", "dtype": "int8"}]}}
    answer = edgefl.check("quickstart", overrides=TINY | nobody)
    assert [run["status"] for run in answer.document["runs"]] == ["failed"]
    assert "every client was refused" in str(answer.errors[0])
    assert "every client was refused" in answer._repr_html_()


def test_words_are_those_of_the_commands():
    """Arguments have the names of options, but for what `--set` sets and how Python shows progress."""
    commands = get_command(app).commands
    for name in ("bench", "check", "compare", "export", "profile", "replay", "report", "run"):
        own = {"steps", "callbacks", "progress", "model"}
        given = set(inspect.signature(getattr(edgefl, name)).parameters) - own
        options = {word.lstrip("-").replace("-", "_") for one in commands[name].params for word in one.opts}
        assert {"set" if one == "overrides" else one for one in given} <= options | {"overrides"}, name
        assert all(one in edgefl.__dict__.get(name, getattr(edgefl, name)).__doc__ for one in given), name
