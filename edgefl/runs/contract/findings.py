"""What a check of a method finds, and which of a user's functions it names."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from rich.console import Group, RenderableType

from edgefl.core.errors import EdgeflError
from edgefl.core.user_code import CodeLine, defined_at, explained, internal
from edgefl.show.table import Column, Line, Table


class Finding(NamedTuple):
    """The result of checking one promise.

    Attributes:
        kept: whether it is kept; None if it does not apply.
        detail: how it is broken, or why it does not apply; empty if it is kept.
        where: the file and line of the function that breaks it; empty where no single one does.
        hint: what to do about it; may be empty.
        trace: the traceback, if it raised an error.
    """

    promise: str
    kept: bool | None
    detail: str
    where: str = ""
    hint: str = ""
    trace: str = ""


def promises(name: str, findings: Sequence[Finding]) -> RenderableType:
    """A method's promises, and why some do not apply."""
    words = {True: "kept", False: "BROKEN", None: "-"}
    rows = [(one.promise, words[one.kept]) for one in findings]
    why = (Line(f"- {one.detail}", "dim") for one in findings if one.kept is None)
    return Group(Table([f"promises of {name}", Column("", left=True)], rows), *why)


def told(broken: Sequence[Finding]) -> Iterator[str]:
    """How promises are broken: what breaks several is told once."""
    found: dict[tuple[str, str, str], list[Finding]] = {}
    for one in broken:
        found.setdefault((one.detail, one.where, one.hint), []).append(one)
    for parts, those in found.items():
        yield ""
        yield from (f"BROKEN: {one.promise}" for one in those)
        yield from (
            f"  {head}{text}" for head, text in zip(("", "where: ", "hint:  "), parts, strict=True) if text
        )


class Broken(NamedTuple):
    """How a promise is broken.

    Attributes:
        detail: in one sentence.
        functions: those that may break it, the likeliest first.
        hint: what to do about it; may be empty.
    """

    detail: str
    functions: tuple[Callable[..., Any], ...] = ()
    hint: str = ""


class Inapplicable(NamedTuple):
    """A promise that a method does not make, and the reason in a few words."""

    reason: str


def finding(promise: str, check: Callable[[], Broken | Inapplicable | None]) -> Finding:
    """What a check finds; an exception breaks the promise.

    Raises:
        BaseException: what the check raised to stop, such as ``KeyboardInterrupt``.
    """
    try:
        found = check()
    except BaseException as error:
        told = error if isinstance(error, EdgeflError) else explained(error)
        if told is None and not isinstance(error, Exception):
            raise
        return raised(promise, told or internal(error))
    if found is None:
        return Finding(promise, True, "")
    if isinstance(found, Inapplicable):
        return Finding(promise, None, found.reason)
    return Finding(promise, False, found.detail, str(place(found.functions) or ""), found.hint)


def raised(promise: str, error: EdgeflError) -> Finding:
    """A promise that is broken by an error."""
    return Finding(promise, False, error.what, error.where, error.hint, error.trace)


def place(functions: Iterable[Callable[..., Any]]) -> CodeLine | None:
    """The line of the first of a user's functions among some, or else among those that they are made of."""
    given = list(functions)
    made = (inner for function in given for inner in parts(function))
    return next(filter(None, map(defined_at, [*given, *made])), None)


def parts(value: Any) -> Iterator[Callable[..., Any]]:
    """A function, and those in its closure or in its fields; the nearest first."""
    waiting, known = [value], {id(value)}
    while waiting:
        one = waiting.pop(0)
        if callable(one):
            yield one
        for inner in _held(one):
            if id(inner) not in known:
                known.add(id(inner))
                waiting.append(inner)


def _held(value: Any) -> list[Any]:
    """The values that a value is made of."""
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in fields(value)]
    return list(closure(value).values())


def closure(function: Any) -> dict[str, Any]:
    """The values of a function's closure, by name."""
    found = {}
    cells = getattr(function, "__closure__", None) or ()
    for name, cell in zip(function.__code__.co_freevars if cells else (), cells, strict=True):
        # A cell is empty until what it is to hold was defined.
        with suppress(ValueError):
            found[name] = cell.cell_contents
    return found
