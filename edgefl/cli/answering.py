"""Commands that print what a function of ``edgefl.api`` answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from edgefl.cli.console import print_error, print_json, print_note, stderr, stdout
from edgefl.cli.steps import Steps
from edgefl.core.errors import EdgeflError

if TYPE_CHECKING:
    from edgefl.report.answers import Shown


def answered(ask: Callable[..., Shown], *given: Any, as_json: bool, **options: Any) -> None:
    """Asks, with progress on a terminal, and prints the answer.

    Raises:
        EdgeflError: there was a mistake; what was found all the same is printed.
        Exit: something failed.
    """
    with Steps(stderr()) as steps:
        try:
            answer, mistake = ask(*given, **options, steps=steps.show), None
        except EdgeflError as error:
            answer, mistake = error.answer, error
    if answer is not None:
        show(answer, as_json=as_json)
    if mistake is not None:
        raise mistake
    if answer.errors:
        raise typer.Exit(max(error.exit_status for error in answer.errors))


def show(answer: Shown, *, as_json: bool) -> None:
    """Prints notes and errors to stderr, and the document or the tables to stdout."""
    for note in answer.notes:
        print_note(note)
    if as_json:
        print_json(answer.document)
    else:
        console = stdout()
        console.print(answer)
        for line in answer.lines:
            console.print(line, soft_wrap=True)
    for error in answer.errors:
        print_error(error)
