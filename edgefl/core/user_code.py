"""Errors in a user's code as one message with the file and line in that code.

A file is the user's if it is on ``EDGEFL_PATH``, or if it belongs neither to edgefl nor to Python nor to an
installed package, of this environment, of the user or of the system. The boundaries at which a user's code is
called (planning, runs, workers, the command line) pass what was raised through ``explained``; no call needs a
guard of its own.
"""

import errno
import functools
import gc
import inspect
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from types import FunctionType, UnionType
from typing import Annotated, Any, NamedTuple, ParamSpec, TypeVar, get_args, get_origin

from edgefl.core.errors import EdgeflError, RunError, UserError, in_one_line, short, words_of

T = TypeVar("T", bound=EdgeflError)
V = TypeVar("V")
P = ParamSpec("P")
R = TypeVar("R")

# What the names of modules made of a user's files begin with.
LOADED = "edgefl_user."

_PACKAGE = Path(__file__).parent.parent
_STANDARD_LIBRARY = tuple({os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")})
# The folders of installed packages: an environment's own, the user's and the system's.
_PACKAGES = frozenset({"site-packages", "dist-packages"})
_VALUES = "costs are traced on tensors without data and clients are trained in groups"
# torch's words -> the promise that was broken.
_PROMISES = {
    r"Tensor\.item\(\) cannot|calling \.item\(\)|data-dependent control flow|meta device type tensor to "
    r"numpy|Cannot copy out of meta tensor|Cannot access data pointer|torch\.allclose|aten::equal": (
        "may not look at values, as .item(), float(x), .numpy() and `if x > 0` do"
    ),
    r"torch\.nonzero\(\) raises|output dynamic shape|support dynamic shape|with Meta tensors": (
        "may not make tensors whose shapes depend on values, as x[x > 0] and nonzero() do"
    ),
    r"is not on the expected device|Expected all tensors to be on the same device": (
        "may not mix devices: make tensors with the `device` of one that it is given"
    ),
}
# As Python, the system and torch, of a GPU as well, say it.
_NO_ROOM = r"out of memory|[Cc]an(?:no|')t allocate memory|can't start new thread"


class Terminated(SystemExit):
    """The process was told to end: SIGTERM, and nothing that a user's code raised."""


class WrongValueError(UserError):
    """A function of a component returned something else than it must; perhaps on data alone."""


class InternalError(EdgeflError):
    """A mistake in edgefl."""


class CodeLine(NamedTuple):
    """A line of a user's code, from 1; the function's name is empty at the top level of a file."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def name(self) -> str:
        """The file, as in ``methods/mine.py``."""
        return "/".join(Path(self.file).parts[-2:])


def is_users(file: str) -> bool:
    """Whether a source file is the user's."""
    if not Path(file).is_absolute():
        return False
    from edgefl.core.catalogue import user_folders

    real = Path(os.path.realpath(file))
    if any(real.is_relative_to(os.path.realpath(folder)) for folder in user_folders()):
        return True
    if real.is_relative_to(_PACKAGE) or _PACKAGES & set(real.parts):
        return False
    return not any(real.is_relative_to(one) for one in _STANDARD_LIBRARY)


def raised_at(error: BaseException) -> CodeLine | None:
    """The innermost line of the user's in an error's traceback; None if it has none."""
    found = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if is_users(code.co_filename):
            found = CodeLine(code.co_filename, line, code.co_name.strip("<>").replace("module", ""))
    if isinstance(error, SyntaxError) and error.filename and is_users(error.filename):
        return CodeLine(error.filename, error.lineno or 1)
    return found


def defined_at(function: Callable[..., Any]) -> CodeLine | None:
    """Where a function of the user's, or a class's ``__init__``, is defined; None if it is not the user's."""
    if isinstance(function, type):
        function = vars(function).get("__init__", function)
    function = inspect.unwrap(function)
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None)
    if code is None or not is_users(code.co_filename):
        return None
    return CodeLine(code.co_filename, code.co_firstlineno, code.co_name)


def explained(error: BaseException, failure: type[EdgeflError] = UserError) -> EdgeflError | None:
    """What a user's code raised, as one message with its file, line and traceback; None for another error."""
    if isinstance(error, EdgeflError | KeyboardInterrupt | GeneratorExit | Terminated):
        return None
    # Libraries raise errors of their own over those of a callback's.
    one: BaseException | None = error
    while one is not None:
        if place := raised_at(one):
            return traced(failure(_what(one, place), where=str(place), hint=_hint(one, place)), error)
        if place := _misfit(one):
            what = f"{place.name} cannot be called as it is: {in_one_line(one)}"
            hint = "docs/extending.md says what it is called with"
            return traced(failure(what, where=str(place), hint=hint), error)
        one = one.__cause__ or one.__context__
    return None


def _misfit(error: BaseException) -> CodeLine | None:
    """The function of a component's that edgefl called with other arguments than it takes; None if none."""
    called = re.match(r"([\w.<>]+)\(\) (?:takes (\d+) |takes|missing|got)", str(error))
    if not (called and isinstance(error, TypeError)):
        return None
    loaded = {name for name in sys.modules if name.startswith(LOADED)}
    # Also those inside others, which no module has.
    functions = [one for one in gc.get_objects() if type(one) is FunctionType and one.__module__ in loaded]
    named = [one for one in functions if one.__qualname__ == called[1]]
    found = {defined_at(one) for one in named if called[2] in {None, str(one.__code__.co_argcount)}}
    # Of two with one name, it is not known which was called.
    return found.pop() if len(found) == 1 else None


def _what(error: BaseException, place: CodeLine) -> str:
    if isinstance(error, SyntaxError):
        return f"{place.name} is not valid Python: {error.msg}"
    how = f"failed in {place.function}" if place.function else "fails to import"
    return f"{place.name} {how}: {in_one_line(error)}"


def _hint(error: BaseException, place: CodeLine) -> str:
    if isinstance(error, SystemExit):
        return "a component may not end the process; raise an error instead"
    for words, promise in _PROMISES.items():
        if re.search(words, words_of(error)):
            return f"{place.function or 'it'} {promise}: {_VALUES}"
    return ""


def internal(error: BaseException) -> EdgeflError:
    """An error of edgefl's own, as one message that asks for a report; or this machine has no room left."""
    if isinstance(error, MemoryError) or re.search(_NO_ROOM, words_of(error)):
        hint = "fewer workers (engine.workers), a smaller engine.group and smaller batches take less"
        return traced(RunError(f"no more memory or threads: {in_one_line(error)}", hint=hint), error)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.lineno]
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    where = [f"edgefl/{Path(one.filename).relative_to(_PACKAGE)}:{one.lineno}" for one in ours[-1:]]
    hint = "please report this, with the traceback"
    loaded = (name.removeprefix(LOADED) for name in sys.modules if name.startswith(LOADED))
    users = ", ".join(sorted(name.replace(".", "/") for name in loaded))
    if users:
        hint = f"does every function of {users} return what it should? If so, {hint}"
    what = f"edgefl failed: {in_one_line(error)}"
    return traced(InternalError(what, where="".join(where), hint=hint), error)


