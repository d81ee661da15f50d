"""The command that writes a run's timeline for Perfetto."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgefl.cli.answering import command
from edgefl.cli.options import Force
from edgefl.show.answers import Answer, Steps, quiet


@command("timeline runs/first", "timeline runs/first --clients 0,3,7-12 --rounds 2-5 --out few.pftrace")
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
    force: Force = False,
    steps: Steps = quiet,
) -> Answer:
    """Write what happened in a run as a trace that Perfetto (https://ui.perfetto.dev) opens.

    A track per client shows its jobs; others the server, active clients, traffic, energy and accuracy.
    """
    from edgefl.core.outputs import check_out
    from edgefl.core.units import show_bytes, show_count
    from edgefl.show.perfetto.build import write
    from edgefl.show.perfetto.choice import Choice
    from edgefl.show.perfetto.files import SUFFIXES, named_after, run_of
    from edgefl.store import read

    folder = run_of(run)
    name = named_after(folder)
    path = out or Path(name)
    check_out(path, name, force=force, suffixes=SUFFIXES)
    choice, notes = Choice.parse(clients, rounds), list[str]()
    with read(folder) as reader:
        written = write(reader, path, choice, note=notes.append, progress=steps)
    shown = f"{show_count(written.jobs, 'job')} of {show_count(written.clients, 'client')}"
    size = f"{show_bytes(written.bytes)}; {shown}, {show_count(written.events, 'event')}"
    lines = [f"saved {path} ({size})", "open it at https://ui.perfetto.dev"]
    return Answer(f"timeline in {path}", written, lines=lines, notes=notes)
