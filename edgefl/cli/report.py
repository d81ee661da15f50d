"""The command that makes a report page of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from edgefl.cli.app import app, examples
from edgefl.cli.console import print_json, print_note, stderr, stdout
from edgefl.cli.options import AsJson, RunFolders, Sensitivity, TargetAccuracy
from edgefl.cli.outputs import Own, check_out


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
    from edgefl.core.units import show_bytes
    from edgefl.report.page.build import page
    from edgefl.report.page.files import SUFFIXES, is_page, named_after, write
    from edgefl.report.page.html import html

    name = named_after(runs)
    path = Path(name) if out is None else out
    check_out(path, name, force=force, suffixes=SUFFIXES, own=Own("a report page", is_page))
    with stderr().status(Text("reading runs")):
        made = page(runs, target, note=print_note, sensitivity=sensitivity)
        size = write(path, html(made))
    if as_json:
        print_json({"file": str(path), "bytes": size})
        return
    stdout().print(f"saved {path} ({show_bytes(size)})", soft_wrap=True)