def traced(told: T, error: BaseException | None) -> T:
    """The message, with the traceback of the error behind it, if there is one."""
    if error is not None:
        told.trace = "".join(traceback.format_exception(error))
    return told


def returned(
    value: V,
    kinds: type | tuple[type, ...],
    function: Callable[..., Any],
    expected: str,
    failure: type[EdgeflError] = WrongValueError,
) -> V:
    """What a function of a component returned, checked; ``expected`` is told as in "a carry (a dict)"."""
    if isinstance(value, kinds):
        return value
    place = defined_at(function)
    what = "None" if value is None else f"an object of class {type(value).__name__!r}"
    name = getattr(function, "__name__", type(function).__name__).strip("<>")
    raise failure(
        f"{f'{name} in {place.name}' if place else name} returned {what} instead of {expected}",
        where=str(place or ""),
        hint="is `return` missing?" if value is None else "see docs/extending.md",
    )


@contextmanager
def user_code() -> Iterator[None]:
    """Around calls of a user's code, as a block or a decorator: what it raises becomes one message."""
    try:
        yield
    except BaseException as error:
        told = explained(error)
        if told is None:
            raise
        raise told from error


def of_path(error: BaseException) -> UserError | None:
    """The message for a path that is too long or not for this user, which nobody else can have given."""
    if not isinstance(error, OSError) or error.filename is None:
        return None
    if error.errno == errno.ENAMETOOLONG or isinstance(error, PermissionError):
        return UserError(f"cannot use {short(str(error.filename), 200)}: {error.strerror}")
    return None


# Of what an argument may be, the simple kinds: the classes and their words.
_KINDS: dict[Any, tuple[type, str]] = {
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    bool: (bool, "True or False"),
    str: (str, "text"),
    Path: (Path, "a path"),
    type(None): (type(None), "None"),
}


def asked(function: Callable[P, R]) -> Callable[P, R]:
    """A function that users call: a mistake of theirs is one ``UserError``, without the frames inside."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            _check_kinds(function, inspect.signature(function).bind(*args, **kwargs).arguments)
            return function(*args, **kwargs)
        except UserError as error:
            raise error.with_traceback(None) from (error.__cause__ if error.trace else None)
        except BaseException as error:
            told = explained(error) or of_path(error)
            if told is None:
                raise
            raise told from (error if told.trace else None)

    return call


def _check_kinds(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Checks the arguments whose annotations are of simple kinds alone."""
    hints = inspect.get_annotations(function, eval_str=True)
    for name, value in arguments.items():
        hint = hints.get(name)
        kind = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
        least = getattr(next(iter(getattr(hint, "__metadata__", ())), None), "min", None)
        if least is not None and isinstance(value, Real) and value < least:
            raise UserError(f"{name} must be at least {least}, not {value}", where=name)
        if any(kind not in _KINDS for kind in kinds):
            continue
        # A bool is an int to Python.
        classes = tuple(_KINDS[kind][0] for kind in kinds)
        if not (bool in kinds if isinstance(value, bool) else isinstance(value, classes)):
            words = " or ".join(_KINDS[kind][1] for kind in kinds)
            raise UserError(f"{name} must be {words}, not {value!r}", where=name)


def as_run_error(error: BaseException) -> EdgeflError:
    """Why a run failed, of whatever was raised: our own errors as they are."""
    if isinstance(error, EdgeflError):
        return error
    return explained(error, RunError) or internal(error)
