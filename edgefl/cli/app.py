"""The command line: parse and print, nothing else.

Results go to stdout; progress, notes and errors to stderr. Exit status: 0 done, 1 a run failed, 2 bad input.
Each module beside this one registers the commands of one topic.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup


class _Commands(TyperGroup):
    """The commands, with our own words for what an option's value must be."""

    def invoke(self, ctx: Any) -> Any:
        """Runs a command.

        Raises:
            BadParameter: an option has a wrong value.
        """
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            from pydantic import ValidationError

            if isinstance(error.__cause__, ValidationError):
                from edgefl.core.wording import must, quoted

                first = error.__cause__.errors(include_url=False)[0]
                said = first.get("ctx", {})
                words = must(first["type"], said) or "be something else"
                # A choice's own error names the others.
                own = str(said.get("error", "")).removesuffix(".")
                error.message = own or f"must {words}; got {quoted(first['input'])}"
            raise


app = typer.Typer(
    cls=_Commands,
    help="What would federated learning cost on your devices? Real training under a simulated clock.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer calls it
    if asked:
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


def examples(*commands: str) -> str:
    """The end of a command's help: examples, a line each."""
    # Each paragraph is a line of its own.
    return "\n\n".join(["Examples:", *(f"edgefl {command}" for command in commands)])
