"""Clients are available in listed intervals, such as a trace's.

``file`` is a CSV file with the columns client, start_s and end_s: a client's number, and the seconds from
which and until which it is available. Its path is relative to the working directory or to a directory on
EDGEFL_PATH. A client without rows is never available; if there are more clients than the file has numbers,
they use its timetables in turn: client c that of number c mod (the largest number + 1). In a fleet of
recorded users (``fleet.users``), the column availability says whose number a client has.

The file's content, not its name, is part of a run's identity: it is kept as ``rows``, and a run that is read
back needs no file.
"""

import math
from itertools import pairwise
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import TypedDict

from edgefl.core.arrays import Floats, Ints
from edgefl.core.availability import Availability, Spell, Timetable
from edgefl.core.clients import Clients
from edgefl.core.csv_rows import RowError, kept, read_csv
from edgefl.core.units import Seconds

_Time = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _IntervalRow(TypedDict):
    client: Annotated[int, Field(ge=0, lt=100_000_000)]
    start_s: _Time
    end_s: _Time


class Params(Availability):
    file: str | None = Field(default=None, description="CSV file: client, start_s, end_s")
    rows: str | None = Field(default=None, description="instead of a file: 'client,start_s,end_s client,...'")
    repeat: Annotated[Seconds, Field(gt=0)] | None = Field(default=None, description="the intervals' period")

    @model_validator(mode="before")
    @classmethod
    def _content(cls, value: Any) -> Any:
        return kept(value, _of_file, _of_rows, cls.model_fields)

    @model_validator(mode="after")
    def _within_a_period(self) -> Self:
        last = self.table()[:, 2].max()
        if self.repeat is not None and last > self.repeat:
            raise ValueError(f"'repeat' must be at least {last:g} s, the end of the last interval")
        return self

    def table(self) -> Floats:
        """The rows (client, start_s, end_s), (n, 3), by client and start."""
        return np.array((self.rows or "").replace(" ", ",").split(","), dtype=np.float64).reshape(-1, 3)

    def timetable(self, clients: Clients, root: int) -> "Intervals":  # noqa: ARG002
        return Intervals(self.table(), math.inf if self.repeat is None else self.repeat, clients.user)


class Intervals(Timetable):
    def __init__(self, table: Floats, period_s: float, user: Ints) -> None:
        """Takes rows (number, start_s, end_s), (n, 3), sorted; ``user`` is each client's number, or more."""
        self._number, self._start_s, self._end_s = table.T
        self._period_s = period_s
        self._user = user % (self._number[-1] + 1)
        # Complex numbers are ordered by their real parts, and where these are equal, by the others.
        self._begins = self._number + 1j * self._start_s

    def at(self, clients: Ints, t_s: Floats) -> Spell:
        number, base = self._user[clients], self._base(t_s)
        within = t_s - base
        first, end = (np.searchsorted(self._number, number, side) for side in ("left", "right"))
        # The last that has begun; before the first is another client's.
        row = np.searchsorted(self._begins, number + 1j * within, "right") - 1
        inside = row >= first
        available = np.zeros(len(t_s), dtype=bool)
        available[inside] = within[inside] < self._end_s[row[inside]]
        until = np.full(len(t_s), np.inf)
        until[available] = self._end_s[row[available]]
        later = ~available & (row + 1 < end)
        until[later] = self._start_s[row[later] + 1]
        again = ~available & ~later & (first < end)
        until[again] = self._period_s + self._start_s[first[again]]
        # Later than t also where the sum is rounded.
        return Spell(available, np.maximum(base + until, np.nextafter(t_s, np.inf)))

    def _base(self, t_s: Floats) -> Floats:
        """The beginnings of the periods that times are in."""
        if math.isinf(self._period_s):
            return np.zeros(len(t_s))
        begun = np.floor(t_s / self._period_s)
        # The quotient may have been rounded up.
        begun -= begun * self._period_s > t_s
        return begun * self._period_s


def _of_rows(rows: str) -> str:
    return _of_file("\n".join([",".join(_IntervalRow.__annotations__), *rows.split()]))


def _of_file(text: str) -> str:
    """Rows as text, by client and start."""
    _, read, lines = read_csv(text, _IntervalRow)
    rows = sorted((*row.values(), line) for row, line in zip(read, lines, strict=True))
    for _, start, end, line in rows:
        if start >= end:
            raise RowError(f"the interval from {start:g} s must end after that, not at {end:g} s", line)
    for (client, _, end, _), (other, start, _, line) in pairwise(rows):
        if client == other and start < end:
            raise RowError(f"client {client}: an interval from {start:g} s begins within the last one", line)
    return " ".join(f"{client},{start!r},{end!r}" for client, start, end, _ in rows)
