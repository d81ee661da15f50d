"""The frame of the command line: a command is a function that answers, and one decorator prints its answer.

Results go to stdout; progress, notes and errors to stderr. Exit status: 0 done, 1 a run failed, 2 bad input.
"""

from __future__ import annotations

import errno
import inspect
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stdout, suppress
from typing import Annotated, Any, ForwardRef, ParamSpec, TypeVar, get_args

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from edgefl.core.errors import EdgeflError, RunError, UserError
from edgefl.core.user_code import asked, hints_of
from edgefl.show.answers import WIDTH, Shown, Steps, plain_console

P = ParamSpec("P")
A = TypeVar("A", bound=Shown)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
_STDOUT, _STDERR = 1, 2
# What a stream that takes no more fails with.
_LOST = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
# COLUMNS asks for no less.
_LEAST = 20


app = typer.Typer(
    help="What would federated learning cost on your devices? Real training under a simulated clock.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked_for: bool) -> None:  # noqa: FBT001 - typer calls it
    if asked_for:
        from edgefl.core.host import version

        typer.echo(f"edgefl {version()}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Registers the options of the program itself."""


def command(*examples: str, as_json: bool = True) -> Callable[[Callable[P, A]], Callable[P, A]]:
    """Makes a function a command, and one that users call; its arguments' help describes them to both.

    An argument that is of another type on the command line has that type behind its help; one without help,
    or whose help is a text, is for Python alone. Its ``steps`` are shown on a terminal.

    Args:
        examples: what may stand behind ``edgefl``, for its help.
        as_json: whether it has ``--json``.
    """

    def register(function: Callable[P, A]) -> Callable[P, A]:
        public, doc = asked(function), inspect.cleandoc(function.__doc__ or "")
        hints = {name: one for name, one in hints_of(function).items() if hasattr(one, "__metadata__")}
        given = inspect.signature(function).parameters
        helps = {name: one.__metadata__[0] for name, one in hints.items()}
        typed = [
            given[name].replace(annotation=_typed(one))
            for name, one in hints.items()
            if not isinstance(helps[name], str)
        ]
        if as_json:
            kind = inspect.Parameter.KEYWORD_ONLY
            typed.append(inspect.Parameter("as_json", kind, default=False, annotation=AsJson))
        # Each paragraph is a line of its own.
        epilog = "\n\n".join(["Examples:", *(f"edgefl {example}" for example in examples)])
        name = function.__name__.removesuffix("_")
        app.command(name, epilog=epilog)(_printed(public, doc, typed, steps="steps" in given))
        plain = dict(given) | {
            name: given[name].replace(annotation=_plain(one)) for name, one in hints.items()
        }
        public.__signature__ = inspect.Signature(list(plain.values()))  # type: ignore[attr-defined]
        words = (f"    {name}: {getattr(one, 'help', one)}" for name, one in helps.items())
        public.__doc__ = "\n".join([f"{doc}\n\nArgs:", *words])
        return public

    return register


def _typed(hint: Any) -> Any:
    """What typer reads: of an argument with another type on the command line, that one."""
    kind, info, *others = get_args(hint)
    return Annotated[others[0] if others else kind, info]


def _plain(hint: Any) -> Any:
    """What is read in Python."""
    kind = hint.__origin__
    return kind.__forward_arg__ if isinstance(kind, ForwardRef) else kind


def _printed(
    public: Callable[..., Shown], doc: str, options: list[inspect.Parameter], *, steps: bool
) -> Callable[..., None]:
    """The command, as typer takes it: it asks, prints the answer, and then raises what there is to."""

    def printed(*, as_json: bool = False, **given: Any) -> None:
        chosen = given.get("format")
        if as_json and chosen not in {None, "json"}:
            raise UserError(f"--json and --format {chosen} cannot be combined", where="--format")
        if as_json and "format" in given:
            given["format"] = chosen = "json"
        apart, as_json = as_json or chosen not in {None, "table"}, as_json or chosen == "json"
        try:
            with _apart() if apart else nullcontext(), ExitStack() as shown:
                if steps:
                    given["steps"] = shown.enter_context(_steps())
                answer = public(**given)
        except EdgeflError as error:
            if error.answer is not None:
                _print(error.answer, as_json=as_json)
            raise
        _print(answer, as_json=as_json)
        if status := max([answer.exit_status, *(error.exit_status for error in answer.errors)]):
            raise typer.Exit(status)

    printed.__doc__ = doc
    printed.__annotations__ = {one.name: one.annotation for one in options}
    printed.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return printed


@contextmanager
def _apart() -> Iterator[None]:
    """Keeps stdout for one document: what is printed meanwhile, by other processes too, goes to stderr."""
    sys.stdout.flush()
    kept = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, _STDOUT)
        os.close(kept)


def _print(answer: Shown, *, as_json: bool) -> None:
    for note in answer.notes:
        print_note(note)
    with writing(hint=next(iter(answer.lines), "")):
        if as_json:
            sys.stdout.write(json.dumps(answer.document, indent=2, allow_nan=False) + "\n")
        elif answer.plain is not None:
            answer.plain(sys.stdout)
        else:
            # All at once: where nobody reads on, rich would end the process.
            with (shown := stdout()).capture() as captured:
                answer.show(shown)
            sys.stdout.write(captured.get())
    for error in answer.errors:
        print_error(error)


@contextmanager
def writing(hint: str = "") -> Iterator[None]:
    """Around what writes to stdout; where nobody reads on, as behind ``| head``, the rest is dropped.

    Raises:
        RunError: it takes no more, such as a file on a disk that is full.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in _LOST:
            raise
        # Python flushes once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise RunError(f"cannot write to standard output: {error.strerror}", hint=hint) from error


@contextmanager
def _steps() -> Iterator[Steps]:
    """One bar over a known number of steps, shown on a terminal; it disappears at the end."""
    console, text = stderr(), TextColumn("{task.description}", markup=False)
    columns = BarColumn(bar_width=20), MofNCompleteColumn(), text, TimeElapsedColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("getting ready", total=None)
        yield lambda label, done, total: bar.update(task, description=label, completed=done, total=total)


def stdout() -> Console:
    """The console for results: as wide as COLUMNS says, or the terminal, or 100 columns."""
    columns = os.environ.get("COLUMNS", "")[:4]
    if columns.isdecimal() and int(columns) >= _LEAST:
        return plain_console(width=int(columns))
    return plain_console(width=None if sys.stdout.isatty() else WIDTH)


def stderr() -> Console:
    """The console for progress, notes and errors."""
    return plain_console(stderr=True)


def print_error(error: EdgeflError) -> None:
    """Prints an error and those found with it to stderr; a traceback, if there is one, goes to a file."""
    for message in error.messages():
        stderr().print(f"error: {message}", style="red", soft_wrap=True)
    # An unwritable folder must not hide the error.
    with suppress(OSError):
        if error.trace:
            handle, name = tempfile.mkstemp(prefix="edgefl-traceback-", suffix=".txt")
            with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
                file.write(error.trace)
            stderr().print(f"  trace: {name}", style="red", soft_wrap=True)


def print_note(line: str) -> None:
    """Prints what is worth knowing beside a result to stderr."""
    stderr().print(f"note: {line}", style="yellow", soft_wrap=True)
