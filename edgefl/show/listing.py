"""What runs there are in a folder, at a glance: few rows of each are read, and none is verified."""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

from rich.console import Group, RenderableType
from rich.text import Text

from edgefl.core.errors import UserError
from edgefl.core.units import show_bytes, show_count, show_seconds, show_share
from edgefl.show.table import MISSING, Cell, Column, Line, Table, cut
from edgefl.store.folders import DATABASE, by_number, is_group, lost_from, made_in, size_of
from edgefl.store.locks import is_locked
from edgefl.store.reader import OtherFormatError, Reader, read

DAMAGED, OTHER_FORMAT = "damaged", "other-format"
STATUSES = ("planned", "running", "killed", "interrupted", "failed", "done", DAMAGED, OTHER_FORMAT)
"""How a run may stand: as of ``store.reader.Reader.status``, or it cannot be read."""
_UNFINISHED = ("planned", "killed", "interrupted")
_STYLES = dict.fromkeys(("failed", DAMAGED, OTHER_FORMAT), "red") | dict.fromkeys(_UNFINISHED, "yellow")
# Of reasons and of commands, so many are shown; more methods are counted.
_SHOWN, _METHODS = 5, 2

Known = TypeVar("Known")


@dataclass(frozen=True, kw_only=True)
class Listed:
    """One run; what is not known, or cannot be read, is None.

    Attributes:
        group_dir: that of its group; None for a run on its own.
        name: its name; its directory's where it cannot be read.
        status: one of ``STATUSES``.
        reason: why it failed or cannot be read; empty otherwise.
        changed: when it was written last, as an ISO 8601 time in UTC.
        rounds, of_rounds: how many were done, and are to be; None where something else ends it.
        model, accuracy: whose accuracy is shown, "global" or "personal", and that of the last evaluation.
        target, target_s: the accuracy to reach, and the virtual seconds until the first evaluation that did.
        virtual_s: so far.
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
class RunListing:
    """The runs in a folder.

    Attributes:
        runs: those that were written last come last; the runs of a group stand together.
        resumable: the runs, or their groups, that `edgefl run --resume` goes on with.
    """

    folder: Path
    runs: Sequence[Listed]
    resumable: Sequence[Path]


def listing(folder: Path, statuses: Sequence[str] = ()) -> RunListing:
    """What runs of these statuses, or of any, are in a run's directory, a group's, or a folder of groups.

    Raises:
        UserError: the folder does not exist or is a file, or there is no such status.
    """
    for one in statuses:
        if one not in STATUSES:
            hint = f"it must be one of: {', '.join(STATUSES)}"
            raise UserError(f"unknown status {one!r}", where="--status", hint=hint)
    if not folder.is_dir():
        is_it = "is a file, not a folder" if folder.exists() else "does not exist"
        raise UserError(f"{folder} {is_it}", where="FOLDER", hint="give the folder that runs were saved in")
    blocks: dict[Path, list[Listed]] = {}
    for path in made_in(folder):
        if (path / DATABASE).is_file():
            run = _listed(path, folder)
            blocks.setdefault(run.group_dir or path, []).append(run)
    for path, why in lost_from(folder).items():
        place: dict[str, Any] = {"run_dir": path, "group_dir": path.parent, "name": path.name}
        gone = Listed(**place, status=DAMAGED, reason=why, size_bytes=0, changed=None)
        blocks.setdefault(path.parent, []).append(gone)
        blocks[path.parent].sort(key=lambda one: by_number(one.run_dir))
    ordered = sorted(blocks.values(), key=lambda block: max(one.changed or "" for one in block))
    runs = [one for block in ordered for one in block]
    chosen = [one for one in runs if not statuses or one.status in statuses]
    # A command has a group of which a run is in progress; it may also be between two runs.
    busy = {one.group_dir or one.run_dir for one in runs if one.status == "running"}
    stopped = dict.fromkeys(one.group_dir or one.run_dir for one in chosen if one.status in _UNFINISHED)
    return RunListing(folder, chosen, [path for path in stopped if path not in busy and not is_locked(path)])


def _listed(run: Path, within: Path) -> Listed:
    group = run.parent if run != within and (is_group(run.parent) or run.parent != within) else None
    times = []
    # Its database, and the log of that.
    for name in (DATABASE, f"{DATABASE}-wal"):
        with suppress(OSError):
            times.append((run / name).stat().st_mtime)
    changed = dt.datetime.fromtimestamp(max(times), dt.UTC) if times else None
    here: dict[str, Any] = {
        "run_dir": run,
        "group_dir": group,
        "size_bytes": size_of(run),
        "changed": changed and changed.isoformat(timespec="milliseconds"),
    }
    try:
        with read(run, trusted=True) as reader:
            return Listed(**here, **_facts(reader))
    except OtherFormatError as error:
        status, reason = OTHER_FORMAT, error.what
    except UserError as error:
        status, reason = DAMAGED, error.what
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        status, reason = DAMAGED, f"{run.name}: its facts make no sense: {type(error).__name__}"
    return Listed(**here, name=run.name, status=status, reason=reason)


def _facts(reader: Reader) -> dict[str, Any]:
    meta = reader.meta

    def last(sql: str, *values: Any) -> dict[str, Any]:
        return next(iter(reader.query(sql, *values)), {})

    evaluated = last("SELECT model, accuracy FROM evaluations ORDER BY version DESC, model LIMIT 1")
    target = None if meta["target"] is None else float(meta["target"])
    reached = "SELECT MIN(t_s) AS t_s FROM evaluations WHERE model = ? AND accuracy >= ?"
    rounds, virtual_s = meta.get("rounds"), meta.get("virtual_s")
    if rounds is None:
        rounds = 1 + last(
            "SELECT round FROM merges JOIN exchanges USING (exchange) WHERE at = 'round' "
            "ORDER BY version DESC LIMIT 1"
        ).get("round", -1)
    if virtual_s is None:
        virtual_s = last("SELECT t_s FROM server_events ORDER BY turn DESC LIMIT 1").get("t_s", 0.0)
    return {
        "name": str(meta["name"]),
        "status": reader.status,
        "reason": str(meta.get("reason", "")),
        "method": str(meta["method"]),
        "seed": int(meta["seed"]),
        "engine": str(meta["engine"]),
        "dataset": str(meta["dataset"]),
        "rounds": int(rounds),
        "of_rounds": reader.document.data["scenario"]["server"]["until"].get("rounds"),
        **evaluated,
        "target": target,
        "target_s": last(reached, evaluated["model"], target)["t_s"] if evaluated and target else None,
        "virtual_s": float(virtual_s),
        "event_hash": reader.event_hash(),
    }


_Runs = Sequence[Listed]


def listing_table(found: RunListing, *, every: bool = False, only: Sequence[str] = ()) -> RenderableType:
    """The runs as a table, and why some cannot be read; ``only`` says which statuses were asked for.

    ``every`` run of a group has a line, or the group has one; one that was asked for itself has them anyway.
    """
    if not found.runs:
        return Line(f"no {' or '.join(only)}{' ' * bool(only)}runs in {found.folder}")
    lines: list[_Runs] = []
    for group, runs in groupby(found.runs, lambda one: one.group_dir):
        together = list(runs)
        alone = every or group is None or group == found.folder
        lines += [[one] for one in together] if alone else [together]
    columns = [
        Column("run", lambda runs: _listing_label(runs, found.folder)),
        Column("status", _status, left=True),
        Column("rounds", _rounds),
        Column("accuracy", _accuracy_cell),
        Column("to target", _target),
        Column("virtual time", lambda runs: _between([one.virtual_s for one in runs], show_seconds)),
        Column("method", _method, left=True),
        Column("size", lambda runs: sum(one.size_bytes for one in runs), show_bytes),
        Column("written", _written, left=True),
        Column("event hash", lambda runs: runs[0].event_hash if len(runs) == 1 else None, left=True),
    ]
    size = show_bytes(sum(one.size_bytes for one in found.runs))
    total = f"{show_count(len(found.runs), 'run')} in {found.folder}: {_statuses(found.runs)}; {size}"
    unread = [f"{one.run_dir}: {one.reason}" for one in found.runs if one.status in {DAMAGED, OTHER_FORMAT}]
    reasons = (Line(text, "red") for text in cut(unread, _SHOWN, "more cannot be read"))
    return Group(Table(columns, lines), Line(), Line(total, "dim"), *reasons)


def _listing_label(runs: _Runs, folder: Path) -> str:
    """The directory, as seen from the folder."""
    first = runs[0]
    path = first.run_dir if len(runs) == 1 else first.group_dir or first.run_dir
    label = str(path.relative_to(folder)) if path != folder else path.name or str(path)
    return f"{label} ({show_count(len(runs), 'run')})" if len(runs) > 1 else label


def _status(runs: _Runs) -> Cell:
    found = {one.status for one in runs}
    style = next((_STYLES[status] for status in reversed(STATUSES) if status in found & _STYLES.keys()), "")
    return Text(runs[0].status if len(runs) == 1 else _statuses(runs), style=style)


def _statuses(runs: _Runs) -> str:
    counts = Counter(one.status for one in runs)
    ordered = ("done", *(status for status in STATUSES if status != "done"))
    return ", ".join(f"{counts[status]:,} {status}" for status in ordered if counts[status])


def _method(runs: _Runs) -> str:
    names = dict.fromkeys(one.method for one in runs if one.method)
    return ", ".join(names) or MISSING if len(names) <= _METHODS else f"{len(names)} methods"


def _rounds(runs: _Runs) -> str:
    """Those done of those to be done."""
    done = _between([one.rounds for one in runs], "{:,}".format)
    limits = {one.of_rounds for one in runs if one.rounds is not None}
    return done if done == MISSING or None in limits else f"{done}/{_between(list(limits), '{:,}'.format)}"


def _accuracy_cell(runs: _Runs) -> str:
    """Of global models where there are any; else of clients' own, which is said."""
    known = [one for one in runs if one.model == "global"]
    own = " personal" if not known and any(one.model for one in runs) else ""
    return _between([one.accuracy for one in known or runs], lambda value: show_share(value, 1)) + own


