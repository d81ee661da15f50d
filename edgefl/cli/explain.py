"""The command that says why rounds were slow."""

from __future__ import annotations

from typing import Annotated

import typer

from edgefl.cli.app import app, examples
from edgefl.cli.console import print_json, print_note, stderr, stdout
from edgefl.cli.options import AsJson, RunFolders


@app.command(
    epilog=examples(
        "explain runs/first",
        "explain runs/first --round 12",
        "explain runs/first --json",
    )
)
def explain(
    runs: RunFolders,
    round_: Annotated[
        int | None,
        typer.Option("--round", metavar="N", help="One round, counted from 0; all together by default."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say why rounds took as long as they did: their critical paths, and what faster clients would save.

    The critical path leads from a round's last merge back to its start: who was waited for, and for what.

    Savings are left out where other times would make another run, as with asynchronous policies.
    """
    from edgefl.cli.steps import Steps
    from edgefl.report.critical import explain as explained
    from edgefl.report.critical.shown import shown
    from edgefl.report.summary import each_run

    with Steps(stderr()) as steps:
        found = each_run(runs, lambda reader, _: explained(reader, round_, steps.show), note=print_note)
    if as_json:
        print_json({"runs": found})
        return
    console = stdout()
    for place, one in enumerate(found):
        if place:
            console.print()
        console.print(shown(one))
