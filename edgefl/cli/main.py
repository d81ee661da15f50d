"""Runs the command line."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from edgefl.cli.app import app
from edgefl.cli.console import print_error
from edgefl.core.errors import EdgeflError
from edgefl.core.user_code import Terminated, explained, internal


@contextmanager
def _terminable() -> Iterator[None]:
    """Makes SIGTERM end the block like an interrupt, so that workers stop and shared memory is freed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminated(number: int, _: Any) -> NoReturn:
    raise Terminated(128 + number)


def main(arguments: list[str] | None = None, program: Callable[..., Any] = app) -> None:
    """Runs the command line and exits with its status.

    Raises:
        SystemExit: always, with status 0, 1 or 2; 130 after an interrupt, 143 after SIGTERM.
    """
    try:
        with _terminable():
            program(arguments)
    except BaseException as error:
        told = error if isinstance(error, EdgeflError) else explained(error)
        if told is None:
            if not isinstance(error, Exception):
                raise
            told = internal(error)
        print_error(told)
        sys.exit(told.exit_status)
