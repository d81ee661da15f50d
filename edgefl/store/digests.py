"""Digests of tables: written in the transaction of the rows, recomputed in bulk when a run is opened.

A table's digest is its number of rows and the sum, modulo 2^64, of a 64-bit hash of each row. A sum does not
depend on the order of rows, and rows that are replaced are taken out of it again, so that it follows every
change at the cost of the change. The hash is there against damage, not against forgery: one changed value
always changes it, more of them stay unseen with a probability of about 2^-64.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgefl.store.schema import STORED

Words = NDArray[np.uint64]

# All that happens in virtual time, and nothing that training reports: its scalars have a digest of their own.
EVENT_TABLES = ("jobs", "server_events", "settled_tails")
# Training's scalars are added to a job's row after it, so they have a digest of their own.
SCALARS = "scalars"
_ROWS = 10_000
_HALF, _MIX = np.uint64(32), np.uint64(0xD6E8FEB86659FD93)
NULL = -(2**63) + 1


class Digests:
    """The digests of all tables, while rows are written.

    Attributes:
        changed: the tables whose digest is not saved yet.
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = defaultdict(int)
        self._sums: dict[str, int] = defaultdict(int)
        self.changed: set[str] = set()

    @classmethod
    def load(cls, database: sqlite3.Connection) -> Digests:
        """Those that were saved."""
        return cls.of(database.execute("SELECT name, count, total FROM digests"))

    @classmethod
    def of(cls, rows: Iterable[Iterable[Any]]) -> Digests:
        """Those of rows of their table."""
        found = cls()
        for table, count, total in rows:
            found._counts[table], found._sums[table] = count, total
        return found

    def add(self, table: str, columns: Sequence[Any], sign: int = 1) -> None:
        """Adds rows.

        Args:
            table: the table, or ``SCALARS``.
            columns: its columns, each a sequence or an array of one value a row.
            sign: -1 to take rows out.
        """
        hashes = row_hashes(table, columns)
        self._counts[table] += sign * len(hashes)
        self._sums[table] = _signed(self._sums[table] + sign * int(hashes.sum(dtype=np.uint64)))
        self.changed.add(table)

    def save(self, database: sqlite3.Connection) -> None:
        """Writes what changed; the next commit makes it durable."""
        rows = [(table, self._counts[table], self._sums[table]) for table in sorted(self.changed)]
        database.executemany("INSERT OR REPLACE INTO digests VALUES (?, ?, ?)", rows)
        self.changed.clear()

    def event_hash(self) -> str | None:
        """See ``edgefl.store.events``."""
        found = [
            (table, self._counts[table], self._sums[table]) for table in EVENT_TABLES if self._counts[table]
        ]
        return hashlib.sha256(repr(found).encode()).hexdigest()[:16] if found else None

    def matches(self, table: str, other: Digests) -> bool:
        """Whether both have the same rows in a table."""
        return (self._counts[table], self._sums[table]) == (other._counts[table], other._sums[table])


def damaged_tables(database: sqlite3.Connection) -> dict[str, str]:
    """The tables whose rows are not those that were written, with what is wrong; ``SCALARS`` among them.

    Raises:
        sqlite3.DatabaseError: the digests cannot be read.
    """
    stored, found = Digests.load(database), dict[str, str]()
    for table in _COLUMNS:
        actual = Digests()
        try:
            for columns in stored_rows(database, table):
                actual.add(table, columns)
        except _WRONG as error:
            found[table] = str(error)
            continue
        if not actual.matches(table, stored):
            found[table] = "its rows are not those that were written"
    return found


def stored_rows(
    database: sqlite3.Connection, table: str, where: str = "TRUE", values: Sequence[Any] = ()
) -> Iterator[list[NDArray[Any]]]:
    """The columns of a table's rows as they are hashed, some thousand rows at a time.

    Args:
        database: a run's.
        table: the table, or ``SCALARS``.
        where: which rows.
        values: of its question marks.
    """
    kinds = _COLUMNS[table]
    names = [f"IFNULL({name}, {NULL})" if kind == "INTEGER" else name for name, kind in kinds.items()]
    source = f"jobs WHERE scalars IS NOT NULL AND ({where})" if table == SCALARS else f"{table} WHERE {where}"
    cursor = database.cursor()
    cursor.row_factory = None
    rows = cursor.execute(f"SELECT {', '.join(names)} FROM {source}", values)  # noqa: S608 - our own names
    dtype = np.dtype([(name, _DTYPES[kind]) for name, kind in kinds.items()])
    while len(found := np.fromiter(islice(rows, _ROWS), dtype)):
        yield [found[name] for name in kinds]


def in_chunks(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """The rows, some thousand at a time."""
    rows = iter(rows)
    while chunk := list(islice(rows, _ROWS)):
        yield chunk


def row_hashes(table: str, columns: Sequence[Any]) -> Words:
    """A hash of each row, given the table's columns in order.

    Raises:
        ValueError, TypeError, OverflowError: a value is not of its column's type.
    """
    words = np.empty((len(columns), len(columns[0])), dtype=np.uint64)
    for row, kind, column in zip(words, _COLUMNS[table].values(), columns, strict=True):
        _FILL[kind](row, column)
    # Upper bits go into lower ones, since the product with an odd number only moves bits up.
    words ^= words >> _HALF
    words *= _keys(len(words))
    hashes: Words = words.sum(axis=0, dtype=np.uint64)
    # Not linear, so that values which two rows exchange change the sum of both.
    hashes ^= hashes >> _HALF
    hashes *= _MIX
    return hashes ^ (hashes >> _HALF)


def _integers(row: Words, column: Any) -> None:
    if not isinstance(column, np.ndarray) and None in column:
        column = [NULL if value is None else value for value in column]
    row.view(np.int64)[:] = column


def _reals(row: Words, column: Any) -> None:
    """SQLite reads back every NaN as NULL, which is NaN here, and -0 as 0."""
    values = row.view(np.float64)
    values[:] = column
    values += 0.0
    np.copyto(values, np.nan, where=np.isnan(values))


def _texts(row: Words, column: Any) -> None:
    row[:] = list(map(_text, column))


@lru_cache(maxsize=4096)
def _text(value: str | None) -> int:
    if value is None:
        return 0
    return int.from_bytes(hashlib.blake2b(value.encode(), digest_size=8).digest(), "little")


_DTYPES = {"INTEGER": np.int64, "REAL": np.float64, "TEXT": np.object_}
_FILL = {"INTEGER": _integers, "REAL": _reals, "TEXT": _texts}


# What a value of another type than its column's raises, or a page that cannot be read.
_WRONG = (sqlite3.DatabaseError, ValueError, TypeError, AttributeError, OverflowError)
_COLUMNS = {
    table: {name: kind for name, kind in columns.items() if (table, name) != ("jobs", SCALARS)}
    for table, columns in STORED.items()
    if table != "digests"
}
_COLUMNS[SCALARS] = {"job": "INTEGER", "scalars": "TEXT"}


@cache
def _keys(count: int) -> Words:
    """An odd number for each column."""
    texts = (hashlib.blake2b(f"column {place}".encode(), digest_size=8).digest() for place in range(count))
    return np.array([[int.from_bytes(text, "little") | 1] for text in texts], dtype=np.uint64)


def _signed(number: int) -> int:
    """A number modulo 2^64, as SQLite can hold it."""
    number %= 2**64
    return number - 2**64 if number >= 2**63 else number
