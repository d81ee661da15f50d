"""The command that says why rounds were slow."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Group

from edgefl.cli.answering import command
from edgefl.cli.options import RunFolders
from edgefl.show.answers import Answer, Steps, quiet


@command("explain runs/first", "explain runs/first --round 12", "explain runs/first --json")
def explain(
    runs: RunFolders,
    round_: Annotated[
        int | None,
        typer.Option("--round", metavar="N", help="One round, counted from 0; all together by default."),
    ] = None,
    steps: Steps = quiet,
) -> Answer:
    """Say why rounds took as long as they did: their critical paths, and what faster clients would save.

    The critical path leads from a round's last merge back to its start: who was waited for, and for what.

    Savings are other runs of the clock, left out of very long runs and where more than times would change.
    """
    from edgefl.analysis.explain.explain import explain as explained
    from edgefl.analysis.summary import each_run
    from edgefl.show.explanation import shown
    from edgefl.show.table import Line

    notes: list[str] = []
    found = each_run(runs, lambda reader, _: explained(reader, round_, steps), note=notes.append)
    parts = [part for one in found for part in (Line(), shown(one))]
    return Answer("explanation", {"runs": found}, Group(*parts[1:]), notes=notes)
