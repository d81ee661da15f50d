"""The command that makes a report page of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgefl.cli.answering import answered
from edgefl.cli.app import app, examples
from edgefl.cli.options import AsJson, RunFolders, Sensitivity, TargetAccuracy


@app.command(
    epilog=examples(
        "report runs/first",
        "report runs/first runs/second --target 0.9 --out comparison.html",
    )
)
def report(
    runs: RunFolders,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="File to write; named after the first RUN by default."),
    ] = None,
    target: TargetAccuracy = None,
    sensitivity: Sensitivity = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite a file that is not a report page.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make one HTML page of runs: figures, tables and plots; it opens from disk and needs no network.

    Runs that differ in nothing but their seeds are averaged. A report page that is there is overwritten.
    """
    from edgefl.api import report as ask

    answered(ask, runs, out=out, target=target, sensitivity=sensitivity, force=force, as_json=as_json)
