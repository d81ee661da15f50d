"""Where commands print: results to stdout; progress, notes and errors to stderr."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from typing import Any

from rich.console import Console

from edgefl.cli.streams import results
from edgefl.core.documents import document
from edgefl.core.errors import EdgeflError

# Off a terminal; and the least and the most that COLUMNS may ask for.
_WIDTH, _LEAST, _MOST = 100, 20, 1000


def stdout() -> Console:
    """The console for results: as wide as COLUMNS says, or the terminal, or 100 columns."""
    stream = results()
    width = None if stream.isatty() else _WIDTH
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and len(columns) < _WIDTH and int(columns):
        width = min(max(int(columns), _LEAST), _MOST)
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def stderr() -> Console:
    """The console for progress, notes and errors."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def print_json(value: Any) -> None:
    """Prints records, or plain data, as one JSON document on stdout; NaN and infinities as null."""
    results().write(json.dumps(document(value), indent=2, allow_nan=False) + "\n")


def print_error(error: EdgeflError) -> None:
    """Prints an error and those found with it to stderr; a traceback, if there is one, goes to a file."""
    for message in error.messages():
        stderr().print(f"error: {message}", style="red", soft_wrap=True)
    # An unwritable folder must not hide the error.
    with suppress(OSError):
        if error.trace:
            handle, name = tempfile.mkstemp(prefix="edgefl-traceback-", suffix=".txt")
            with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
                file.write(error.trace)
            stderr().print(f"  trace: {name}", style="red", soft_wrap=True)


def print_note(line: str) -> None:
    """Prints what is worth knowing beside a result to stderr."""
    stderr().print(f"note: {line}", style="yellow", soft_wrap=True)
