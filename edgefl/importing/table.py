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

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field

from edgefl.core.availability.intervals import Params
from edgefl.core.csv_rows import RowError, read_csv
from edgefl.core.draws import Floats
from edgefl.core.errors import Place, UserError, short
from edgefl.core.units import parse
from edgefl.core.users import User
from edgefl.core.yamls import text_of
from edgefl.importing.trace import RecordedUsers, UserIntervals, check_file, source_of

CSV = "csv"
_INTERVALS = ["client", "start_s", "end_s"]


def _of(unit: float | str, *, least: float = 1, most: float = 1e15) -> tuple[Any, ...]:
    """A quantity with its unit, or a plain number of such units."""
    if isinstance(unit, str):
        return BeforeValidator(partial(parse, dimension=unit)), Field(ge=least, le=most)
    return AfterValidator(lambda value: value * unit), Field(ge=least, le=most, allow_inf_nan=False)


_Bps = Annotated[float, *_of(1)]
_Kbps = Annotated[float, *_of(1e3)]
_Mbps = Annotated[float, *_of(1e6)]
_Gbps = Annotated[float, *_of(1e9)]


class _TableRow(User, total=False):
    user: Annotated[str, Field(min_length=1)]
    down: Annotated[float, *_of("bit rate")]
    down_bps: _Bps
    down_kbps: _Kbps
    down_mbps: _Mbps
    down_gbps: _Gbps
    up: Annotated[float, *_of("bit rate")]
    up_bps: _Bps
    up_kbps: _Kbps
    up_mbps: _Mbps
    up_gbps: _Gbps
    latency: Annotated[float, *_of("time", least=0, most=1e6)]
    latency_s: Annotated[float, *_of(1, least=0, most=1e6)]
    latency_ms: Annotated[float, *_of(1e-3, least=0, most=1e6)]


def read(files: Sequence[Path], repeat_s: float | None) -> list[RecordedUsers]:
    """Users of a table, and their intervals where a second file has them.

    Args:
        files: the table, and perhaps the intervals, in either order.
        repeat_s: after which the intervals repeat; None for never.

    Raises:
        UserError: a file is wrong.
    """
    for path in files:
        check_file(path)
    texts = {path: text_of(path) for path in files}
    timed = [path for path, text in texts.items() if _first_line(text) == ",".join(_INTERVALS)]
    tables = [path for path in files if path not in timed]
    if len(tables) != 1 or len(timed) > 1:
        raise UserError(
            f"give one table of users and at most one of intervals ({','.join(_INTERVALS)})",
            where=", ".join(map(str, files)),
        )
    (table,) = tables
    try:
        found, dropped = _parsed(texts[table])
    except RowError as error:
        raise UserError(str(error), where=str(Place(str(table), error.line))) from None
    return [_trace(table, found, dropped, timed[0] if timed else None, repeat_s)]


def _first_line(text: str) -> str:
    return text.partition("\n")[0].translate({ord(" "): None, ord('"'): None}).lower()


def _parsed(text: str) -> tuple[dict[str, list[float | str]], list[str]]:
    """The values of each column that is read, without its unit, and the names of the others."""
    names, rows, _ = read_csv(text, _TableRow, others=True)
    found: dict[str, list[float | str]] = {}
    for name in names:
        if name in _TableRow.__annotations__:
            of = name.partition("_")[0]
            if of in found:
                raise RowError(f"two columns give {of}", 1)
            found[of] = [row[name] for row in rows]
    if not found.keys() - {"user"}:
        raise RowError("the first line must name something of users beside their names", 1)
    return found, [f"column {short(name)!r}" for name in names if name not in _TableRow.__annotations__]


def _trace(
    table: Path,
    found: dict[str, list[float | str]],
    dropped: list[str],
    timed: Path | None,
    repeat_s: float | None,
) -> RecordedUsers:
    own = {"down", "up", "latency"} & found.keys()
    if own and "link" in found:
        raise UserError(
            f"a user's link is either a name or has {', '.join(sorted(own))}: remove one of the columns",
            where=str(Place(str(table), 1)),
        )
    if ("availability" in found) != (timed is not None):
        what = f"the table {table.name} has no column 'availability' for the intervals of {timed}"
        if timed is None:
            what = f"the column 'availability' needs a second file with {','.join(_INTERVALS)}"
        raise UserError(what, where=str(table))
    count = len(next(iter(found.values())))
    numbers = {of: np.array(values, float) for of, values in found.items() if of not in _TEXTS}
    intervals = None if timed is None else _intervals(timed, numbers["availability"], repeat_s)
    return RecordedUsers(
        kind=CSV,
        sources=tuple(source_of(path) for path in (table, timed) if path is not None),
        ids=tuple(map(str, found.get("user", range(count)))),
        devices=_texts(found, "device"),
        links=_texts(found, "link"),
        slowdown=numbers.get("slowdown"),
        down_bps=numbers.get("down"),
        up_bps=numbers.get("up"),
        latency_s=numbers.get("latency"),
        intervals=intervals,
        dropped=(*dropped, *(["the names of users"] if "user" in found else [])),
    )


_TEXTS = ("user", "device", "link")


def _texts(found: dict[str, list[float | str]], column: str) -> tuple[str, ...] | None:
    return tuple(map(str, found[column])) if column in found else None


def _intervals(path: Path, numbers: Floats, repeat_s: float | None) -> UserIntervals:
    """The intervals of each user, of the numbers that they have in a file."""
    rows = Params(file=str(path.absolute())).table()
    last_s = rows[:, 2].max()
    if repeat_s is not None and repeat_s < last_s:
        raise UserError(f"must be at least {last_s:g} s, the end of the last interval", where="--repeat")
    known = UserIntervals(rows[:, 0].astype(np.int64), rows[:, 1], rows[:, 2], repeat_s)
    if (unknown := numbers[numbers > known.user[-1]]).size:
        raise UserError(f"there is no client {unknown[0]:g}", where=str(path))
    return known.of(numbers.astype(np.int64))
