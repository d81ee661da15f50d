"""The text of link traces: of CSV files, of Mahimahi's, and of the rows that are kept of them."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from edgefl.core.csv_rows import RowError, placed, read_csv
from edgefl.core.draws import Floats
from edgefl.core.poisson import Ints
from edgefl.core.yamls import text_of

PACKET_BITS = 8 * 1500
"""Of one of Mahimahi's opportunities."""

_Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]
# Larger numbers are mistakes: 30 years, 1 Pbit/s and an hour.
_MOST_S, _MOST_BPS = 1e9, 1e15
_Rate = Annotated[_Number, Field(le=_MOST_BPS)]


class _Rates(TypedDict):
    seconds: _Number
    down: _Rate
    up: _Rate


class _RateRow(_Rates, total=False):
    latency: Annotated[_Number, Field(le=3600)]


# Shorter pieces are mistakes, and would take for ever to go through; 1% for the rounding of written decimals.
_APART_S, _ROUNDED = 0.001, 0.99
_LEAST_HELD_BPS = 1.0


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
        RowError: they are not "seconds,value seconds,value ...", or see ``_check_times``.
    """
    try:
        t_s, value = np.array([row.split(",") for row in text.split()], dtype=np.float64).reshape(-1, 2).T
    except ValueError:
        raise RowError(f"{text[:60]!r} must be seconds,value", 0) from None
    if not len(t_s) or t_s[0]:
        raise RowError("the first row must be at 0 s", 0)
    _check_times(t_s)
    if (wrong := ~((value >= 0) & (value <= _MOST_BPS))).any():
        most = f"{_MOST_BPS:,.0f}"
        raise RowError(f"values must be between 0 and {most}; got {value[wrong][0]:g}", int(wrong.argmax()))
    return Series(t_s, value)


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
        RowError: see above.
    """
    last = len(rates.t_s) - 1
    if held and rates.value[last] < _LEAST_HELD_BPS:
        raise RowError(f"the last {way} rate must be at least 1 bit/s with 'end: hold': it never ends", last)
    if held:
        return
    if not last:
        raise RowError("a trace that repeats needs a second row, which ends it", last)
    if not rates.value[:-1].any():
        raise RowError(f"all {way} rates are 0: no transfer would ever end", last)


def from_csv(path: Path, *, held: bool) -> dict[str, str]:
    """The series of a CSV file as text, by column; of seconds that do not begin at 0, since the first row's.

    Raises:
        UserError: the file cannot be read, or a row is wrong.
    """
    return _from_csv(text_of(path), str(path), held)


@lru_cache(maxsize=64)
def _from_csv(text: str, file: str, held: bool) -> dict[str, str]:  # noqa: FBT001 - cached by position
    """Cached, as the runs of a sweep share files."""
    with placed(file):
        _, rows, lines = read_csv(text, _RateRow)
        try:
            return _columns(rows, held)
        except RowError as error:
            raise RowError(str(error), lines[error.line]) from None


def _columns(rows: list[dict[str, float]], held: bool) -> dict[str, str]:  # noqa: FBT001
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    t_s = columns.pop("seconds")
    if t_s[0]:
        # The difference of decimals has digits that none of them had.
        t_s = np.round(t_s - t_s[0], 6)
    _check_times(t_s)
    for way in ("down", "up"):
        check_rates(Series(t_s, columns[way]), way, held=held)
    return {name: written(t_s, value) for name, value in columns.items()}


def _check_times(t_s: Floats) -> None:
    """Refuses times that do not ascend by at least a millisecond, or last for decades."""
    wrong = ~(np.diff(t_s) >= _APART_S * _ROUNDED)
    if wrong.any():
        raise RowError("seconds must ascend, by at least 1 ms a row", int(wrong.argmax()) + 1)
    if not t_s[-1] <= _MOST_S:
        raise RowError(f"a trace must be at most {_MOST_S:,.0f} seconds long", len(t_s) - 1)


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
    with placed(file):
        packets_ms = _milliseconds(text)
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


def _milliseconds(text: str) -> Ints:
    """The lines of a file, (n,); empty ones mean nothing."""
    most, found, last = int(_MOST_S) * 1000, [], 0
    for line, field in enumerate(map(str.strip, text.split("\n")), 1):
        if not field:
            continue
        if not (field.isascii() and field.isdecimal()) or len(field) > len(str(most)):
            what = f"{field[:60]!r} must be a whole number of milliseconds up to {most:,}"
            raise RowError(what, line)
        found.append(int(field))
        last = line
        if found[-1] < found[-2:][0]:
            raise RowError("milliseconds must not fall", line)
    if not found or not 0 < found[-1] <= most:
        raise RowError(f"the last line must be between 1 and {most:,} milliseconds", last or 1)
    return np.array(found, dtype=np.int64)
