"""The command line, run in this process."""

import io
from typing import Any

import pytest
from rich.console import Console

from edgefl.cli import main


def run_command(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    """What a command does: (exit status, stdout, stderr), which is never a traceback."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as raised:
        main(list(map(str, arguments)))
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return int(raised.value.code or 0), out, err


def shown(table: Any, width: int) -> str:
    """What a terminal of a width shows of a table."""
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    return str(console.file.getvalue())  # type: ignore[attr-defined]
