"""A file that is there is overwritten with --force alone, whatever it is and whichever command writes it."""

from functools import partial

import pytest
from calibrated import Worker, trace_once
from commands import run_command
from nightly import sampled

import edgefl
from edgefl.calibrate import calibrate

TINY = {"sweep": None, "server.rounds": 1, "task.clients": 4, "server.participants": 2}

# Each: the file and the words of the command, but for the file; RUN stands for a run.
WRITING = {
    "report": ("page.html", ["report", "RUN", "--out"]),
    "plot": ("figure.svg", ["plot", "RUN", "--out"]),
    "timeline": ("run.pftrace", ["timeline", "RUN", "--out"]),
    "table": ("jobs.csv", ["table", "RUN", "jobs", "--out"]),
    "export": ("model.onnx", ["export", "RUN", "--out"]),
    "calibrate": ("mine.yaml", ["calibrate", "mine", "--quick", "--out"]),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "run"
    return edgefl.run("quickstart", overrides=TINY, engine="loop", out=folder, progress=False)


@pytest.mark.usefixtures("one_registry")
@sampled(2, ("name", "command"), WRITING.values(), ids=WRITING)
def test_nothing_is_overwritten_unasked(name, command, run, tmp_path, monkeypatch, capsys):
    """Not even what the same command wrote; the message is the same everywhere."""
    monkeypatch.chdir(tmp_path)
    # A real one takes half a minute.
    trace_once(monkeypatch)
    monkeypatch.setattr("edgefl.calibrate.calibrate", partial(calibrate, run=Worker()))
    given = [run.folder if word == "RUN" else word for word in command] + [name]
    (tmp_path / name).write_text("mine")
    hint = "choose another --out, or overwrite it with --force"
    refused = f"error: {name} exists\n  where: --out\n  hint:  {hint}"
    for forced in ((), ("--force",)):
        if forced:
            assert run_command(capsys, *given, *forced)[0] == 0
        before = (tmp_path / name).read_bytes()
        assert (before == b"mine") != bool(forced)
        assert run_command(capsys, *given) == (2, "", f"{refused}\n")
        assert (tmp_path / name).read_bytes() == before


@pytest.mark.usefixtures("one_registry")
def test_python_says_force(run, tmp_path):
    """As the option; a card beside a model is a file like others."""
    page, model = tmp_path / "page.html", tmp_path / "model.onnx"
    page.write_text("mine")
    model.with_suffix(".md").write_text("mine")
    for ask, out in ((edgefl.report, page), (edgefl.export, model)):
        with pytest.raises(edgefl.UserError, match="exists"):
            ask(run, out=out)
        ask(run, out=out, force=True)
    assert "## Parity" in model.with_suffix(".md").read_text(encoding="utf-8")
