"""What commands answer, from Python: the same document, the same tables as HTML, and mistakes that say so."""

from __future__ import annotations

import inspect
import json
import re
import traceback
from collections import Counter
from html import unescape

import pytest
from commands import run_command, shown
from typer.main import get_command

import edgefl
from edgefl.cli.answering import app

TINY = {"sweep": None, "server.rounds": 1, "evaluate.every": 1, "task.clients": 4, "server.participants": 2}
SET = [word for key, value in TINY.items() for word in ("--set", f"{key}={json.dumps(value)}")]
# Not the same in two processes, or in two folders.
OWN = {"host_s", "group_dir", "run_dir"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of one round, and its model."""
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
    """Without what is a folder's or a process's own."""
    if isinstance(document, dict):
        return {key: stripped(value) for key, value in document.items() if key not in OWN}
    return [stripped(value) for value in document] if isinstance(document, list) else document


def ask(asked, made):
    """What a function answers, given a run as a result."""
    _, given, options = ASKED[asked]
    known = {"RUN": edgefl.open(made / "run"), "MODEL": made / "model.onnx"}
    return getattr(edgefl, asked.split()[0])(*(known.get(one, one) for one in given), **options)


@pytest.mark.parametrize("asked", ASKED)
def test_the_document_is_the_commands(asked, made, capsys, tmp_path, monkeypatch):
    """To the last number; and nothing is printed."""
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
    """Whichever of the two ran it."""
    options = ("--engine", "null", "--seed", "3", "--out", tmp_path / "one", "--json")
    status, out, _ = run_command(capsys, "run", "quickstart", *SET, *options)
    given = {"overrides": TINY, "engine": "null", "seed": 3, "out": tmp_path / "two", "progress": False}
    assert status == 0
    assert stripped(edgefl.run("quickstart", **given).document) == stripped(json.loads(out))
    assert edgefl.open(tmp_path / "one").document == json.loads(out)
    assert list(json.loads(out)) == ["group_dir", "runs", "averages", "pairs", "published", "differences"]
    assert capsys.readouterr() == ("", "")


def test_several_runs_are_one_or_a_list(made):
    """Folders and results, of which a list or a single one will do; so are devices."""
    run = edgefl.open(made / "run")
    given = str(made / "run"), made / "run", run, [run.runs[0], run]
    documents = [edgefl.compare(one).document for one in given]
    assert documents[1:] == documents[:-1]
    devices = "raspberry-pi-5", ["raspberry-pi-5"], ("raspberry-pi-5",)
    documents = [edgefl.profile("quickstart", overrides=TINY, device=one).document for one in devices]
    assert documents[1:] == documents[:-1]
    (profile,) = documents[0]["profiles"]
    assert {one["device"] for one in profile["prices"]} == {"raspberry-pi-5"}
    replays = edgefl.replay(run, fleet=["home-lab", "city-phones"])
    assert len(edgefl.compare(replays).document["runs"]) == 2


def test_formats_are_the_commands(made, capsys):
    """LaTeX, Markdown and CSV as the command writes them; else the text of its tables."""
    for name in ("latex", "markdown", "csv", "table"):
        _, out, _ = run_command(capsys, "compare", made / "run", "--format", name)
        assert edgefl.compare(made / "run", format=name).text == out


def in_html(text):
    """The cells' lines of all tables."""
    cells = [unescape(cell) for cell in re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", text, re.DOTALL)]
    return Counter(line.strip() for cell in cells for line in cell.split("\n") if line.strip())


def in_terminal(answer):
    """The same of what a wide terminal shows."""
    lines = shown(answer, 10_000).replace("\u2503", "\u2502").splitlines()
    cells = [cell.strip() for line in lines if "\u2502" in line for cell in line.split("\u2502")]
    return Counter(cell for cell in cells if cell)


@pytest.mark.parametrize("asked", [one for one in ASKED if one != "report"])
def test_a_notebook_shows_the_same_cells(asked, made, tmp_path, monkeypatch):
    """As many times, and the lines between the tables."""
    monkeypatch.chdir(tmp_path)
    answer = ask(asked, made)
    html, terminal = answer._repr_html_(), in_terminal(answer)
    assert terminal
    assert terminal - in_html(html) == Counter()
    for line in (*answer.lines, *answer.notes):
        assert line in unescape(html)


def test_runs_and_summaries_have_tables(made):
    """Those of `edgefl run`, whatever of the run is shown; their own texts are short."""
    result = edgefl.open(made / "run")
    tables = {one._repr_html_() for one in (result, result.runs[0], result.summary())}
    assert len(tables) == 1
    assert "virtual time" in tables.pop()
    assert repr(result.summary()) == f"[Summary('quickstart', done, {str(made / 'run')!r})]"
    assert result.summary().document == json.loads(json.dumps(result.document))["runs"]


def test_names_are_no_markup(tmp_path):
    """A name that looks like HTML is shown as it is."""
    given = {"overrides": {**TINY, "name": "<b>&"}, "engine": "null", "progress": False}
    result = edgefl.run("quickstart", **given, out=tmp_path / "run")
    assert "&lt;b&gt;&amp;" in result._repr_html_()
    assert "<b>" not in result._repr_html_()


MISTAKES = {
    "an unknown scenario": (lambda _: edgefl.check("quikstart"), "did you mean 'quickstart'"),
    "a scenario of another type": (lambda _: edgefl.check(3), "unknown scenario '3'"),
    "a setting": (lambda _: edgefl.check("quickstart", overrides={"server.round": 3}), "unknown key 'round'"),
    "settings": (lambda _: edgefl.check("quickstart", overrides=3), "'3' is not KEY=VALUE"),
    "a method's scenario": (lambda _: edgefl.check("quickstart", method="fedavg"), "takes no scenario"),
    "a device": (lambda _: edgefl.profile("quickstart", device="pi"), "unknown device 'pi'"),
    "a number's type": (
        lambda _: edgefl.profile("quickstart", sensitivity="2"),
        "sensitivity must be a number",
    ),
    "no run": (lambda _: edgefl.compare([]), "no run is given"),
    "a run's type": (lambda _: edgefl.compare(3), "3 is no run"),
    "a folder": (lambda _: edgefl.compare("nowhere"), "neither a run nor a group"),
    "a path": (lambda _: edgefl.compare("x" * 5000), "is too long"),
    "a target": (lambda run: edgefl.compare(run, target=2), "at most 1, not 2"),
    "a format": (lambda run: edgefl.compare(run, format="latx"), "did you mean 'latex'"),
    "a page's name": (lambda run: edgefl.report(run, out="page.txt"), "must end in .html"),
    "two runs": (lambda run: edgefl.export([run, run]), "2 runs are given"),
    "a client": (lambda run: edgefl.export(run, client=99), "there is no client 99"),
    "a file": (lambda _: edgefl.bench("nowhere.onnx"), "cannot read nowhere.onnx"),
    "a bound": (lambda _: edgefl.bench("nowhere.onnx", batch=0), "batch must be at least 1, not 0"),
    "a truth for a number": (
        lambda _: edgefl.bench("nowhere.onnx", batch=True),
        "batch must be a whole number",
    ),
    "a fleet": (lambda run: edgefl.replay(run, fleet="city"), "unknown profile 'city'"),
    "what was learned": (
        lambda run: edgefl.replay(run, overrides={"local.epochs": 9}),
        "nothing is learned again",
    ),
    "a seed": (lambda _: edgefl.run("quickstart", seed="x"), "seed must be a whole number"),
    "an engine": (lambda _: edgefl.run("quickstart", engine="lop"), "unknown engine 'lop'"),
    "what is opened": (lambda _: edgefl.open(3), "folder must be text or a path"),
    "what is resumed": (lambda _: edgefl.resume(3), "3 is no run"),
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
    """The other scenarios' figures, and the other fleets'."""
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
