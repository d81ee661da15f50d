"""The command that writes a run's timeline for Perfetto."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgefl.cli.app import app, examples
from edgefl.cli.console import print_json, print_note, stderr, stdout
from edgefl.cli.options import AsJson
from edgefl.core.outputs import Own, check_out


@app.command(
    epilog=examples(
        "timeline runs/first",
        "timeline runs/first --clients 0,3,7-12 --rounds 2-5 --out few.pftrace",
    )
)
def timeline(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run, or a group of one run.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.pftrace", help="File to write; named after RUN by default."),
    ] = None,
    clients: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Clients to show, such as 0,3,7-12; by default all that had jobs."),
    ] = None,
    rounds: Annotated[
        str | None, typer.Option(metavar="RANGE", help="Rounds to show, such as 2-5; the first one is 0.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is not a timeline.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write what happened in a run as a trace that Perfetto (https://ui.perfetto.dev) opens.

    A track per client shows its jobs; others the server, active clients, traffic, energy and accuracy.
    """
    from edgefl.cli.steps import Steps
    from edgefl.core.units import show_bytes, show_count
    from edgefl.show.perfetto.build import write
    from edgefl.show.perfetto.choice import Choice
    from edgefl.show.perfetto.files import SUFFIXES, is_timeline, named_after, run_of
    from edgefl.store import read

    folder = run_of(run)
    name = named_after(folder)
    path = Path(name) if out is None else out
    check_out(path, name, force=force, suffixes=SUFFIXES, own=Own("a timeline of edgefl's", is_timeline))
    choice = Choice.parse(clients, rounds)
    with read(folder) as reader, Steps(stderr()) as steps:
        written = write(reader, path, choice, note=print_note, progress=steps.show)
    if as_json:
        print_json(written)
        return
    jobs, clients = show_count(written.jobs, "job"), show_count(written.clients, "client")
    shown = f"{jobs} of {clients}, {show_count(written.events, 'event')}"
    stdout().print(f"saved {path} ({show_bytes(written.bytes)}; {shown})", soft_wrap=True)
    stdout().print("open it at https://ui.perfetto.dev", soft_wrap=True)
