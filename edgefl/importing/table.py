"""Tables of users as CSV, such as a spreadsheet writes.

The first line names the columns, in any order and in any case; those with other names are left out:

- ``device``, ``link``: names in the catalogue;
- ``slowdown``: a multiplier of compute time;
- ``down_mbps``, ``up_mbps``, ``latency_ms``: rates in Mbit/s, and a round trip in milliseconds;
- ``availability``: a number in the column ``client`` of a second file, client,start_s,end_s.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from edgefl.core.availability.intervals import Params
from edgefl.core.csv_rows import RowError, read_csv, rows_of
from edgefl.core.errors import UserError
from edgefl.core.units import parse
from edgefl.core.users import User
from edgefl.core.yamls import text_of
from edgefl.importing.trace import RecordedUsers, Spans, source_of

# Of users' own links: a column's name in the table, in what is recorded, and how many of the latter are one.
_LINKS = {"down_mbps": ("down", 1e6), "up_mbps": ("up", 1e6), "latency_ms": ("latency", 1e-3)}
_Mbps = Annotated[float, Field(ge=1e-6, le=1e9)]


class _TableRow(User, total=False):
    down_mbps: _Mbps
    up_mbps: _Mbps
    latency_ms: Annotated[float, Field(ge=0, le=1e9)]


def read(files: Sequence[Path], repeat: str | None) -> RecordedUsers:
    """Users of a table, and their intervals where a second file has them, in either order.

    These repeat after a time, which has a unit; None for never.
    """
    try:
        repeat_s = None if repeat is None else parse(repeat, "time")
    except ValueError as error:
        raise UserError(str(error), where="--repeat") from None
    *times, table = sorted(files, key=lambda path: "start_s" not in text_of(path).partition("\n")[0].lower())
    found, dropped = rows_of(text_of(table), str(table), _columns)
    columns = {**found}
    if ("availability" in columns) != bool(times):
        what = "the column 'availability' and a second file of client,start_s,end_s need each other"
        raise UserError(what, where=str(table))
    if times:
        columns["availability"] = _spans(times[0], columns["availability"], repeat_s)
    return RecordedUsers(
        kind="csv",
        sources=tuple(source_of(path) for path in (table, *times)),
        columns=columns,
        repeat_s=repeat_s if times else None,
        dropped=dropped,
    )


def _columns(text: str) -> tuple[dict[str, list[Any]], list[str]]:
    """The values of each column that is read, and the others, a sentence each."""
    names, rows, _ = read_csv(text, _TableRow, others=True)
    found: dict[str, list[Any]] = {}
    for name in filter(_TableRow.__annotations__.__contains__, names):
        key, unit = _LINKS.get(name, (name, None))
        found[key] = [row[name] if unit is None else row[name] * unit for row in rows]
    if "link" in found and (own := _LINKS.keys() & set(names)):
        what = f"a user's link is either a name or has {', '.join(sorted(own))}: remove one of the columns"
        raise RowError(what, 1)
    return found, [f"column {name!r}" for name in names if name not in _TableRow.__annotations__]


def _spans(path: Path, numbers: Sequence[int], repeat_s: float | None) -> list[Spans]:
    """When each user is available, of the numbers that they have in a file."""
    table = Params(file=str(path.absolute())).table()
    last_s = table[:, 2].max()
    if repeat_s is not None and repeat_s < last_s:
        raise UserError(f"must be at least {last_s:g} s, the end of the last interval", where="--repeat")
    spans: defaultdict[int, Spans] = defaultdict(list)
    for number, start, end in table.tolist():
        spans[int(number)].append((start, end))
    if (most := max(numbers)) > max(spans):
        raise UserError(f"there is no client {most}", where=str(path))
    return [spans[number] for number in numbers]
