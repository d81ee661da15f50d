"""The command that holds predictions against what was measured on boards."""

from __future__ import annotations

from typing import Annotated

import typer

from edgefl.cli.app import app, examples
from edgefl.cli.console import print_json, stderr, stdout
from edgefl.cli.options import AsJson


@app.command(
    epilog=examples(
        "validate", "validate raspberry-pi-5-training", "validate --device raspberry-pi-4b --json"
    )
)
def validate(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME|FILE",
            help="Measurements: names from `edgefl list validation`, or YAML files; all by default.",
        ),
    ] = None,
    device: Annotated[
        list[str] | None, typer.Option(help="Only measurements on this device; can be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Hold predicted times and energies against those measured on real boards."""
    from edgefl.cli.steps import Steps
    from edgefl.planning.validation import validation
    from edgefl.report import validation as report

    with Steps(stderr()) as steps:
        found = validation(tuple(names or ()), tuple(device or ()), steps.show)
    if as_json:
        print_json(found)
        return
    stdout().print(report.validation(found))
