"""Tables of users as CSV, such as a spreadsheet writes.

The first line names the columns, in any order and in any case; those with other names are left out:

- ``user``: a name, for messages;
- ``device``, ``link``: names in the catalogue;
- ``slowdown``: a multiplier of compute time;
- ``down``, ``up``, ``latency``: quantities with units (``12 Mbit/s``, ``40 ms``), or plain numbers in columns
  whose names end in the unit: ``down_mbps`` (or bps, kbps, gbps) and ``latency_ms`` (or s);
- ``availability``: a number in the column ``client`` of a second file, client,start_s,end_s.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from pydantic import BeforeValidator, Field
from typing_extensions import TypedDict

from edgefl.core.availability.intervals import Params
from edgefl.core.csv_rows import RowError, placed, read_csv
from edgefl.core.errors import UserError
from edgefl.core.units import BitsPerSecond, Seconds
from edgefl.core.users import User
from edgefl.core.yamls import text_of
from edgefl.importing.trace import RecordedUsers, Spans, source_of

CSV = "csv"


_Rate = Annotated[BitsPerSecond, Field(ge=1, le=1e15)]
_Latency = Annotated[Seconds, Field(le=1e6)]
# The units of plain numbers, by the end of a column's name.
_RATES = {"bps": "bit/s", "kbps": "kbit/s", "mbps": "Mbit/s", "gbps": "Gbit/s"}


def _plain(quantity: Any, unit: str) -> Any:
    """A quantity as a plain number of units."""
    return Annotated[quantity, BeforeValidator(lambda number: f"{number} {unit}")]


# What a fleet reads of its users, and what makes a link of their own.
_COLUMNS: dict[str, Any] = {
    **get_type_hints(User, include_extras=True),
    "user": Annotated[str, Field(min_length=1)],
    "latency": _Latency,
    **{f"latency_{unit}": _plain(_Latency, unit) for unit in ("s", "ms")},
    **dict.fromkeys(("down", "up"), _Rate),
    **{f"{way}_{end}": _plain(_Rate, unit) for way in ("down", "up") for end, unit in _RATES.items()},
}
_TableRow = TypedDict("_TableRow", _COLUMNS, total=False)  # type: ignore[misc]


def read(files: Sequence[Path], repeat_s: float | None) -> RecordedUsers:
    """Users of a table, and their intervals where a second file has them.

    Args:
        files: the table, and perhaps the intervals, in either order.
        repeat_s: after which the intervals repeat; None for never.

    Raises:
        UserError: a file is wrong.
    """
    *times, table = sorted(files, key=lambda path: "start_s" not in text_of(path).partition("\n")[0].lower())
    with placed(str(table)):
        columns, dropped = _columns(text_of(table))
    if ("availability" in columns) != bool(times):
        what = "the column 'availability' and a second file of client,start_s,end_s need each other"
        raise UserError(what, where=str(table))
    if times:
        columns["availability"] = _spans(times[0], columns["availability"], repeat_s)
    names = columns.pop("user", None)
    return RecordedUsers(
        kind=CSV,
        sources=tuple(source_of(path) for path in (table, *times)),
        ids=range(len(next(iter(columns.values())))),
        columns=columns,
        repeat_s=repeat_s if times else None,
        dropped=(*dropped, *([] if names is None else ["the names of users"])),
    )


def _columns(text: str) -> tuple[dict[str, list[Any]], list[str]]:
    """The values of each column that is read, without its unit, and the others, a sentence each."""
    names, rows, _ = read_csv(text, _TableRow, others=True)
    found: dict[str, list[Any]] = {}
    for name in filter(_COLUMNS.__contains__, names):
        of = name.partition("_")[0]
        if of in found:
            raise RowError(f"two columns give {of}", 1)
        found[of] = [row[name] for row in rows]
    if found.keys() <= {"user"}:
        raise RowError("the first line must name something of users beside their names", 1)
    if "link" in found and (own := {"down", "up", "latency"} & found.keys()):
        what = f"a user's link is either a name or has {', '.join(sorted(own))}: remove one of the columns"
        raise RowError(what, 1)
    return found, [f"column {name!r}" for name in names if name not in _COLUMNS]


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
