"""The command that holds predictions against what was measured on boards."""

from __future__ import annotations

from typing import Annotated

import typer

from edgefl.cli.answering import command
from edgefl.show.answers import Answer, Steps, quiet


@command("validate", "validate raspberry-pi-5-training", "validate --device raspberry-pi-4b --json")
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
    steps: Steps = quiet,
) -> Answer:
    """Hold predicted times and energies against those measured on real boards."""
    from edgefl.planning.validation import validation
    from edgefl.show import validation as report

    found = validation(tuple(names or ()), tuple(device or ()), steps)
    return Answer("validation", found, report.validation(found))
