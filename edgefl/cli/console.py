"""Where commands print: results to stdout; progress, notes and errors to stderr."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import suppress
from typing import Any

from rich.console import Console

from edgefl.core.documents import document
from edgefl.core.errors import EdgeflError


def stdout() -> Console:
    """The console for results; 100 columns wide if it is not a terminal."""
    return Console(width=None if sys.stdout.isatty() else 100, highlight=False, markup=False)


def stderr() -> Console:
    """The console for progress, notes and errors."""
    return Console(stderr=True, highlight=False, markup=False)


def print_json(value: Any) -> None:
    """Prints records, or plain data, as one JSON document on stdout; prints nothing if that is impossible."""
    sys.stdout.write(json.dumps(document(value), indent=2, allow_nan=False) + "\n")


def print_error(error: EdgeflError) -> None:
    """Prints an error and those found with it to stderr; a traceback, if there is one, goes to a file."""
    for message in error.messages():
        stderr().print(f"error: {message}", style="red", soft_wrap=True, markup=False)
    print_trace(error.trace)


def print_trace(trace: str) -> None:
    """Writes a traceback to a file in the temporary folder, and prints the file's name to stderr."""
    if not trace:
        return
    # An unwritable folder must not hide the error.
    with suppress(OSError):
        handle, name = tempfile.mkstemp(prefix="edgefl-traceback-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(trace)
        stderr().print(f"  trace: {name}", style="red", soft_wrap=True, markup=False)


def print_note(line: str) -> None:
    """Prints what is worth knowing beside a result to stderr."""
    stderr().print(f"note: {line}", style="yellow", soft_wrap=True, markup=False)
