"""Notes: what a user should know while a command goes on, and that is neither a result nor an error.

They go to the logger "edgefl": to stderr, unless the program that uses edgefl says otherwise.
"""

import logging
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

LOG = logging.getLogger("edgefl")


@cache
def note(text: str) -> None:
    """Says something once; worker processes leave it to the one that started them."""
    if multiprocessing.parent_process() is None:
        LOG.warning(text)


@contextmanager
def passed_to(show: Callable[[str], None]) -> Iterator[None]:
    """Shows notes by a function while it is open."""
    handler = logging.Handler()
    handler.emit = lambda record: show(record.getMessage())  # type: ignore[method-assign]
    LOG.addHandler(handler)
    try:
        yield
    finally:
        LOG.removeHandler(handler)
