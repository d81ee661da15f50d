"""All exceptions that edgefl raises on purpose.

EdgeflError
├── UserError            bad input: exit status 2
│   ├── ScenarioError    a value in a YAML file; knows file and line
│   ├── UnknownNameError an unknown name; suggests the nearest
│   └── DataError        a data folder is incomplete or unreadable
└── RunError             the run itself failed: exit status 1

A message has three parts: what is wrong, where, and what to do about it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


class EdgeflError(Exception):
    """The base class of edgefl's errors.

    Attributes:
        what: what is wrong, in one sentence.
        where: file, line and key, or the argument; empty if it has no location.
        hint: what to do about it; may be empty.
        trace: the traceback behind it, for a file; empty where it would not help.
    """

    exit_status = 1
    trace = ""

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        lines = [self.what]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.hint:
            lines.append(f"  hint:  {self.hint}")
        return "\n".join(lines)


class UserError(EdgeflError):
    """Bad input."""

    exit_status = 2


class ScenarioError(UserError):
    """A value in a scenario, profile or device file is wrong."""


class UnknownNameError(UserError):
    """An unknown name."""


class DataError(UserError):
    """A data folder is incomplete or unreadable."""


class RunError(EdgeflError):
    """A run failed: it diverged, or every client was refused."""


def in_one_line(error: BaseException) -> str:
    """Any exception in one line: its type and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def root_cause(error: BaseException) -> BaseException:
    """The error that the others were raised from; libraries wrap theirs in pages of advice."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


@dataclass(frozen=True)
class Place:
    """The location of a value, for messages.

    Attributes:
        file: the file, or a word such as ``--set``.
        line: 1-based; 0 if unknown.
        key: dotted path of the value.
    """

    file: str
    line: int = 0
    key: str = ""

    def __str__(self) -> str:
        line = f":{self.line}" if self.line else ""
        key = f", key {self.key!r}" if self.key else ""
        return f"{self.file}{line}{key}"


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint: the closest of ``known``, or all of them if none is close."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(names)}" if names else "none are known"
