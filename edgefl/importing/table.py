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

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from edgefl.core.availability.intervals import Params
from edgefl.core.csv_rows import CsvLine, RowError, finite, lines
from edgefl.core.draws import Floats
from edgefl.core.errors import Place, UserError, short
from edgefl.core.units import parse, show_count
from edgefl.core.yamls import text_of
from edgefl.importing.trace import Intervals, Trace, check_file, source_of

CSV = "csv"
_INTERVALS = ["client", "start_s", "end_s"]
_RATES = {"bps": 1.0, "kbps": 1e3, "mbps": 1e6, "gbps": 1e9}
_TIMES = {"s": 1.0, "ms": 1e-3}
_MOST_BPS, _MOST_S = 1e15, 1e6


class _Column(NamedTuple):
    """A column that is read.

    Attributes:
        of: what it is of each user.
        read: makes a value of a field; raises ValueError.
        must: what the field must be.
    """

    of: str
    read: Callable[[str], float | str]
    must: str


def _name(text: str) -> str:
    if not text:
        raise ValueError(text)
    return text


def _slowdown(text: str) -> float:
    return _within(finite(text), 1e-9, 1e9)


def _whole(text: str) -> float:
    if not re.fullmatch("[0-9]{1,8}", text):
        raise ValueError(text)
    return int(text)


def _rate(text: str, unit_bps: float | None = None) -> float:
    bps = parse(text, "bit rate") if unit_bps is None else finite(text) * unit_bps
    return _within(bps, 1.0, _MOST_BPS)


def _latency(text: str, unit_s: float | None = None) -> float:
    return _within(parse(text, "time") if unit_s is None else finite(text) * unit_s, 0.0, _MOST_S)


def _within(value: float, least: float, most: float) -> float:
    if not least <= value <= most:
        raise ValueError(value)
    return value


def _columns() -> Mapping[str, _Column]:
    found = {
        "user": _Column("user", _name, "a name"),
        "device": _Column("device", _name, "a device's name"),
        "link": _Column("link", _name, "a link's name"),
        "slowdown": _Column("slowdown", _slowdown, "a number between 1e-9 and 1e9"),
        "availability": _Column("availability", _whole, "a whole number of at most 8 digits"),
        "latency": _Column("latency", _latency, "a time such as '40 ms'"),
    }
    for unit, one_s in _TIMES.items():
        read: Callable[[str], float] = partial(_latency, unit_s=one_s)
        found[f"latency_{unit}"] = _Column("latency", read, f"a number of {unit}, 0 or more")
    for of in ("down", "up"):
        found[of] = _Column(of, _rate, "a rate such as '12 Mbit/s'")
        for unit, one_bps in _RATES.items():
            read = partial(_rate, unit_bps=one_bps)
            found[f"{of}_{unit}"] = _Column(of, read, f"a number of {unit} between 1 bit/s and 1 Pbit/s")
    return found


_COLUMNS = _columns()


def read(files: Sequence[Path], repeat_s: float | None) -> list[Trace]:
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
    timed = [path for path, text in texts.items() if _names(path, text) == _INTERVALS]
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


def _names(path: Path, text: str) -> list[str]:
    try:
        return [name.lower() for name in next(lines(text), CsvLine([], 1)).fields]
    except RowError as error:
        raise UserError(str(error), where=str(Place(str(path), error.line))) from None


def _parsed(text: str) -> tuple[dict[str, list[float | str]], list[str]]:
    """The values of each column that is read, and the names of the others."""
    rows = lines(text)
    header = next(rows, CsvLine([], 1))
    names = [name.lower() for name in header.fields]
    columns = [_COLUMNS.get(name) for name in names]
    given = [column.of for column in columns if column is not None]
    if not set(given) - {"user"}:
        known = ", ".join(name for name in _COLUMNS if name != "user")
        raise RowError(f"the first line must name, between commas, at least one of {known}", header.number)
    if twice := sorted({of for of in given if given.count(of) > 1}):
        raise RowError(f"two columns give {twice[0]}", header.number)
    found: dict[str, list[float | str]] = {of: [] for of in given}
    for fields, number in rows:
        if len(fields) != len(names):
            raise RowError(f"{show_count(len(fields), 'field')}, but the first line has {len(names)}", number)
        for name, column, field in zip(names, columns, fields, strict=True):
            if column is not None:
                try:
                    found[column.of].append(column.read(field))
                except ValueError:
                    raise RowError(f"{name} {short(field)!r} must be {column.must}", number) from None
    if not next(iter(found.values())):
        raise RowError("there are no users after the first line", header.number)
    others = [name for name, column in zip(header.fields, columns, strict=True) if column is None]
    return found, [f"column {short(name)!r}" for name in others]


def _trace(
    table: Path,
    found: dict[str, list[float | str]],
    dropped: list[str],
    timed: Path | None,
    repeat_s: float | None,
) -> Trace:
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
    return Trace(
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


def _intervals(path: Path, numbers: Floats, repeat_s: float | None) -> Intervals:
    """The intervals of each user, of the numbers that they have in a file."""
    rows = Params(file=str(path.absolute())).table()
    last_s = rows[:, 2].max()
    if repeat_s is not None and repeat_s < last_s:
        raise UserError(f"must be at least {last_s:g} s, the end of the last interval", where="--repeat")
    known = Intervals(rows[:, 0].astype(np.int64), rows[:, 1], rows[:, 2], repeat_s)
    if (unknown := numbers[numbers > known.user[-1]]).size:
        raise UserError(f"there is no client {unknown[0]:g}", where=str(path))
    return known.of(numbers.astype(np.int64))
