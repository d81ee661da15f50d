"""The text of link traces: of CSV files, of Mahimahi's, and of the rows that are kept of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from edgefl.core import csv_rows
from edgefl.core.draws import Floats
from edgefl.core.errors import UserError
from edgefl.core.yamls import text_of

PACKET_BITS = 8 * 1500
"""Of one of Mahimahi's opportunities."""

_COLUMNS = ["seconds", "down", "up", "latency"]
_WITHOUT_LATENCY = _COLUMNS[:-1]
_MOST = {"seconds": 1e9, "down": 1e15, "up": 1e15, "latency": 3600.0}
"""Larger numbers are mistakes: 30 years, 1 Pbit/s and an hour."""
# Shorter pieces are mistakes, and would take for ever to go through; 1% for the rounding of written decimals.
_APART_S, _ROUNDED = 0.001, 0.99
_LEAST_HELD_BPS = 1.0


class TraceRowError(ValueError):
    """A row is wrong.

    Attributes:
        row: its index.
    """

    def __init__(self, what: str, row: int) -> None:
        super().__init__(what)
        self.row = row


class Series(NamedTuple):
    """What holds from ``t_s[i]`` until the next row's time; the last row ends the trace, or holds for ever.

    Attributes:
        t_s: ascending from 0, (n,).
        value: (n,).
    """

    t_s: Floats
    value: Floats

    @property
    def integral(self) -> float:
        """The value times seconds, until the last row."""
        return math.fsum((self.value[:-1] * np.diff(self.t_s)).tolist())

    def at(self, t_s: Floats) -> Floats:
        """The values at some times."""
        return self.value[np.searchsorted(self.t_s, t_s, side="right") - 1]


@lru_cache(maxsize=1024)
def series(text: str) -> Series:
    """The rows that ``written`` wrote, or a user.

    Raises:
        TraceRowError: they are not "seconds,value seconds,value ...", or see ``_check_times``.
    """
    rows = [row.split(",") for row in text.split()]
    numbers = _numbers(rows, ["seconds", "value"])
    if not len(numbers) or numbers[0, 0]:
        raise TraceRowError("the first row must be at 0 s", 0)
    _check_times(numbers[:, 0])
    return Series(numbers[:, 0], numbers[:, 1])


def written(t_s: Floats, value: Floats) -> str:
    """A series as text; rows that change nothing are left out."""
    kept = np.ones(len(t_s), dtype=bool)
    kept[1:-1] = value[1:-1] != value[:-2]
    return " ".join(map(",".join, zip(_decimals(t_s[kept]), _decimals(value[kept]), strict=True)))


def _decimals(values: Floats) -> list[str]:
    return [repr(value).removesuffix(".0") for value in values.tolist()]


def check_rates(rates: Series, way: str, *, held: bool) -> None:
    """Refuses rates under which a transfer never ends, or a trace that never does.

    Args:
        rates: in bit/s.
        way: "down" or "up", for messages.
        held: whether the last one holds for ever.

    Raises:
        TraceRowError: see above.
    """
    last = len(rates.t_s) - 1
    if held and rates.value[last] < _LEAST_HELD_BPS:
        raise TraceRowError(
            f"the last {way} rate must be at least 1 bit/s with 'end: hold': it never ends", last
        )
    if held:
        return
    if not last:
        raise TraceRowError("a trace that repeats needs a second row, which ends it", last)
    if not rates.value[:-1].any():
        raise TraceRowError(f"all {way} rates are 0: no transfer would ever end", last)


def from_csv(path: Path, *, held: bool) -> dict[str, str]:
    """The series of a CSV file as text, by column; of seconds that do not begin at 0, since the first row's.

    Raises:
        UserError: the file cannot be read, or a row is wrong.
    """
    return _from_csv(text_of(path), str(path), held)


@lru_cache(maxsize=64)
def _from_csv(text: str, file: str, held: bool) -> dict[str, str]:  # noqa: FBT001 - cached by position
    """Cached, as the runs of a sweep share files."""
    try:
        first, *rows = list(csv_rows.lines(text)) or [csv_rows.CsvLine([], 1)]
    except csv_rows.RowError as error:
        raise UserError(str(error), where=f"{file}:{error.line}") from None
    header = [name.lower() for name in first.fields]
    if header not in (_COLUMNS, _WITHOUT_LATENCY):
        what = "the first line must be seconds,down,up or seconds,down,up,latency"
        raise UserError(what, where=f"{file}:{first.number}")
    try:
        return _columns(header, [row.fields for row in rows], held)
    except TraceRowError as error:
        wrong = rows[min(error.row, len(rows) - 1)] if rows else first
        raise UserError(str(error), where=f"{file}:{wrong.number}") from None


