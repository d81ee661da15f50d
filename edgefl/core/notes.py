"""Notes: what a user should know while a command goes on, and that is neither a result nor an error.

They go to the logger "edgefl": to stderr, unless the program that uses edgefl says otherwise.
"""

from __future__ import annotations

import logging
import multiprocessing
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

LOG = logging.getLogger("edgefl")


@cache
def note(text: str) -> None:
    """Says something once; worker processes leave it to the one that started them."""
    if multiprocessing.parent_process() is None:
        LOG.warning(text)


class _Printer(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """See ``logging.Handler``."""
        # What stderr is now: a progress bar may stand in its place.
        sys.stderr.write(f"note: {record.getMessage()}\n")


@contextmanager
def printed() -> Iterator[None]:
    """Prints notes to stderr as commands print them."""
    printer = _Printer()
    LOG.addHandler(printer)
    try:
        yield
    finally:
        LOG.removeHandler(printer)
