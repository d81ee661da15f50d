"""Interrupts and SIGTERM: the first ends a command in order, and what follows it does not disturb that."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from edgefl.core.user_code import Terminated

# How long workers may take to stop; another interrupt after that ends the process at once.
PATIENCE_S = 10.0


@contextmanager
def ending_once() -> Iterator[None]:
    """Around a command: Ctrl-C raises ``KeyboardInterrupt`` and SIGTERM ``Terminated``, once.

    Until the process has ended further ones are ignored, so that workers stop, shared memory is freed and
    nothing interrupts Python's own exit; after ``PATIENCE_S`` they end the process without any of this. In
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
        if time.monotonic() - first_s > PATIENCE_S:
            os._exit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            # At its exit Python would put the default in place of a function.
            signal.signal(number, handler if first_s is None else signal.SIG_IGN)
