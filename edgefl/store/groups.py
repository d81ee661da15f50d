"""Groups: the runs of one sweep, in one directory with a list of them, written before the first begins."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from edgefl.core.errors import UserError
from edgefl.core.files import atomically, on_disk
from edgefl.store.folders import DATABASE, folders_in
from edgefl.store.locks import GROUP


def write_group(folder: Path, name: str, runs: Sequence[str]) -> None:
    """Writes the list of a group's runs, by the names of their directories.

    Raises:
        RunError: it cannot be written.
    """
    data = {"name": name, "runs": list(runs)}
    atomically(folder / GROUP, json.dumps({**data, "sha256": _digest(data)}, indent=2).encode())
    with suppress(OSError):
        on_disk(folder)


def _digest(data: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()


def leave_group(run: Path) -> None:
    """Takes a run that is to be removed off its group's list, so that nobody runs it again.

    The list goes with the last run. One that is damaged stays: its group cannot be resumed in any case.

    Raises:
        RunError: the list cannot be written.
    """
    run = run.resolve()
    with suppress(UserError, OSError):
        name, runs = read_group(run.parent)
        if left := [other for other in runs if other != run.name]:
            write_group(run.parent, name, left)
        else:
            (run.parent / GROUP).unlink()


def is_group(folder: Path) -> bool:
    """Whether a directory holds several runs of one command, all of which were planned."""
    return (folder / GROUP).is_file()


def lost_from(folder: Path) -> dict[Path, str]:
    """The runs that a group, or the groups in a folder, list and no longer have, and why; see ``runs_in``."""
    found: dict[Path, str] = {}
    for group in [folder, *folders_in(folder)]:
        # A list that is damaged, or may not be read, names nobody.
        with suppress(UserError, OSError):
            runs = read_group(group)[1] if is_group(group) else []
            found |= {group / run: why for run in runs if (why := _lost(group / run))}
    return found


def _lost(run: Path) -> str:
    if (run / DATABASE).is_file():
        return ""
    if run.is_dir():
        return f"it has no {DATABASE}"
    return "it is a link to nowhere" if run.is_symlink() else "its folder is gone"


def read_group(folder: Path) -> tuple[str, list[str]]:
    """A group's name, and its runs by the names of their directories.

    Raises:
        UserError: the list is damaged.
    """
    try:
        data = json.loads((folder / GROUP).read_text(encoding="utf-8"))
        sha256 = data.pop("sha256")
        if sha256 == _digest(data):
            return data["name"], data["runs"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise UserError(
        f"{folder.name}: {GROUP} is damaged", where=str(folder / GROUP), hint="resume its runs one by one"
    )
