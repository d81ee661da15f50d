"""What is printed where standard output is full, closed, read by nobody, or lacks a character."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgefl.cli.answering import _print, main, stdout
from edgefl.core import catalogue
from edgefl.show.answers import Answer

# What typer prints, and what we print.
COMMANDS = [["--help"], ["show", "link", "ethernet", "--json"]]


def command(arguments, stdout, **given):
    """``edgefl`` in a process of its own: (exit status, stderr)."""
    line = [sys.executable, "-m", "edgefl", *arguments]
    done = subprocess.run(line, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, **given)
    return done.returncode, done.stderr


@pytest.mark.nightly
def test_where_results_could_not_be_printed_they_are_saved(tmp_path):
    with Path("/dev/full").open("w") as full:
        message = "error: cannot write to standard output: No space left on device\n"
        assert command(["--help"], full) == (1, message)
        given = ["--engine", "null", "--set", "server.rounds=1", "--set", "sweep=null", "--json"]
        status, err = command(["run", "quickstart", *given, "--out", str(tmp_path / "made")], full)
    assert status == 1
    assert err.endswith(f"No space left on device\n  hint:  saved in {tmp_path / 'made'}\n")


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_reader_that_leaves_is_told_nothing(arguments):
    """As behind ``| head -1``: what was done counts; help, which typer prints, has its own status."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert command(arguments, writer) == (int(arguments == ["--help"]), "")
    finally:
        os.close(writer)


def test_what_is_closed_is_nowhere():
    """No message, and no traceback."""
    assert command(COMMANDS[1], None, preexec_fn=lambda: os.closerange(0, 2)) == (0, "")


def test_what_an_encoding_lacks_is_a_question_mark(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    main_status(["list", "links"])
    sys.stdout.write("±3.4% Ω \udcff\n")
    sys.stdout.flush()
    text = raw.getvalue().decode("ascii")
    assert text.endswith("?3.4% ? ?\n")
    assert "name" in text
    assert "-+-" in text


def main_status(arguments, **given):
    with pytest.raises(SystemExit) as raised:
        main(arguments, **given)
    return raised.value.code or 0


@pytest.mark.nightly
def test_only_the_document_is_on_stdout(tmp_path):
    """What a user's code prints, or another process, goes to stderr."""
    source = catalogue.find("methods", "fedavg").path.read_text(encoding="utf-8")
    (tmp_path / "methods").mkdir()
    loud = "\nimport os\nprint('printed')\nos.system('echo other')\n"
    (tmp_path / "methods" / "mine.py").write_text(source + loud, encoding="utf-8")
    line = [sys.executable, "-m", "edgefl", "check", "quickstart", "--set", "sweep=null"]
    line += ["--set", "method=mine"]
    known = {**os.environ, "EDGEFL_PATH": str(tmp_path)}
    done = subprocess.run([*line, "--json"], capture_output=True, text=True, check=True, env=known)
    assert [run["status"] for run in json.loads(done.stdout)["runs"]] == ["done"]
    assert {"printed", "other"} <= {*done.stderr.splitlines()}


def test_a_document_is_printed_whole_or_not_at_all(capsys):
    with pytest.raises(TypeError):
        _print(Answer("", {"a": 1, "b": object()}), as_json=True)
    assert capsys.readouterr().out == ""
    # A number that JSON lacks is null.
    _print(Answer("", {"a": [1, float("nan")], "c": (1.5, -float("inf"))}), as_json=True)
    assert json.loads(capsys.readouterr().out) == {"a": [1, None], "c": [1.5, None]}


@pytest.mark.parametrize(("columns", "width"), [("80", 80), ("200", 200), ("", 100), ("0", 100), ("x", 100)])
def test_columns_set_the_width(columns, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    assert stdout().width == width


def test_whatever_is_raised_ends_in_a_message(capsys):
    def raises(_):
        raise GeneratorExit

    assert main_status([], program=raises) == 1
    assert "error: edgefl failed: GeneratorExit" in capsys.readouterr().err
