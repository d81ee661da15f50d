"""The table of the runs in a folder: a line for each run, or for each group of runs."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from shlex import quote
from typing import TypeVar

from rich.console import Group, RenderableType
from rich.text import Text

from edgefl.core.units import show_bytes, show_count, show_seconds, show_share
from edgefl.show.listing import DAMAGED, OTHER_FORMAT, STATUSES, UNFINISHED, Listed, Listing
from edgefl.show.table import MISSING, Cell, Column, Line, Table

# Of reasons and of commands, so many are shown.
_SHOWN = 5
# More methods than these are counted.
_METHODS = 2
_STYLES = dict.fromkeys(("failed", DAMAGED, OTHER_FORMAT), "red") | dict.fromkeys(UNFINISHED, "yellow")

Value = TypeVar("Value")
_Runs = Sequence[Listed]


def listing_table(found: Listing, *, every: bool = False, only: Sequence[str] = ()) -> RenderableType:
    """The runs as a table, and why some cannot be read.

    Args:
        found: the runs.
        every: whether each run of a group has a line; a group that was asked for itself has them anyway.
        only: the statuses that were asked for; none for all.
    """
    if not found.runs:
        return Line(f"no {' or '.join(only)}{' ' * bool(only)}runs in {found.folder}")
    lines = list(_lines(found, every=every))
    columns = [
        Column("run", lambda runs: _label(runs, found.folder)),
        Column("status", _status, left=True),
        Column("rounds", _rounds),
        Column("accuracy", _accuracy),
        Column("to target", _target),
        Column("virtual time", lambda runs: _between([one.virtual_s for one in runs], show_seconds)),
        Column("method", _method, left=True),
        Column("size", lambda runs: sum(one.size_bytes for one in runs), show_bytes),
        Column("written", _written, left=True),
        Column("event hash", lambda runs: runs[0].event_hash if len(runs) == 1 else None, left=True),
    ]
    table = Table(columns, lines)
    size = show_bytes(sum(one.size_bytes for one in found.runs))
    total = f"{show_count(len(found.runs), 'run')} in {found.folder}: {_statuses(found.runs)}; {size}"
    return Group(table, Line(), Line(total, "dim"), *_reasons(found.runs))


def _lines(found: Listing, *, every: bool) -> Iterator[_Runs]:
    """The runs of each line."""
    for group, runs in groupby(found.runs, lambda one: one.group_dir):
        together = list(runs)
        if every or group is None or group == found.folder:
            yield from ([one] for one in together)
        else:
            yield together


def _label(runs: _Runs, folder: Path) -> str:
    """The directory, as seen from the folder."""
    first = runs[0]
    group = first.group_dir if len(runs) > 1 or first.group_dir is None else None
    path = group or first.run_dir
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


def _accuracy(runs: _Runs) -> str:
    """Of global models where there are any; else of clients' own, which is said."""
    known = [one for one in runs if one.model == "global"]
    own = " personal" if not known and any(one.model for one in runs) else ""
    return _between([one.accuracy for one in known or runs], lambda value: show_share(value, 1)) + own


def _target(runs: _Runs) -> str:
    """The virtual time at which the target was reached; of several runs, how many reached theirs."""
    aimed = [one for one in runs if one.target is not None and one.accuracy is not None]
    if not aimed:
        return MISSING
    reached = [one.target_s for one in aimed if one.target_s is not None]
    if len(runs) > 1:
        return f"{len(reached):,} of {len(aimed):,}"
    return show_seconds(reached[0]) if reached else "no"


def _written(runs: _Runs) -> str:
    """When, in this machine's time zone."""
    times = [one.changed for one in runs if one.changed]
    if not times:
        return MISSING
    return dt.datetime.fromisoformat(max(times)).astimezone().strftime("%Y-%m-%d %H:%M")


def _between(values: Sequence[Value | None], show: Callable[[Value], str]) -> str:
    """The least and the most of what is known."""
    known = sorted(value for value in values if value is not None)  # type: ignore[type-var]
    ends = dict.fromkeys(show(value) for value in (known[0], known[-1])) if known else [MISSING]
    return "-".join(ends)


def _reasons(runs: _Runs) -> Iterator[Line]:
    """Why runs cannot be read."""
    found = [f"{one.run_dir}: {one.reason}" for one in runs if one.status in {DAMAGED, OTHER_FORMAT}]
    yield from (Line(text, "red") for text in _cut(found, "more cannot be read"))


def to_resume(paths: Sequence[Path]) -> list[str]:
    """How runs that did not end go on; printed without line breaks, the commands can be copied."""
    return _cut([f"next: edgefl run --resume {quote(str(path))}" for path in paths], "more can be resumed")


def _cut(lines: Sequence[str], more: str) -> list[str]:
    left = len(lines) - _SHOWN
    return [*lines[:_SHOWN], *([f"and {left:,} {more}"] if left > 0 else [])]
