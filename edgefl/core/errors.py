"""The exceptions that edgefl raises on purpose; a few more are beside the code that raises them.

A message has three parts: what is wrong, where, and what to do about it. An error may carry others that were
found with it, so that all mistakes of a file are told at once.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

# Of the mistakes that were found together, so many are told.
_TOLD = 10
# The most names that are offered for a part of them.
_OFFERED = 5


class EdgeflError(Exception):
    """The base class of edgefl's errors.

    Attributes:
        what: what is wrong, in one sentence.
        where: file, line and key, or the argument; empty if it has no location.
        hint: what to do about it; may be empty.
        others: further mistakes that were found with this one; see ``Mistakes``.
        trace: the traceback behind it, for a file; empty where it would not help.
        answer: what was found all the same, as ``report.answers`` has it; None where nothing was.
    """

    exit_status = 1
    trace = ""
    answer: Any = None

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint
        self.others: tuple[EdgeflError, ...] = ()

    def messages(self) -> list[str]:
        """This error's message and those of the others, at most ten, and how many more there are."""
        told = [_message(each) for each in (self, *self.others[: _TOLD - 1])]
        left = 1 + len(self.others) - len(told)
        return [*told, f"and {left} more {'mistake' if left == 1 else 'mistakes'}"] if left else told

    def __str__(self) -> str:
        return "\n".join(self.messages())


def _message(error: EdgeflError) -> str:
    where, hint = error.where and f"  where: {error.where}", error.hint and f"  hint:  {error.hint}"
    return "\n".join(filter(None, (error.what, where, hint)))


class UserError(EdgeflError):
    """Bad input."""

    exit_status = 2


class ScenarioError(UserError):
    """A value in a scenario, profile or device file is wrong."""


class UnknownNameError(UserError, ValueError):
    """An unknown name. A record's validators may raise it: pydantic collects what are ``ValueError``."""


class DataError(UserError):
    """A data folder is incomplete or unreadable."""


class RunError(EdgeflError):
    """A run failed: it diverged, or every client was refused."""


class Mistakes:
    """Collects bad input, each once, while checks go on, so that all of it is told at once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], UserError] = {}

    @contextmanager
    def collected(self) -> Iterator[None]:
        """A check: what it raises is kept, and the next one can follow."""
        try:
            yield
        except UserError as error:
            self.add(error)

    def add(self, error: UserError) -> None:
        """Keeps an error, and those that it carries, unless the same was found before."""
        for each in (error, *error.others):
            if isinstance(each, UserError):
                self._found.setdefault((each.what, each.where), each)

    def check(self) -> None:
        """Ends the checks: raises the first ``UserError`` that was found, with the others."""
        if self._found:
            first, *others = self._found.values()
            first.others = tuple(others)
            raise first


def words_of(error: BaseException) -> str:
    """An exception's message; empty if the exception's own class fails to give it."""
    from pydantic import ValidationError

    if isinstance(error, ValidationError):  # whose own first line only counts the mistakes
        wrong = error.errors(include_url=False, include_input=False)[0]
        return ": ".join([*(str(key) for key in wrong["loc"][:1]), wrong["msg"]])
    try:
        return str(error).strip()
    except Exception:  # noqa: BLE001 - a user's class may raise anything
        return ""


def in_one_line(error: BaseException) -> str:
    """Any exception in one line: its type and the first line of its message, cut if it is long."""
    name, (line, *_) = type(error).__name__, words_of(error).splitlines() or [""]
    return f"{name}: {short(line, 500)}" if line else name


def nearest(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """A hint: the closest of ``known``, those that contain it, or else all of them, or ``otherwise``."""
    names, bare = sorted(known), _bare(name)
    close = closest(name, names)
    within = [each for each in names if bare and bare in _bare(each)]
    more = [] if close in within or len(within) > _OFFERED else within
    choice = [*([close] if close else []), *more]
    listed = otherwise or (f"known: {', '.join(names)}" if names else "none are known")
    return one_of([repr(each) for each in choice]) or listed


def _bare(name: str) -> str:
    return re.sub("[-_ ]", "", name.casefold())


def one_of(choice: Sequence[str]) -> str:
    """A hint to choose; empty if there is nothing to choose from."""
    return f"did you mean {', '.join([*choice[:-2], ' or '.join(choice[-2:])])}?" if choice else ""


def closest(name: str, known: Iterable[str]) -> str:
    """The one of ``known`` that is spelled most alike, without regard to case; "" if none is close."""
    folded = {each.casefold(): each for each in known}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else ""


def short(text: str, most: int = 60) -> str:
    """A text for messages, cut if it is long."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def quoted(value: Any) -> str:
    """A value as messages quote it: as YAML writes it, and cut if it is long."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return short(re.sub(r"\s+", " ", repr(value)))
