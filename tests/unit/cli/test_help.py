"""Help has examples that can be typed, and fits a terminal of 80 columns."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import typer
from commands import run_command

from edgefl.cli.answering import app

_GROUP: Any = typer.main.get_command(app)
COMMANDS = dict(_GROUP.commands)


def _examples(command):
    return [line for line in (command.epilog or "").splitlines() if line.startswith("edgefl ")]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_that_can_be_typed(name):
    found = _examples(COMMANDS[name])
    assert found
    for example in found:
        program, command, *arguments = shlex.split(example)
        assert (program, command) == ("edgefl", name)
        COMMANDS[name].make_context(name, arguments)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_breaks_no_word_at_80_columns(name, capsys, monkeypatch):
    """Examples stand on a line of their own; texts are wrapped between words."""
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = run_command(capsys, name, "--help")
    assert status == 0
    assert set(_examples(COMMANDS[name])) <= {line.strip() for line in out.splitlines()}
    shown = [each for each in COMMANDS[name].params if not getattr(each, "hidden", False)]
    texts = [COMMANDS[name].help or "", *(getattr(each, "help", "") or "" for each in shown)]
    words = " ".join(out.replace("│", " ").split())
    assert all(word in words for word in " ".join(texts).split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "quickstart", "--seed", "a"], "Invalid value for '--seed'"),
        (
            ["compare", "runs", "--target", "95%"],
            "the target accuracy must be greater than 0 and at most 1, not '95%'",
        ),
        (["bench", "m.onnx", "--batch", "0"], "Invalid value for '--batch'"),
    ],
)
def test_a_wrong_value_of_an_option_is_told(capsys, arguments, words):
    status, _, err = run_command(capsys, *arguments)
    assert status == 2
    assert words in " ".join(err.replace("│", " ").split())
