"""Help has examples that can be typed, and fits a terminal of 80 columns."""

import shlex
from typing import Any

import pytest
import typer
from commands import run_command

from edgefl.cli.answering import app

_GROUP: Any = typer.main.get_command(app)
COMMANDS = dict(_GROUP.commands)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_breaks_no_word_at_80_columns(name, capsys, monkeypatch):
    """Texts are wrapped between words; examples stand on a line of their own, and each can be typed."""
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = run_command(capsys, name, "--help")
    assert status == 0
    examples = [line for line in (COMMANDS[name].epilog or "").splitlines() if line.startswith("edgefl ")]
    assert examples
    assert set(examples) <= {line.strip() for line in out.splitlines()}
    for example in examples:
        program, command, *arguments = shlex.split(example)
        assert (program, command) == ("edgefl", name)
        COMMANDS[name].make_context(name, arguments)
    shown = [each for each in COMMANDS[name].params if not getattr(each, "hidden", False)]
    texts = [COMMANDS[name].help or "", *(getattr(each, "help", "") or "" for each in shown)]
    words = " ".join(out.replace("│", " ").split())
    assert all(word in words for word in " ".join(texts).split())
