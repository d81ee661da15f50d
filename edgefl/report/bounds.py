"""The bounds of a run's times and energies, where numbers of its devices or links are intervals."""

from __future__ import annotations

import math

import numpy as np

from edgefl.core.bounds import Jobs, joules_between, stages_s
from edgefl.core.corners import Corner, Interval, together
from edgefl.core.plan import Floats, Ints, Prices
from edgefl.store import Reader, read_prices

# What each stage was charged counts from when it was over.
_RECEIVED = "IFNULL(received_s, ended_s) <= ?1"
_WORKED = "received_s IS NOT NULL AND IFNULL(worked_s, ended_s) <= ?1"
_SENT = "worked_s IS NOT NULL AND IFNULL(arrived_s, ended_s) <= ?1"
_SUMS = {
    "receive_s": ("receive_s", _RECEIVED),
    "work_s": ("work_s", _WORKED),
    "transmit_s": ("transmit_s", _SENT),
    "down_bytes": ("1.0 * down_bytes", _RECEIVED),
    "up_bytes": ("1.0 * up_bytes", _SENT),
    "tails": ("(down_bytes > 0) + (up_bytes > 0)", _RECEIVED),
}
# Of tails, by when they were charged; one that is unknown makes the sum unknown.
_TAILS = {"receive_tail_j": _RECEIVED, "work_tail_j": _WORKED, "transmit_tail_j": _SENT}


def _sum(what: str, when: str) -> str:
    return f"IFNULL(SUM({what}) FILTER (WHERE {when}), 0.0)"


_SQL = f"""
SELECT kind,
  {", ".join(f"{_sum(*what)} AS {name}" for name, what in _SUMS.items())},
  {" + ".join(_sum(*tail) for tail in _TAILS.items())} AS tail_j,
  MIN({" + ".join(_TAILS)} IS NOT NULL) AS tails_known
FROM jobs JOIN fleet USING (client) WHERE exchange = ?2 GROUP BY kind
"""  # noqa: S608 - our own names


class Bounds:
    """The bounds of a run's figures.

    Times are known at the corners where a run is blind to them (``edgefl.world.blind``). Elsewhere they stand
    as they are; where a device's launch overhead is unknown, as lower bounds.
    """

    def __init__(self, reader: Reader) -> None:
        """Takes a run's reader; ``bounds_of`` says whether there are any bounds."""
        self._reader = reader
        self._prices = read_prices(reader)
        self._ends = _ends(reader, self._prices) if reader.meta.get("blind") else None
        self._unbounded = any(map(_is_unbounded, self._prices))

    def joules(self, until_s: float = math.inf) -> Interval:
        """The bounds of the energy of all clients, as charged until a virtual time."""
        return together(
            joules_between(prices, jobs)
            for prices in self._prices
            if len((jobs := self._spent(prices.exchange, until_s)).kind)
        )

    def seconds(self, t_s: float, version: int | None = None) -> Interval | None:
        """The bounds of a virtual time; None where it stands as it is.

        Args:
            t_s: the time.
            version: the server's version then; None for the end of the run.
        """
        if self._ends is None:
            return Interval(t_s, None) if self._unbounded else None
        low, high = (float(ends[-1 if version is None else version]) for ends in self._ends)
        return Interval(low, None if math.isnan(high) else high)

    def _spent(self, exchange: str, until_s: float) -> Jobs:
        """What an exchange's jobs took until then, summed by kind of client."""
        rows = self._reader.query(_SQL, until_s, exchange)
        columns = {
            name: np.array([row[name] for row in rows], dtype=np.float64)
            for name in Jobs._fields
            if name != "kind"
        }
        columns["tail_j"][[not row["tails_known"] for row in rows]] = np.nan
        return Jobs(np.array([row["kind"] for row in rows], dtype=np.int64), **columns)


def bounds_of(reader: Reader) -> Bounds | None:
    """The bounds of a run's figures; None where no number of its devices and links is an interval."""
    (found,) = reader.query("SELECT EXISTS (SELECT 1 FROM corner_prices) AS any")
    return Bounds(reader) if found["any"] else None


def _is_unbounded(prices: Prices) -> bool:
    """Whether some kind's work has no upper bound."""
    return prices.corners is not None and bool(
        np.any(np.isnan(prices.corners[1].work_s) & ~np.isnan(prices.work_s))
    )


def _ends(reader: Reader, table: tuple[Prices, ...]) -> tuple[Floats, Floats]:
    """When each version was merged, at both corners: each merge waits for the slowest of its jobs."""
    (last,) = reader.query("SELECT IFNULL(MAX(into_version), 0) AS version FROM jobs")
    lengths = tuple(np.zeros(last["version"] + 1) for _ in Corner)
    for prices in table:
        versions, jobs = _merged(reader, prices.exchange)
        for corner, longest in zip(Corner, lengths, strict=True):
            with np.errstate(invalid="ignore"):
                np.maximum.at(longest, versions, np.add.reduce(stages_s(prices, corner, jobs)))
    low, high = map(np.cumsum, lengths)
    return low, high


def _merged(reader: Reader, exchange: str) -> tuple[Ints, Jobs]:
    """The merged jobs of an exchange, with the versions that they were merged into."""
    found = reader.arrays(
        "SELECT into_version, kind, receive_s, work_s, transmit_s FROM jobs JOIN fleet USING (client) "
        "WHERE into_version IS NOT NULL AND exchange = ?",
        exchange,
        into_version=np.int64,
        kind=np.int64,
        **dict.fromkeys(("receive_s", "work_s", "transmit_s"), np.float64),
    )
    zeros = np.zeros(len(found["kind"]))
    others = dict.fromkeys(("down_bytes", "up_bytes", "tail_j", "tails"), zeros)
    return found.pop("into_version"), Jobs(**found, **others)  # type: ignore[arg-type]
