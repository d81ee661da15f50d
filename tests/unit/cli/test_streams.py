"""What is printed where standard output is full, closed, read by nobody, or lacks a character."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import run_command

from edgefl.cli.console import print_json, stderr, stdout
from edgefl.cli.main import main
from edgefl.cli.streams import Output, OutputError, streams
from edgefl.core.errors import UserError


class Broken(io.StringIO):
    """A stream that takes nothing."""

    def __init__(self, error):
        super().__init__()
        self._error = error

    def write(self, _):
        """Fails."""
        raise self._error


def command(arguments, stdout, **environment):
    """``edgefl`` in a process of its own: (exit status, stderr)."""
    line = [sys.executable, "-m", "edgefl", *arguments]
    done = subprocess.run(
        line,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "80", **environment},
    )
    return done.returncode, done.stderr


def test_a_full_disk_is_one_message():
    """Exit status 1, and nothing from Python about what it could not flush."""
    with Path("/dev/full").open("w") as full:
        status, err = command(["list", "links"], full)
    assert (status, err.splitlines()) == (1, [err.strip()])
    assert "cannot write to standard output: No space left on device" in err


def test_a_reader_that_leaves_changes_no_status():
    """As behind ``| head -1``: what was done counts, and nothing is said."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert command(["list"], writer) == (0, "")
    finally:
        os.close(writer)


def test_what_an_encoding_lacks_is_a_question_mark(monkeypatch):
    """Boxes are in ASCII, and nothing fails."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    with streams(document=False):
        sys.stdout.write("±3.4% Ω \udcff\n")
        main_status(["list", "links"])
    text = raw.getvalue().decode("ascii")
    assert text.startswith("?3.4% ? ?\n")
    assert "name" in text
    assert "-+-" in text


def main_status(arguments):
    """The exit status of a command in this process."""
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    return raised.value.code or 0


@pytest.mark.parametrize(
    ("stream", "status"),
    [(Broken(BrokenPipeError()), 0), (Broken(OSError(errno.ENOSPC, "full")), 1), (None, 1)],
    ids=["no reader", "full", "closed"],
)
@pytest.mark.parametrize("arguments", [["list"], ["--help"], ["show", "link", "ethernet"]])
def test_every_command_ends_with_a_status(stream, status, arguments, monkeypatch, capsys):
    """Help, tables and documents alike."""
    monkeypatch.setattr(sys, "stdout", stream)
    assert main_status(arguments) == status
    err = capsys.readouterr().err
    assert err.count("\n") == status
    assert sys.stdout is stream


def test_an_error_stream_that_is_full_is_no_error(monkeypatch):
    """There is nowhere to report it."""
    monkeypatch.setattr(sys, "stderr", Broken(OSError(errno.ENOSPC, "full")))
    with streams(document=False):
        stderr().print("lost")
    with pytest.raises(SystemExit) as raised:
        main(["show", "link", "nope"])
    assert raised.value.code == UserError.exit_status


def test_only_the_document_is_on_stdout(capfd):
    """What a user's code prints, or another process, goes to stderr."""
    with streams(document=True):
        sys.stdout.write("printed\n")
        print_json({"a": 1})
        stdout().print("a result")
    with streams(document=False):
        sys.stdout.write("again\n")
    out, err = capfd.readouterr()
    assert out == '{\n  "a": 1\n}\na result\nagain\n'
    assert err == "printed\n"


def test_another_process_cannot_print_before_the_document():
    """It inherits the file of stdout, which is that of stderr while a document is printed."""
    code = (
        "import os; from edgefl.cli.streams import streams; from edgefl.cli.console import print_json\n"
        "with streams(document=True): os.system('echo other'); print_json([1])\n"
        "os.system('echo after')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[\n  1\n]\nafter\n"
    assert done.stderr == "other\n"


def test_a_number_that_json_lacks_is_null(capsys):
    """NaN and infinities, however deep; the document stays valid."""
    print_json({"a": [float("nan"), {"b": float("inf")}], "c": (1.5, -float("inf"))})
    assert json.loads(capsys.readouterr().out) == {"a": [None, {"b": None}], "c": [1.5, None]}


@pytest.mark.parametrize(("columns", "width"), [("80", 80), ("200", 200), ("", 100), ("0", 100), ("x", 100)])
def test_columns_set_the_width(columns, width, monkeypatch):
    """Also where stdout is no terminal; 100 if COLUMNS is unset or no number."""
    monkeypatch.setenv("COLUMNS", columns)
    assert stdout().width == width


def test_a_table_keeps_to_columns(monkeypatch, capsys):
    """Every line of a real command."""
    monkeypatch.setenv("COLUMNS", "60")
    _, out, _ = run_command(capsys, "list", "devices")
    assert 50 < max(map(len, out.splitlines())) <= 60


def test_output_drops_what_nobody_reads():
    """The first failure is told, later ones are not."""
    output = Output(Broken(OSError(errno.ENOSPC, "full")), required=True)
    with pytest.raises(OutputError, match="full"):
        output.write("a")
    assert output.write("b") == 1


def test_whatever_is_raised_ends_in_a_message(capsys):
    """Also what is no Exception and asks for no end, as a user's `raise GeneratorExit` does."""

    def raises(_):
        raise GeneratorExit

    with pytest.raises(SystemExit) as raised:
        main([], program=raises)
    assert raised.value.code == 1
    assert "error: edgefl failed: GeneratorExit" in capsys.readouterr().err
