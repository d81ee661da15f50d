"""Standard output and error that may be closed, full, read by nobody, or unable to show a character."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from edgefl.core.errors import EdgeflError

_STDOUT, _STDERR = 1, 2


class OutputError(EdgeflError):
    """Standard output takes no more."""


class Output:
    """A standard stream for writing.

    Characters that it cannot show are question marks. Once its reader has gone, as behind ``| head``, it
    takes what is written and drops it.

    Args:
        stream: the stream; None if it is closed.
        required: whether a stream that is full or closed is an error.
    """

    def __init__(self, stream: TextIO | None, *, required: bool) -> None:
        self._stream, self._required = stream, required
        self._gone = False
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Writes a text, and flushes it where a line ends.

        Raises:
            OutputError: the stream is full or closed, and required.
        """
        self._try(lambda stream: stream.write(text.encode(self.encoding, "replace").decode(self.encoding)))
        if text.endswith("\n"):
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Writes what is buffered.

        Raises:
            OutputError: the stream is full or closed, and required.
        """
        self._try(lambda stream: stream.flush())

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._stream is not None and self._stream.isatty()

    def fileno(self) -> int:
        """The number of its file.

        Raises:
            OSError: it has none.
        """
        if self._stream is None:
            raise OSError("the stream is closed")
        return self._stream.fileno()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _open(self) -> TextIO:
        if self._stream is None:
            raise ValueError("it is closed")
        return self._stream

    def _try(self, act: Callable[[TextIO], object]) -> None:
        if self._gone:
            return
        try:
            act(self._open())
        except BrokenPipeError:
            self._drop()
        except (OSError, ValueError) as error:
            self._drop()
            if self._required:
                why = getattr(error, "strerror", None) or str(error)
                raise OutputError(f"cannot write to standard output: {why}") from error

    def _drop(self) -> None:
        """Drops all from now on, also what Python flushes when it exits."""
        self._gone = True
        with suppress(AttributeError, OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)


class _Results:
    """Where results are printed: None outside of ``streams``."""

    output: Output | None = None


def results() -> TextIO:
    """The stream for results."""
    return _Results.output or sys.stdout  # type: ignore[return-value]


@contextmanager
def streams(*, document: bool) -> Iterator[None]:
    """Guards standard output and error.

    Args:
        document: whether stdout is for one document: whatever else is printed there, by a user's code, a
            library or another process, goes to stderr.
    """
    before = sys.stdout, sys.stderr, _Results.output
    _open_all()
    out, err = Output(sys.stdout, required=True), Output(sys.stderr, required=False)
    copy = _moved_to_stderr() if document else None
    if copy is not None:
        out = Output(copy, required=True)
    _Results.output = out
    sys.stdout, sys.stderr = err if document else out, err
    try:
        yield
    finally:
        sys.stdout, sys.stderr, _Results.output = before
        if copy is not None:
            with suppress(OSError):
                os.dup2(copy.fileno(), _STDOUT)
            with suppress(OSError):
                copy.close()


def _open_all() -> None:
    """Opens what is closed of the first three files, lest a database be opened as one of them."""
    if None in {sys.stdin, sys.stdout, sys.stderr}:
        while (number := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
            pass
        os.close(number)


def _moved_to_stderr() -> TextIO | None:
    """Another stream to the file of stdout, whose number becomes that of stderr; None where it is no file."""
    try:
        if sys.stdout.fileno() != _STDOUT:
            return None
        sys.stdout.flush()
        copy = os.fdopen(os.dup(_STDOUT), "w", encoding="utf-8")
        os.dup2(_STDERR, _STDOUT)
    except (AttributeError, OSError, ValueError):
        return None
    return copy
