"""Runs the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from edgefl.cli.app import app
from edgefl.cli.console import print_error, print_note
from edgefl.cli.signals import ending_once
from edgefl.cli.streams import streams
from edgefl.core.errors import EdgeflError
from edgefl.core.notes import passed_to
from edgefl.core.user_code import explained, internal, of_path

_INTERRUPTED = 130


def main(arguments: list[str] | None = None, program: Callable[..., Any] = app) -> None:
    """Runs the command line and exits with its status.

    Raises:
        SystemExit: always, with status 0, 1 or 2; 130 after an interrupt, 143 after SIGTERM.
    """
    with streams(document=_prints_document(sys.argv[1:] if arguments is None else arguments)):
        try:
            with ending_once(), passed_to(print_note):
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


def _prints_document(arguments: Sequence[str]) -> bool:
    """Whether standard output is for one document, which a program may read."""
    words = [word for argument in arguments for word in argument.split("=", 1)]
    formats = {value for option, value in pairwise(words) if option == "--format"}
    return "--json" in arguments or bool(formats - {"table"})
