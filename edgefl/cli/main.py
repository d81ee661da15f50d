"""Runs the command line."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from edgefl.cli.answering import app, print_error, print_note, writing
from edgefl.core.errors import EdgeflError
from edgefl.core.notes import passed_to
from edgefl.core.user_code import Terminated, explained, internal, of_path

_INTERRUPTED = 130
# How long workers may take to stop; another interrupt after that ends the process at once.
_PATIENCE_S = 10.0


def main(arguments: list[str] | None = None, program: Callable[..., Any] = app) -> None:
    """Runs the command line and exits with its status.

    Raises:
        SystemExit: always, with status 0, 1 or 2; 130 after an interrupt, 143 after SIGTERM.
    """
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # Lest another file be opened as one of the first three.
            setattr(sys, name, open(os.devnull, "r+", encoding="utf-8"))  # noqa: PTH123, SIM115
        elif isinstance(stream, io.TextIOWrapper) and name != "stdin":
            # What its encoding lacks is a question mark.
            stream.reconfigure(errors="replace")
    try:
        # Help too is printed, and what users' code printed is flushed.
        with _ending_once(), passed_to(print_note), writing():
            program(arguments)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except BaseException as error:
        told = error if isinstance(error, EdgeflError) else explained(error) or of_path(error)
        if told is None:
            if isinstance(error, SystemExit):
                raise
            told = internal(error)
        print_error(told)
        sys.exit(told.exit_status)


@contextmanager
def _ending_once() -> Iterator[None]:
    """Around a command: Ctrl-C raises ``KeyboardInterrupt`` and SIGTERM ``Terminated``, once.

    Until the process has ended further ones are ignored, so that workers stop, shared memory is freed and
    nothing interrupts Python's own exit; after ``_PATIENCE_S`` they end the process without any of this. In
    other threads than the main one, signals are left as they are.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    first_s: float | None = None

    def end(number: int, _: Any) -> None:
        nonlocal first_s
        if first_s is None:
            first_s = time.monotonic()
            raise KeyboardInterrupt if number == signal.SIGINT else Terminated(128 + number)
        if time.monotonic() - first_s > _PATIENCE_S:
            os._exit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            # At its exit Python would put the default in place of a function.
            signal.signal(number, handler if first_s is None else signal.SIG_IGN)
