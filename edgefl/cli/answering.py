"""The frame of the command line: a command is a function that answers, and one decorator prints its answer.

Results go to stdout; progress, notes and errors to stderr. Exit status: 0 done, 1 a run failed, 2 bad input.
"""

from __future__ import annotations

import errno
import inspect
import io
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ForwardRef, ParamSpec, TypeVar, get_args

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from typer import Argument, Option

from edgefl.core.errors import EdgeflError, RunError, UserError
from edgefl.core.notes import passed_to
from edgefl.core.user_code import Terminated, asked, explained, internal, of_path
from edgefl.show.answers import WIDTH, Shown, Steps, plain_console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgefl.runs.group import Overrides
    from edgefl.runs.results import Runs

P = ParamSpec("P")
A = TypeVar("A", bound=Shown)

_STDOUT, _STDERR = 1, 2
# What a stream that takes no more fails with.
_LOST = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
# COLUMNS asks for no less.
_LEAST = 20
_INTERRUPTED = 130
# How long workers may take to stop; another interrupt after that ends the process at once.
_PATIENCE_S = 10.0
# Behind a help, here and in commands: the type on the command line, where it is not that in Python.
Overridden = Annotated[
    "Overrides",
    Option("--set", metavar="KEY=VALUE", help="Override a setting, such as server.rounds=5."),
    list[str] | None,
]
OwnModel = Annotated[
    Any, "A module, whose weights a run starts from; a class or function that makes one; or a component."
]
Seed = Annotated[int | None, Option(help="Short for --set seed=N.")]
Seeds = Annotated[
    int | None,
    Option(metavar="N", min=1, help="Repeat every run with N seeds, counting up from the scenario's."),
]
FleetLink = Annotated[
    str | None,
    Option("--link", metavar="NAME", help="Short for --set fleet.link=NAME: all clients' network class."),
]
Offline = Annotated[bool, Option("--offline", help="Never download a dataset.")]
Force = Annotated[bool, Option("--force", help="Overwrite what is there.")]
Sensitivity = Annotated[
    float | None,
    Option(
        metavar="FACTOR",
        help="Say whether the order holds over all intervals, with assumed numbers by 1/FACTOR and FACTOR; "
        "1 for intervals alone.",
    ),
]
_RUNS = Argument(metavar="RUN", help="Runs, groups of runs, or folders of groups.")
RunFolders = Annotated[list[Path], _RUNS]
SomeRuns = Annotated["Runs | Sequence[Runs]", _RUNS, list[Path]]
TargetAccuracy = Annotated[
    float | str | None,
    Option(
        metavar="ACCURACY",
        help="Target accuracy, such as 0.9, or best-of:RUN, the best of that run; each run's own by default.",
    ),
    str | None,
]
AsJson = Annotated[bool, Option("--json", help="Print one JSON document on stdout.")]

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
        bool, Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Registers the options of the program itself."""


def command(*examples: str, as_json: bool = True) -> Callable[[Callable[P, A]], Callable[P, A]]:
    """Makes a function a command, and one that users call; its arguments' help describes them to both.

    An argument that is of another type on the command line has that type behind its help; one without help,
    or whose help is a text, is for Python alone. Its ``steps`` are shown on a terminal. Examples are what may
    stand behind ``edgefl``, for its help; ``as_json`` is whether it has ``--json``.
    """

    def register(function: Callable[P, A]) -> Callable[P, A]:
        public, doc = asked(function), inspect.cleandoc(function.__doc__ or "")
        given = inspect.signature(function).parameters
        typed, plain, words = [], dict(given), []
        for name, hint in inspect.get_annotations(function, eval_str=True).items():
            if not hasattr(hint, "__metadata__"):
                continue
            kind, info, *others = get_args(hint)
            words.append(f"    {name}: {getattr(info, 'help', info)}")
            in_python = kind.__forward_arg__ if isinstance(kind, ForwardRef) else kind
            plain[name] = given[name].replace(annotation=in_python)
            if not isinstance(info, str):
                typed.append(given[name].replace(annotation=Annotated[others[0] if others else kind, info]))
        if as_json:
            kind = inspect.Parameter.KEYWORD_ONLY
            typed.append(inspect.Parameter("as_json", kind, default=False, annotation=AsJson))
        # Each paragraph is a line of its own.
        epilog = "\n\n".join(["Examples:", *(f"edgefl {example}" for example in examples)])
        name = function.__name__.removesuffix("_")
        app.command(name, epilog=epilog)(_printed(public, doc, typed, steps="steps" in given))
        public.__signature__ = inspect.Signature(list(plain.values()))  # type: ignore[attr-defined]
        public.__doc__ = "\n".join([f"{doc}\n\nArgs:", *words])
        return public

    return register


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


def main(arguments: list[str] | None = None, program: Callable[..., Any] = app) -> None:
    """Runs the command line and always exits: status 0, 1 or 2; 130 after an interrupt, 143 after SIGTERM."""
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # Lest another file be opened as one of the first three.
            setattr(sys, name, open(os.devnull, "r+", encoding="utf-8"))  # noqa: PTH123, SIM115
        elif isinstance(stream, io.TextIOWrapper) and name != "stdin":
            # What its encoding lacks is a question mark.
            stream.reconfigure(errors="replace")
    try:
        # Help too is printed, and what users' code printed is flushed.
        with _ending_once(), passed_to(print_note), writing():
            program(arguments)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except BaseException as error:
        told = error if isinstance(error, EdgeflError) else explained(error) or of_path(error)
        if told is None:
            if isinstance(error, SystemExit):
                raise
            told = internal(error)
        print_error(told)
        sys.exit(told.exit_status)


@contextmanager
def _ending_once() -> Iterator[None]:
    """Around a command: Ctrl-C raises ``KeyboardInterrupt`` and SIGTERM ``Terminated``, once.

    Until the process has ended further ones are ignored, so that workers stop, shared memory is freed and
    nothing interrupts Python's own exit; after ``_PATIENCE_S`` they end the process without any of this. In
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
        if time.monotonic() - first_s > _PATIENCE_S:
            os._exit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            # At its exit Python would put the default in place of a function.
            signal.signal(number, handler if first_s is None else signal.SIG_IGN)
