"""Figures of runs for papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgefl.cli.answering import command
from edgefl.cli.options import Force, RunFolders
from edgefl.show.answers import Answer


@command(
    "plot runs/first --out accuracy.pdf",
    "plot runs/first runs/second --x bytes --target 0.9 --out traffic.svg",
    "plot runs/first --y target --x time,bytes --target 0.9 --out to.pdf",
    as_json=False,
)
def plot(
    runs: RunFolders,
    out: Annotated[Path, typer.Option(metavar="FILE", help="FILE.pdf, FILE.svg or FILE.png.")],
    x: Annotated[
        str,
        typer.Option(
            "--x", help="time, round, epochs, bytes, joules or client-seconds; several as time,bytes."
        ),
    ] = "time",
    y: Annotated[
        str, typer.Option("--y", help="accuracy, loss, or target: x until it was reached.")
    ] = "accuracy",
    model: Annotated[
        str | None,
        typer.Option(help="global or personal; by default global, unless no run has evaluated one."),
    ] = None,
    columns: Annotated[
        int | None,
        typer.Option(
            metavar="1|2", help="Width: one column of a paper (3.5 in) or two (7.16 in); 2 for several x."
        ),
    ] = None,
    log_x: Annotated[bool, typer.Option("--log-x", help="Draw x on a logarithmic scale.")] = False,
    target: Annotated[
        list[float] | None,
        typer.Option(
            help="An accuracy such as 0.9, for a line or --y target; each run's own by default there."
        ),
    ] = None,
    force: Force = False,
) -> Answer:
    """Draw accuracy or loss of runs against cost, or what a target cost them, for a paper.

    Runs that differ in nothing but their seeds are one, their mean, in its 95% interval.
    """
    from edgefl.core.outputs import check_out
    from edgefl.show.charts import SUFFIXES, Choice, charts, require_matplotlib

    choice = Choice(x, y, model, columns, log_x, target)
    check_out(out, "figure.pdf", force=force, suffixes=SUFFIXES)
    require_matplotlib()
    from edgefl.show.drawing import write

    notes: list[str] = []
    drawn = charts(runs, choice, note=notes.append)
    made, missing = write(drawn, out)
    notes += dict.fromkeys([*(line for one in drawn for line in one.notes), *missing])
    width, height = made.get_size_inches()
    captions = dict.fromkeys(f"caption: {one.caption}" for one in drawn)
    lines = [f"saved {out} ({width:.3g} x {height:.3g} in)", *captions]
    return Answer(f"plot in {out}", {"file": out}, lines=lines, notes=notes)
