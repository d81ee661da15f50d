"""Commands about what has a name: list it, show it, and the schema of scenarios."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from edgefl.cli.app import app, examples
from edgefl.cli.console import print_json, stdout
from edgefl.cli.options import AsJson

if TYPE_CHECKING:
    from edgefl.core.catalogue import Entry


@app.command(name="list", epilog=examples("list devices", "list methods --json"))
def list_(
    kind: Annotated[
        str | None,
        typer.Argument(metavar="KIND", help="devices, methods, scenarios, ...; all kinds by default."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List devices, methods, models, scenarios and everything else that has a name."""
    from edgefl.core.catalogue import KINDS, entries, kind_of, summary
    from edgefl.show.table import Column, Table

    kinds = [kind_of(kind)] if kind else KINDS
    if as_json:
        print_json({"kinds": {each: [_as_data(entry) for entry in entries(each).values()] for each in kinds}})
        return
    for title in kinds:
        rows = [(name, summary(entry)) for name, entry in entries(title).items()]
        stdout().print(Table(["name", Column("description", left=True)], rows, title))


def _as_data(entry: Entry) -> dict[str, str]:
    from edgefl.core.catalogue import summary

    return {"name": entry.name, "description": summary(entry), "file": str(entry.path)}


@app.command(epilog=examples("show raspberry-pi-4b", "show method fedprox", "show --raw scenario quickstart"))
def show(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="A kind from `edgefl list`, singular or plural; may be left out if no other has the name.",
        ),
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name of that kind.")] = "",
    raw: Annotated[bool, typer.Option("--raw", help="Print the file as it is.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a device's numbers and their sources, a method's paper and parameters, or a file's text."""
    from edgefl.core.catalogue import find, kind_of, only_kind_of
    from edgefl.core.inheriting import TAKEN
    from edgefl.planning.describe import describe
    from edgefl.show.table import Column, Line, Table

    if not name:
        kind, name = only_kind_of(kind), kind
    if raw:
        with find(kind_of(kind), name, where="NAME").path.open(encoding="utf-8", newline="") as file:
            sys.stdout.write(file.read())
        return
    description = describe(kind, name)
    if as_json:
        rows = [dict(zip(description.heads, row, strict=True)) for row in description.rows]
        print_json({"title": description.title, "text": description.text, "rows": rows})
        return
    console = stdout()
    console.print(description.title, style="bold", soft_wrap=True)
    if not description.heads:
        console.print(description.text, soft_wrap=True)
        return
    if description.text:
        console.print(Line(description.text))
    if description.rows:
        # Another device's sources are shown with that device.
        shown = [[TAKEN.sub(r"\1", cell) for cell in row] for row in description.rows]
        console.print(Table([Column(head, left=True) for head in description.heads], shown))


@app.command(
    epilog=examples("new device my-board --like pixel-6", "new fleet my-lab", "new scenario my-first")
)
def new(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="device, fleet or scenario.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, such as my-board.")],
    like: Annotated[
        str | None, typer.Option(metavar="OTHER", help="A device or fleet from which it differs.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a commented file to start from, in devices/, profiles/ or scenarios/ here."""
    from edgefl.planning.starting import start

    started = start(kind, name, like)
    if as_json:
        print_json(started)
        return
    stdout().print(f"wrote {started.file}\nnext: {started.next}", soft_wrap=True)


@app.command(epilog=examples("schema"))
def schema() -> None:
    """Print the JSON Schema of a scenario file, for editors."""
    from edgefl.planning.schema import schema as scenario_schema

    print_json(scenario_schema())
