"""The files of timelines, and the run that one is made of."""

from __future__ import annotations

from pathlib import Path

from edgefl.core.errors import UserError
from edgefl.show.page.files import stem_of
from edgefl.store import runs_in

SUFFIXES = (".pftrace", ".perfetto-trace")


def named_after(folder: Path) -> str:
    """The name of a run's timeline."""
    return f"{stem_of(folder)}.pftrace"


def run_of(folder: Path) -> Path:
    """The directory of the only run of a group, or of a run.

    Raises:
        UserError: there are none, or several.
    """
    runs = runs_in(folder)
    if len(runs) > 1:
        names = ", ".join(run.relative_to(folder).as_posix() for run in runs[:_MOST_NAMED])
        more = f" and {len(runs) - _MOST_NAMED} more" if len(runs) > _MOST_NAMED else ""
        raise UserError(
            f"{folder} holds {len(runs)} runs: {names}{more}",
            where=str(folder),
            hint=f"choose one, such as {runs[0]}",
        )
    return runs[0]


_MOST_NAMED = 6
