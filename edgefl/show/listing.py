"""What runs there are in a folder, at a glance: few rows of each are read, and none is verified."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgefl.core.errors import UserError
from edgefl.store import (
    OtherFormatError,
    Reader,
    contents,
    event_hash,
    is_group,
    is_locked,
    is_planned,
    is_run,
    lost_from,
    made_in,
)
from edgefl.store import read as read_run
from edgefl.store.folders import DATABASE, PLANNED, by_number

DAMAGED, OTHER_FORMAT = "damaged", "other-format"
STATUSES = ("planned", "running", "killed", "interrupted", "failed", "done", DAMAGED, OTHER_FORMAT)
"""How a run may stand: as of ``store.status_of``, or it cannot be read."""
UNFINISHED = frozenset({"planned", "killed", "interrupted"})
"""Those that ``edgefl run --resume`` goes on with."""


@dataclass(frozen=True, kw_only=True)
class Listed:
    """One run; what is not known, or cannot be read, is None.

    Attributes:
        run_dir: its directory.
        group_dir: that of its group; None for a run on its own.
        name: its name; its directory's where it cannot be read.
        status: one of ``STATUSES``.
        reason: why it failed or cannot be read; empty otherwise.
        size_bytes: of the files that edgefl wrote there.
        changed: when it was written last, as an ISO 8601 time in UTC.
        method, seed, engine, dataset: its settings.
        rounds: how many rounds were done.
        of_rounds: how many there are to be; None where something else ends it.
        model: "global" or "personal": whose accuracy is shown.
        accuracy: of the last evaluation.
        target: the accuracy to reach.
        target_s: the virtual seconds that it took, at the first evaluation that reached it.
        virtual_s: the virtual seconds so far.
        event_hash: see ``store.event_hash``.
    """

    run_dir: Path
    group_dir: Path | None
    name: str
    status: str
    reason: str = ""
    size_bytes: int
    changed: str | None
    method: str | None = None
    seed: int | None = None
    engine: str | None = None
    dataset: str | None = None
    rounds: int | None = None
    of_rounds: int | None = None
    model: str | None = None
    accuracy: float | None = None
    target: float | None = None
    target_s: float | None = None
    virtual_s: float | None = None
    event_hash: str | None = None


@dataclass(frozen=True)
class Listing:
    """The runs in a folder.

    Attributes:
        folder: the folder.
        runs: those that were written last come last; the runs of a group stand together.
        resumable: the runs, or their groups, that `edgefl run --resume` goes on with.
    """

    folder: Path
    runs: Sequence[Listed]
    resumable: Sequence[Path]


def listing(folder: Path, statuses: Sequence[str] = ()) -> Listing:
    """What runs there are.

    Args:
        folder: a run's directory, a group's, or a folder of groups.
        statuses: those to leave in; all where there are none.

    Raises:
        UserError: the folder does not exist or is a file.
    """
    if not folder.is_dir():
        is_it = "is a file, not a folder" if folder.exists() else "does not exist"
        raise UserError(f"{folder} {is_it}", where="FOLDER", hint="give the folder that runs were saved in")
    made = [path for path in made_in(folder) if is_run(path) or is_planned(path)]
    blocks: dict[Path, list[Listed]] = {}
    for path in made:
        one = _listed(path, folder)
        blocks.setdefault(one.group_dir or path, []).append(one)
    for path, why in lost_from(folder).items():
        gone = Listed(
            run_dir=path,
            group_dir=path.parent,
            name=path.name,
            status=DAMAGED,
            reason=why,
            size_bytes=0,
            changed=None,
        )
        blocks.setdefault(path.parent, []).append(gone)
        blocks[path.parent].sort(key=lambda one: by_number(one.run_dir))
    ordered = sorted(blocks.values(), key=lambda block: max(one.changed or "" for one in block))
    runs = [one for block in ordered for one in block]
    chosen = [one for one in runs if not statuses or one.status in statuses]
    # A command has a group of which a run is in progress; it may also be between two runs.
    busy = {one.group_dir or one.run_dir for one in runs if one.status == "running"}
    stopped = dict.fromkeys(one.group_dir or one.run_dir for one in chosen if one.status in UNFINISHED)
    return Listing(folder, chosen, [path for path in stopped if path not in busy and not is_locked(path)])


def _listed(run: Path, within: Path) -> Listed:
    group = run.parent if run != within and (is_group(run.parent) or run.parent != within) else None
    here: dict[str, Any] = {
        "run_dir": run,
        "group_dir": group,
        "size_bytes": _size(run),
        "changed": _changed(run),
    }
    status, reason = DAMAGED, ""
    try:
        with read_run(run, trusted=True, planned=True) as reader:
            return Listed(**here, **_facts(reader))
    except OtherFormatError as error:
        status, reason = OTHER_FORMAT, error.what
    except UserError as error:
        reason = error.what
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"{run.name}: its facts make no sense: {type(error).__name__}"
    return Listed(**here, name=run.name, status=status, reason=reason)


def _size(run: Path) -> int:
    try:
        return sum(file.size for file in contents(run)[0])
    except UserError:
        return 0


def _changed(run: Path) -> str | None:
    """When its database, or the log of that, was written last."""
    times = []
    for name in (DATABASE, f"{DATABASE}-wal", PLANNED):
        with suppress(OSError):
            times.append((run / name).stat().st_mtime)
    return dt.datetime.fromtimestamp(max(times), dt.UTC).isoformat(timespec="milliseconds") if times else None


def _facts(reader: Reader) -> dict[str, Any]:
    """What is known of a run."""
    meta = reader.meta
    model, accuracy = _accuracy(reader)
    target = None if meta["target"] is None else float(meta["target"])
    return {
        "name": str(meta["name"]),
        "status": reader.status,
        "reason": str(meta.get("reason", "")),
        "method": str(meta["method"]),
        "seed": int(meta["seed"]),
        "engine": str(meta["engine"]),
        "dataset": str(meta["dataset"]),
        "rounds": _rounds(reader),
        "of_rounds": _limit(reader.resolved()),
        "model": model,
        "accuracy": accuracy,
        "target": target,
        "target_s": None if target is None or model is None else _reached(reader, model, target),
        "virtual_s": _virtual_s(reader),
        "event_hash": event_hash(reader),
    }


def _accuracy(reader: Reader) -> tuple[str | None, float | None]:
    """Whose accuracy is shown, and the last one."""
    rows = reader.query("SELECT model, accuracy FROM evaluations ORDER BY version DESC, model LIMIT 1")
    return (str(rows[0]["model"]), float(rows[0]["accuracy"])) if rows else (None, None)


def _reached(reader: Reader, model: str, target: float) -> float | None:
    sql = "SELECT MIN(t_s) AS t_s FROM evaluations WHERE model = ? AND accuracy >= ?"
    (row,) = reader.query(sql, model, target)
    return None if row["t_s"] is None else float(row["t_s"])


def _rounds(reader: Reader) -> int:
    if "rounds" in reader.meta:
        return int(reader.meta["rounds"])
    rows = reader.query(
        "SELECT round FROM merges JOIN exchanges USING (exchange) WHERE at = 'round' "
        "ORDER BY version DESC LIMIT 1"
    )
    return int(rows[0]["round"]) + 1 if rows else 0


def _virtual_s(reader: Reader) -> float:
    if "virtual_s" in reader.meta:
        return float(reader.meta["virtual_s"])
    rows = reader.query("SELECT t_s FROM server_events ORDER BY turn DESC LIMIT 1")
    return float(rows[0]["t_s"]) if rows else 0.0


def _limit(resolved: Mapping[str, Any]) -> int | None:
    rounds = resolved["scenario"]["server"]["until"].get("rounds")
    return None if rounds is None else int(rounds)