def _columns(header: Sequence[str], rows: Sequence[Sequence[str]], held: bool) -> dict[str, str]:  # noqa: FBT001
    if not rows:
        raise TraceRowError("there are no rows", 0)
    numbers = _numbers(rows, header)
    t_s = numbers[:, 0]
    if t_s[0]:
        # The difference of decimals has digits that none of them had.
        t_s = np.round(t_s - t_s[0], 6)
    _check_times(t_s)
    values = dict(zip(header[1:], numbers.T[1:], strict=True))
    for way in ("down", "up"):
        check_rates(Series(t_s, values[way]), way, held=held)
    return {name: written(t_s, value) for name, value in values.items()}


def _numbers(rows: Sequence[Sequence[str]], names: Sequence[str]) -> Floats:
    """The numbers of some rows, (n, columns)."""
    for place, row in enumerate(rows):
        if len(row) != len(names):
            raise TraceRowError(f"{_quoted(row)} must be {','.join(names)}", place)
    try:
        numbers = np.array([float(text) for row in rows for text in row]).reshape(-1, len(names))
    except ValueError:
        place = next(place for place, row in enumerate(rows) if not all(map(_is_number, row)))
        raise TraceRowError(f"{_quoted(rows[place])} must be {len(names)} numbers", place) from None
    for column, name in zip(numbers.T, names, strict=True):
        most = _MOST.get(name, _MOST["down"])
        # Seconds count from the first row.
        least, top = (column[:1], column[:1] + most) if name == "seconds" else (0.0, most)
        wrong = ~((column >= 0) & (column >= least) & (column <= top) & (column < math.inf))
        if wrong.any():
            place = int(wrong.argmax())
            given, limit = rows[place][names.index(name)], f"{most:,.0f}"
            raise TraceRowError(f"{name} must be between 0 and {limit}; got {_quoted([given])}", place)
    return numbers


def _quoted(row: Sequence[str]) -> str:
    return repr(",".join(row)[:60])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_times(t_s: Floats) -> None:
    """Refuses times that do not ascend by at least a millisecond."""
    wrong = np.diff(t_s) < _APART_S * _ROUNDED
    if wrong.any():
        raise TraceRowError("seconds must ascend, by at least 1 ms a row", int(wrong.argmax()) + 1)


def from_mahimahi(path: Path, bin_ms: int) -> str:
    """A series of rates in bit/s, as text, of a file in Mahimahi's format.

    A packet at millisecond t counts in the interval (begin, end] that has t, and one at 0 in the first. The
    last interval ends with the last packet, as the trace does.

    Raises:
        UserError: the file cannot be read, or a line is wrong.
    """
    return _from_mahimahi(text_of(path), str(path), bin_ms)


@lru_cache(maxsize=64)
def _from_mahimahi(text: str, file: str, bin_ms: int) -> str:
    """Cached, as the runs of a sweep share files."""
    lines = text.split("\n")
    numbered = [(line, number) for number, line in enumerate(lines, 1) if line.strip()]
    try:
        packets_ms = _milliseconds([line for line, _ in numbered])
    except TraceRowError as error:
        line = numbered[error.row][1] if numbered else 1
        raise UserError(str(error), where=f"{file}:{line}") from None
    last_ms = int(packets_ms[-1])
    place, packets = np.unique(np.maximum(-(-packets_ms // bin_ms) - 1, 0), return_counts=True)
    starts_ms, ends_ms = place * bin_ms, np.minimum((place + 1) * bin_ms, last_ms)
    bps = packets * PACKET_BITS * 1000 / (ends_ms - starts_ms)
    # Between two intervals with packets there is none.
    times_ms = np.union1d(np.append(starts_ms, ends_ms), 0)
    value = np.zeros(len(times_ms))
    value[np.searchsorted(times_ms, starts_ms)] = bps
    value[-1] = bps[-1]
    return written(times_ms / 1000, value)


_MOST_MS = int(_MOST["seconds"]) * 1000


def _milliseconds(lines: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The lines of a file, (n,)."""
    if not lines:
        raise TraceRowError("there are no lines", 0)
    for place, line in enumerate(lines):
        text = line.strip()
        if not (text.isascii() and text.isdecimal()) or len(text) > len(str(_MOST_MS)):
            what = f"{_quoted([text])} must be a whole number of milliseconds up to {_MOST_MS:,}"
            raise TraceRowError(what, place)
    packets_ms = np.array(list(map(int, lines)), dtype=np.int64)
    falling = np.diff(packets_ms) < 0
    if falling.any():
        raise TraceRowError("milliseconds must not fall", int(falling.argmax()) + 1)
    if not 0 < packets_ms[-1] <= _MOST_MS:
        raise TraceRowError(f"the last line must be between 1 and {_MOST_MS:,} milliseconds", len(lines) - 1)
    return packets_ms
