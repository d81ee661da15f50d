"""The command that makes a report page of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgefl.cli.answering import command
from edgefl.cli.options import Force, Sensitivity, SomeRuns, TargetAccuracy
from edgefl.show.answers import Answer, Steps, quiet


@command("report runs/first", "report runs/first runs/second --target 0.9 --out comparison.html")
def report(
    runs: SomeRuns,
    *,
    out: Annotated[
        str | Path | None,
        typer.Option(metavar="FILE.html", help="File to write; named after the first RUN by default."),
        Path | None,
    ] = None,
    target: TargetAccuracy = None,
    sensitivity: Sensitivity = None,
    force: Force = False,
    steps: Steps = quiet,
) -> Answer:
    """Make one HTML page of runs: figures, tables and plots; it opens from disk and needs no network.

    Runs that differ in nothing but their seeds are averaged.
    """
    from edgefl.core.outputs import check_out
    from edgefl.core.units import show_bytes
    from edgefl.runs.results import folders_of
    from edgefl.show.page.build import page
    from edgefl.show.page.files import SUFFIXES, named_after, write
    from edgefl.show.page.html import html

    folders = folders_of(runs)
    name = named_after(folders)
    path = Path(name if out is None else out)
    check_out(path, name, force=force, suffixes=SUFFIXES)
    notes: list[str] = []
    steps("reading runs", 0, 1)
    size = write(path, html(page(folders, target, note=notes.append, sensitivity=sensitivity)))
    lines = [f"saved {path} ({show_bytes(size)})"]
    return Answer(f"report in {path}", {"file": str(path), "bytes": size}, lines=lines, notes=notes)