def _target(runs: _Runs) -> str:
    """The virtual time at which the target was reached; of several runs, how many reached theirs."""
    aimed = [one for one in runs if one.target is not None and one.accuracy is not None]
    reached = [one.target_s for one in aimed if one.target_s is not None]
    if not aimed:
        return MISSING
    if len(runs) > 1:
        return f"{len(reached):,} of {len(aimed):,}"
    return show_seconds(reached[0]) if reached else "no"


def _written(runs: _Runs) -> str | None:
    """When, in this machine's time zone."""
    last = max((one.changed for one in runs if one.changed), default=None)
    return last and dt.datetime.fromisoformat(last).astimezone().strftime("%Y-%m-%d %H:%M")


def _between(values: Sequence[Known | None], show: Callable[[Known], str]) -> str:
    """The least and the most of what is known."""
    known = sorted(value for value in values if value is not None)  # type: ignore[type-var]
    return "-".join(dict.fromkeys(show(value) for value in (known[0], known[-1]))) if known else MISSING


def to_resume(paths: Sequence[Path]) -> list[str]:
    """How runs that did not end go on; printed without line breaks, the commands can be copied."""
    lines = [f"next: edgefl run --resume {quote(str(path))}" for path in paths]
    return cut(lines, _SHOWN, "more can be resumed")
