"""Commands that are functions of ``edgefl``: each answers what its command prints."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, ForwardRef, ParamSpec, TypeVar, get_args

import typer

from edgefl.cli.app import app
from edgefl.cli.console import print_error, print_json, print_note, stderr, stdout
from edgefl.cli.options import AsJson
from edgefl.cli.steps import Steps
from edgefl.cli.streams import results
from edgefl.core.errors import EdgeflError, UserError
from edgefl.core.user_code import asked, hints_of
from edgefl.show.answers import Shown

P = ParamSpec("P")
A = TypeVar("A", bound=Shown)


def command(epilog: str) -> Callable[[Callable[P, A]], Callable[P, A]]:
    """Makes a function a command, and one that users call; its arguments' help describes them to both.

    An argument that is of another type on the command line has that type behind its help; one without help,
    or whose help is a text, is for Python alone. Its ``steps`` are shown on a terminal.
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
        app.command(name=function.__name__, epilog=epilog)(_printed(public, doc, typed))
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


def _printed(public: Callable[..., Shown], doc: str, options: list[inspect.Parameter]) -> Callable[..., None]:
    """The command, as typer takes it: it asks, prints the answer, and then raises what there is to."""

    def printed(*, as_json: bool, **given: Any) -> None:
        chosen = given.get("format")
        if as_json and chosen not in {None, "json"}:
            raise UserError(f"--json and --format {chosen} cannot be combined", where="--format")
        if as_json and "format" in given:
            given["format"] = chosen = "json"
        with Steps(stderr()) as steps:
            try:
                answer, mistake = public(**given, steps=steps.show), None
            except EdgeflError as error:
                answer, mistake = error.answer, error
        if answer is not None:
            _print(answer, as_json=as_json or chosen == "json")
        if mistake is not None:
            raise mistake
        if answer.errors:
            raise typer.Exit(max(error.exit_status for error in answer.errors))

    last = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=AsJson)
    printed.__doc__ = doc
    printed.__annotations__ = {one.name: one.annotation for one in [*options, last]}
    printed.__signature__ = inspect.Signature([*options, last])  # type: ignore[attr-defined]
    return printed


def _print(answer: Shown, *, as_json: bool) -> None:
    for note in answer.notes:
        print_note(note)
    if as_json:
        print_json(answer.document)
    elif answer.plain is not None:
        results().write(answer.plain)
    else:
        console = stdout()
        console.print(answer)
        for line in answer.lines:
            console.print(line, soft_wrap=True)
    for error in answer.errors:
        print_error(error)
