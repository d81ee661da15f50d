"""Traces of links: rates and latencies that change in time, from CSV files, Mahimahi's, or rows.

A trace is piecewise constant. Its rows say from when on a rate holds; the last row ends the trace. With
``end: repeat`` the trace begins again there, so that the last row's own rate is not used; with ``end: hold``
that rate holds for ever. Down and up may be of different lengths, and then repeat each on its own.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Literal, NotRequired, Self, TypeAlias

import numpy as np
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, model_validator
from typing_extensions import TypedDict

from edgefl.core import units
from edgefl.core.arrays import Floats, Ints
from edgefl.core.csv_rows import RowError, file_rows, read_csv
from edgefl.core.draws import derive, uniforms
from edgefl.core.errors import short
from edgefl.core.params import Strict, unless
from edgefl.core.piecewise import Piecewise

Way: TypeAlias = Literal["down", "up"]
Number: TypeAlias = Literal["down", "up", "latency"]
WAYS: tuple[Way, Way] = ("down", "up")

# Of one of Mahimahi's opportunities.
PACKET_BITS = 8 * 1500
# Larger numbers are mistakes: 30 years, 1 Pbit/s and an hour.
_MOST_S, _MOST_BPS = 1e9, 1e15
_Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Rate = Annotated[_Number, Field(le=_MOST_BPS)]
_MILLISECONDS = TypeAdapter(list[Annotated[int, Field(ge=0, le=1000 * int(_MOST_S))]])


class _RateRow(TypedDict):
    seconds: _Number
    down: _Rate
    up: _Rate
    latency: NotRequired[Annotated[_Number, Field(le=3600)]]


# Shorter pieces are mistakes, and would take for ever to go through; 1% for the rounding of written decimals.
_APART_S, _ROUNDED = 0.001, 0.99


@lru_cache(maxsize=1024)
def series(text: str) -> Piecewise:
    """The rows that ``written`` wrote, or a user."""
    try:
        t_s, value = np.array([row.split(",") for row in text.split()], dtype=np.float64).reshape(-1, 2).T
    except ValueError:
        raise ValueError(f"{text[:60]!r} must be seconds,value") from None
    if not len(t_s) or t_s[0]:
        raise ValueError("the first row must be at 0 s")
    _check_times(t_s)
    if len(wrong := value[~((value >= 0) & (value <= _MOST_BPS))]):
        raise ValueError(f"values must be between 0 and {_MOST_BPS:,.0f}; got {wrong[0]:g}")
    return Piecewise(t_s, value)


def written(t_s: Floats, value: Floats) -> str:
    """A series as text; rows that change nothing are left out."""
    kept = np.ones(len(t_s), dtype=bool)
    kept[1:-1] = value[1:-1] != value[:-2]
    rows = zip(t_s[kept].tolist(), value[kept].tolist(), strict=True)
    return " ".join(",".join(repr(number).removesuffix(".0") for number in row) for row in rows)


def check_rates(rates: Piecewise, way: str, *, held: bool) -> None:
    """Refuses, by a ``RowError``, rates in bit/s under which a transfer or the trace itself never ends."""
    last = len(rates.t) - 1
    if held and rates.value[last] < 1:
        raise RowError(f"the last {way} rate must be at least 1 bit/s with 'end: hold': it never ends", last)
    if not held and not last:
        raise RowError("a trace that repeats needs a second row, which ends it", last)
    if not held and not rates.value[:-1].any():
        raise RowError(f"all {way} rates are 0: no transfer would ever end", last)


def _check_times(t_s: Floats) -> None:
    """Refuses times that do not ascend by at least a millisecond, or last for decades."""
    wrong = ~(np.diff(t_s) >= _APART_S * _ROUNDED)
    if wrong.any():
        raise RowError("seconds must ascend, by at least 1 ms a row", int(wrong.argmax()) + 1)
    if not t_s[-1] <= _MOST_S:
        raise RowError(f"a trace must be at most {_MOST_S:,.0f} seconds long", len(t_s) - 1)


def of_csv(text: str, held: bool) -> dict[str, str]:  # noqa: FBT001 - cached by position
    """The series of a CSV text by column, in seconds since its first row; a ``RowError`` if one is wrong."""
    _, rows, lines = read_csv(text, _RateRow)
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    t_s = columns.pop("seconds")
    if t_s[0]:
        # The difference of decimals has digits that none of them had.
        t_s = np.round(t_s - t_s[0], 6)
    try:
        _check_times(t_s)
        for way in WAYS:
            check_rates(Piecewise(t_s, columns[way]), way, held=held)
    except RowError as error:
        raise RowError(str(error), lines[error.line]) from None
    return {name: written(t_s, value) for name, value in columns.items()}


def of_mahimahi(text: str, bin_ms: int) -> str:
    """A series of rates in bit/s of a text in Mahimahi's format; a ``RowError`` if a line is wrong.

    A packet at millisecond t counts in the interval (begin, end] that has t, and one at 0 in the first. The
    last interval ends with the last packet, as the trace does.
    """
    numbered = [(line, number) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    try:
        packets_ms = np.array(_MILLISECONDS.validate_python([line for line, _ in numbered]), dtype=np.int64)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        what = f"milliseconds {short(str(wrong['input']))!r}: {wrong['msg']}"
        raise RowError(what, numbered[int(wrong["loc"][0])][1]) from None
    if not len(packets_ms) or not packets_ms[-1]:
        raise RowError("the last line must be 1 millisecond or more", numbered[-1][1] if numbered else 1)
    if (falling := np.diff(packets_ms) < 0).any():
        raise RowError("milliseconds must not fall", numbered[int(falling.argmax()) + 1][1])
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


def _checked(text: str) -> str:
    series(text)
    return text


SeriesText: TypeAlias = Annotated[str, AfterValidator(_checked)]


class TraceRows(Strict):
    """One trace as text: "seconds,value seconds,value ..." with seconds that ascend from 0.

    Attributes:
        down, up: rates in bit/s.
        latency: round-trip times in seconds; null for the link's own.
    """

    down: SeriesText
    up: SeriesText
    latency: Annotated[SeriesText | None, unless(None)] = None


Files: TypeAlias = str | Annotated[tuple[str, ...], Field(min_length=1)]


class Mahimahi(Strict):
    """Traces in Mahimahi's format: a line a millisecond at which a packet of 1500 bytes may be delivered.

    Attributes:
        down, up: a file, or as many files for each; the first of each make a trace, and so on.
        bin: packets are counted in intervals of so much, a whole number of milliseconds.
    """

    down: Files
    up: Files
    bin: Annotated[units.Seconds, Field(ge=0.001, le=3600)] = 0.1

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if len(_several(self.down)) != len(_several(self.up)):
            raise ValueError("give as many files for 'down' as for 'up'")
        if not math.isclose(self.bin * 1000, round(self.bin * 1000)):
            raise ValueError("'bin' must be a whole number of milliseconds")
        return self


def _several(files: Files) -> tuple[str, ...]:
    return (files,) if isinstance(files, str) else files


class LinkTrace(Strict):
    """The traces of a link, which are dealt out among its clients.

    Attributes:
        csv: a CSV file with the columns seconds, down, up and, if it has them, latency; or several files.
        mahimahi: files in Mahimahi's format.
        rows: the traces themselves, in place of files.
        end: at its end a trace repeats, or its last row holds.
    """

    csv: Annotated[Files | None, unless(None)] = None
    mahimahi: Annotated[Mahimahi | None, unless(None)] = None
    rows: Annotated[tuple[TraceRows, ...], Field(min_length=1)] = ()
    end: Literal["repeat", "hold"] = "repeat"

    @model_validator(mode="after")
    def _content(self) -> Self:
        if sum(map(bool, (self.csv, self.mahimahi, self.rows))) != 1:
            raise ValueError("give one of 'csv', 'mahimahi' and 'rows'")
        rows = self.rows or tuple(self._read())
        if len({one.latency is None for one in rows}) > 1:
            raise ValueError("either all traces of a link have a latency or none has")
        for place, one in enumerate(self.rows):
            self._check(one, place)
        return self.model_copy(update={"csv": None, "mahimahi": None, "rows": rows})

    def _read(self) -> Iterator[TraceRows]:
        if self.csv is not None:
            for file in _several(self.csv):
                yield TraceRows(**file_rows(file, of_csv, self.holds))
        if self.mahimahi is not None:
            bin_ms = round(self.mahimahi.bin * 1000)
            for files in zip(_several(self.mahimahi.down), _several(self.mahimahi.up), strict=True):
                down, up = (file_rows(file, of_mahimahi, bin_ms) for file in files)
                yield TraceRows(down=down, up=up)

    def _check(self, rows: TraceRows, place: int) -> None:
        try:
            for way in WAYS:
                check_rates(series(getattr(rows, way)), way, held=self.holds)
        except RowError as error:
            raise ValueError(f"trace {place}: {error}") from None
        ends = {series(text).t[-1] for text in (rows.down, rows.up, rows.latency) if text is not None}
        if rows.latency is not None and len(ends) > 1:
            raise ValueError(f"trace {place}: with a latency, all three must end at the same time")

    @property
    def holds(self) -> bool:
        return self.end == "hold"

    @property
    def gives(self) -> tuple[Number, ...]:
        return WAYS if self.rows[0].latency is None else (*WAYS, "latency")

    def in_words(self) -> str:
        """How many there are, how long they are, and how they are dealt out."""
        ends_s = self._lengths_s()
        of = " to ".join(dict.fromkeys(map(units.show_seconds, (min(ends_s), max(ends_s)))))
        one = "a trace" if len(ends_s) == 1 else f"one of {len(ends_s)} traces"
        then = "from its beginning, then at its last rate" if self.holds else "repeated from a random time on"
        return f"{one} of {of}, {then}"

    def pieces(self, which: int, name: Number) -> Piecewise:
        one = series(getattr(self.rows[which], name))
        if self.holds:
            return one
        # The last row only ends the trace, and with one other row nothing changes.
        t_s, end_s = one.t[:-1], float(one.t[-1])
        return Piecewise(t_s, one.value[:-1], end_s if len(t_s) > 1 else math.inf)

    def dealt(self, root: int, clients: Ints) -> tuple[Ints, Floats]:
        """The place of each client's trace, and where in it the client is at time 0 in seconds, (n,) each.

        A trace that repeats is entered anywhere within the longer of its directions, one that is held at 0.
        """
        place, time = uniforms(derive(root, "link trace"), clients)
        which = (place * len(self.rows)).astype(np.int64)
        if self.holds:
            return which, np.zeros(len(which))
        return which, time * np.array(self._lengths_s())[which]

    def _lengths_s(self) -> list[float]:
        return [max(float(series(getattr(one, way)).t[-1]) for way in WAYS) for one in self.rows]

    def range(self, name: Number) -> tuple[float, float]:
        """The least and the most of all traces, the rates that only end one left out."""
        every = [series(getattr(one, name)).value[: None if self.holds else -1] for one in self.rows]
        return min(float(one.min()) for one in every), max(float(one.max()) for one in every)

    def mean(self, name: Number) -> float:
        """The mean over the time of all traces, each until its last row: in bit/s, or seconds of latency."""
        every = [series(getattr(one, name)) for one in self.rows]
        seconds = math.fsum(float(one.t[-1]) for one in every)
        if not seconds:
            return math.fsum(float(one.value[-1]) for one in every) / len(every)
        return math.fsum(math.fsum((one.value[:-1] * np.diff(one.t)).tolist()) for one in every) / seconds
