"""Commands about what has a name: list it, show it, and the schema of scenarios."""

from __future__ import annotations

from typing import Annotated

import typer

from edgefl.cli.app import app
from edgefl.cli.console import print_json, stdout


@app.command(name="list")
def list_(
    kind: Annotated[
        str | None,
        typer.Argument(metavar="KIND", help="devices, methods, scenarios, ...; all kinds by default."),
    ] = None,
) -> None:
    """List devices, methods, models, scenarios and everything else that has a name."""
    from edgefl.core.catalogue import KINDS, entries, summary
    from edgefl.report.tables import named

    for title in [kind] if kind else KINDS:
        rows = [(name, summary(entry)) for name, entry in entries(title).items()]
        stdout().print(named(title, rows, ("name", "description")))


@app.command()
def show(
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help="A kind from `edgefl list`, singular or plural.")
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name of that kind.")],
) -> None:
    """Show a device's numbers and their sources, a method's paper and parameters, or a file's text."""
    from edgefl.planning.describe import describe
    from edgefl.report.tables import named

    description = describe(kind, name)
    console = stdout()
    console.print(description.title, style="bold", soft_wrap=True)
    if description.text:
        # Texts are wrapped in their files already.
        console.print(description.text, soft_wrap=True)
    if description.rows:
        console.print(named("", description.rows, description.heads))


@app.command()
def schema() -> None:
    """Print the JSON Schema of a scenario file, for editors."""
    from edgefl.planning.schema import schema as scenario_schema

    print_json(scenario_schema())
