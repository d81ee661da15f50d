"""Commands about what runs there are: list them, remove them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgefl.cli.answering import command, stderr
from edgefl.cli.options import RunFolders
from edgefl.core.errors import UserError
from edgefl.show.answers import Answer

if TYPE_CHECKING:
    from edgefl.store import Removal

# Of files that stay, and of runs that go, so many are named.
_NAMED = 10


@command("runs", "runs runs/sweep --status killed", "runs --all --json")
def runs(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="A folder of groups, a group, or a run."),
    ] = Path("runs"),
    status: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STATUS",
            help="Only these: planned, running, killed, interrupted, failed, done, damaged, other-format.",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="A line for each run of a group.")] = False,
) -> Answer:
    """List the runs in a folder, those written last at the end, and which can be resumed.

    Runs are not verified: a run that is damaged where nothing was read is listed as it stands.
    """
    from edgefl.show.listing import STATUSES, listing
    from edgefl.show.listing_tables import listing_table, to_resume

    for one in status or ():
        if one not in STATUSES:
            raise UserError(
                f"unknown status {one!r}", where="--status", hint=f"it must be one of: {', '.join(STATUSES)}"
            )
    found = listing(folder, status or ())
    view = listing_table(found, every=every, only=status or ())
    return Answer(f"runs in {folder}", found, view, list(to_resume(found.resumable)))


@command("rm runs/first", "rm runs/sweep/02-fedprox --yes")
def rm(
    paths: RunFolders,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> Answer:
    """Remove runs, groups of runs, or all runs in a folder of groups.

    What is in progress is never removed, nor a file that edgefl did not write.
    """
    from edgefl.core.units import show_bytes, show_count
    from edgefl.store import removals, remove

    found = removals(paths)
    for one in found:
        with one.held():
            pass
    if not yes:
        _ask(found)
    freed = sum(remove(one) for one in found)
    kept = [path for one in found for path in one.kept]
    removed = [run for one in found for run in one.runs]
    return Answer(
        "removal",
        {"removed": removed, "freed_bytes": freed, "kept": kept},
        lines=[f"removed {show_count(len(removed), 'run')}, freed {show_bytes(freed)}"],
        notes=_cut([f"kept {path}: edgefl did not write it" for path in kept]),
    )


def _ask(found: Sequence[Removal]) -> None:
    """Says what is to go and asks whether to.

    Raises:
        UserError: there is nobody to ask.
        Exit: the answer is no.
    """
    from edgefl.core.units import show_bytes, show_count

    count = sum(len(one.runs) for one in found)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(
            f"{show_count(count, 'run')} would be removed; nothing was",
            where="RUN",
            hint="confirm with --yes where there is no terminal to ask on",
        )
    lines = [
        f"{one.folder}: {show_count(len(one.runs), 'run')}, {show_bytes(one.size_bytes)}" for one in found
    ]
    for text in _cut(lines):
        stderr().print(text, soft_wrap=True)
    stderr().print(f"Remove {show_count(count, 'run')}? [y/N]", end=" ")
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        stderr().print("nothing was removed")
        raise typer.Exit(1)


def _cut(lines: Sequence[str]) -> list[str]:
    left = len(lines) - _NAMED
    return [*lines[:_NAMED], *([f"and {left:,} more"] if left > 0 else [])]
