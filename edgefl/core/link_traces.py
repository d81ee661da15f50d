"""Traces of links: rates and latencies that change in time, from files.

A trace is piecewise constant. Its rows say from when on a rate holds; the last row ends the trace. With
``end: repeat`` the trace begins again there, so that the last row's own rate is not used; with ``end: hold``
that rate holds for ever. Down and up may be of different lengths, and then repeat each on its own.

The files' content, not their names, is part of a run's identity: it is kept as ``rows``, and a run that is
read back needs no file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from pydantic import AfterValidator, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from edgefl.core import units
from edgefl.core.csv_rows import RowError
from edgefl.core.draws import Floats, key, uniforms
from edgefl.core.link_trace_files import check_rates, from_csv, from_mahimahi, series
from edgefl.core.params import Strict
from edgefl.core.poisson import Ints
from edgefl.core.user_files import found

Way: TypeAlias = Literal["down", "up"]
"""A direction of a link: down to the client, up from it."""

Number: TypeAlias = Literal["down", "up", "latency"]
"""What a trace gives of a link."""

WAYS: tuple[Way, Way] = ("down", "up")


class Pieces(NamedTuple):
    """A direction of a trace: what holds from ``t_s[i]`` until the next one begins.

    Attributes:
        t_s: when each piece begins, ascending from 0, (n,).
        bps: its rate in bit/s; 0 is an outage, (n,).
        latency_s: its round-trip time, (n,); None if the trace has none.
        length_s: when the first piece begins again; inf where the last one lasts for ever, as of a trace
            that never changes.
    """

    t_s: Floats
    bps: Floats
    latency_s: Floats | None
    length_s: float


class DealtTraces(NamedTuple):
    """The traces of some clients.

    Attributes:
        which: the index of each one's trace among the link's, (n,).
        offset_s: a client is at ``t + offset_s`` of its trace at time ``t``, in both directions, (n,).
    """

    which: Ints
    offset_s: Floats


# Rows of a trace that never changes: its only one, and the end.
_ONE_PIECE = 2


def _canonical(text: str) -> str:
    series(text)
    return text


SeriesText: TypeAlias = Annotated[str, AfterValidator(_canonical)]


class TraceRows(Strict):
    """One trace as text: "seconds,value seconds,value ..." with seconds that ascend from 0.

    Attributes:
        down, up: rates in bit/s.
        latency: round-trip times in seconds; null for the link's own.
    """

    down: SeriesText
    up: SeriesText
    latency: SeriesText | None = None

    @model_serializer(mode="wrap")
    def _short(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: text for name, text in written(self).items() if text is not None}


def _rows(texts: Mapping[str, str]) -> TraceRows:
    """The rows of files, which were checked as they were read."""
    return TraceRows.model_construct(None, **texts)


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

    @property
    def bin_ms(self) -> int:
        """``bin`` in milliseconds."""
        return round(self.bin * 1000)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if len(_several(self.down)) != len(_several(self.up)):
            raise ValueError("give as many files for 'down' as for 'up'")
        if not math.isclose(self.bin * 1000, self.bin_ms):
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

    csv: Files | None = None
    mahimahi: Mahimahi | None = None
    rows: Annotated[tuple[TraceRows, ...], Field(min_length=1)] | None = None
    end: Literal["repeat", "hold"] = "repeat"

    @model_validator(mode="after")
    def _content(self) -> Self:
        if sum(given is not None for given in (self.csv, self.mahimahi, self.rows)) != 1:
            raise ValueError("give one of 'csv', 'mahimahi' and 'rows'")
        rows = tuple(self._read())
        for place, one in enumerate(rows):
            with_latency = one.latency is not None
            if with_latency != (rows[0].latency is not None):
                raise ValueError("either all traces of a link have a latency or none has")
            if self.rows is not None:
                self._check(one, place)
        return self.model_copy(update={"csv": None, "mahimahi": None, "rows": rows})

    def _read(self) -> Iterator[TraceRows]:
        """The rows, of the files if there are any."""
        if self.rows is not None:
            yield from self.rows
        if self.csv is not None:
            for file in _several(self.csv):
                yield _rows(from_csv(found(file), held=self.holds))
        if self.mahimahi is not None:
            bin_ms = self.mahimahi.bin_ms
            for down, up in zip(_several(self.mahimahi.down), _several(self.mahimahi.up), strict=True):
                ways = {"down": from_mahimahi(found(down), bin_ms), "up": from_mahimahi(found(up), bin_ms)}
                yield _rows(ways)

    def _check(self, rows: TraceRows, place: int) -> None:
        try:
            for way in WAYS:
                check_rates(series(getattr(rows, way)), way, held=self.holds)
        except RowError as error:
            raise ValueError(f"trace {place}: {error}") from None
        ends = {series(text).t_s[-1] for text in (rows.down, rows.up, rows.latency) if text is not None}
        if rows.latency is not None and len(ends) > 1:
            raise ValueError(f"trace {place}: with a latency, all three must end at the same time")

    @model_serializer(mode="wrap")
    def _short(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in written(self).items() if value is not None}

    @property
    def holds(self) -> bool:
        """Whether the last row holds for ever; else the trace repeats."""
        return self.end == "hold"

    @property
    def traces(self) -> tuple[TraceRows, ...]:
        """The traces that are dealt out."""
        return self.rows or ()

    @property
    def gives(self) -> tuple[Number, ...]:
        """What the traces have."""
        return WAYS if self.traces[0].latency is None else (*WAYS, "latency")

    def in_words(self) -> str:
        """How many there are, how long they are, and how they are dealt out."""
        ends_s = self._lengths_s()
        of = " to ".join(dict.fromkeys(map(units.show_seconds, (min(ends_s), max(ends_s)))))
        if len(ends_s) == 1:
            held = "holds its last rate, from its beginning on"
            return f"a trace of {of}, which {held if self.holds else 'repeats, from a random time on'}"
        held = "hold their last rates, from their beginning on"
        then = held if self.holds else "repeat, from a random time on"
        return f"one of {len(ends_s)} traces of {of}, which {then}"

    def pieces(self, which: int, way: Way) -> Pieces:
        """A direction of one of the traces.

        Args:
            which: its index.
            way: the direction.
        """
        one = self.traces[which]
        rates = series(getattr(one, way))
        t_s, bps, latency_s = rates.t_s, rates.value, None
        if one.latency is not None:
            latencies = series(one.latency)
            t_s = np.union1d(rates.t_s, latencies.t_s)
            bps, latency_s = rates.at(t_s), latencies.at(t_s)
        if self.holds:
            return Pieces(t_s, bps, latency_s, math.inf)
        # The last row only ends the trace.
        length_s = float(t_s[-1]) if len(t_s) > _ONE_PIECE else math.inf
        return Pieces(t_s[:-1], bps[:-1], None if latency_s is None else latency_s[:-1], length_s)

    def dealt(self, root: int, clients: Ints) -> DealtTraces:
        """The trace of each client and where in it the client begins, by its number alone.

        A trace that repeats is entered anywhere within the longer of its directions, one that is held at 0.

        Args:
            root: the run's seed.
            clients: their numbers, (n,).
        """
        place, time = uniforms(key(root, "link trace"), clients)
        which = (place * len(self.traces)).astype(np.int64)
        if self.holds:
            return DealtTraces(which, np.zeros(len(which)))
        return DealtTraces(which, time * np.array(self._lengths_s())[which])

    def _lengths_s(self) -> list[float]:
        """When the last row of each trace is, in its longer direction."""
        return [max(float(series(getattr(one, way)).t_s[-1]) for way in WAYS) for one in self.traces]

    def range(self, name: Number) -> tuple[float, float]:
        """The least and the most of all traces, the rates that only end one left out."""
        every = [series(getattr(one, name)).value[: None if self.holds else -1] for one in self.traces]
        return min(float(one.min()) for one in every), max(float(one.max()) for one in every)

    def mean(self, name: Number) -> float:
        """The mean over the time of all traces, each until its last row: in bit/s, or seconds of latency."""
        every = [series(getattr(one, name)) for one in self.traces]
        seconds = math.fsum(float(one.t_s[-1]) for one in every)
        if not seconds:
            return math.fsum(float(one.value[-1]) for one in every) / len(every)
        return math.fsum(one.integral for one in every) / seconds
