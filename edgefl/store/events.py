"""A run's events as rows of its tables, and what identifies them."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from edgefl.core.arrays import Words
from edgefl.core.event import ENDINGS, JOB, ServerEvent
from edgefl.store.schema import COLUMNS

if TYPE_CHECKING:
    from edgefl.store.reader import Reader

# All that happens in virtual time, and nothing that training reports.
_TABLES = {
    table: {name: kind for name, kind in COLUMNS[table].items() if name != "scalars"}
    for table in ("jobs", "server_events", "settled_tails")
}
# Rows that are hashed at once.
_ROWS = 10_000
_ENDINGS = [str(ending) for ending in ENDINGS]
_HALF, _MIX = np.uint64(32), np.uint64(0xD6E8FEB86659FD93)


def event_rows(events: Iterable[ServerEvent]) -> list[tuple[Any, ...]]:
    """Rows of ``server_events``."""
    return [(*event[:2], str(event.kind), *event[3:]) for event in events]


def job_columns(rows: np.ndarray, exchanges: Sequence[str]) -> list[Any]:
    """Rows of ``JOB`` as the table's columns but for scalars: arrays and lists; NaN is NULL."""
    rows = rows[np.argsort(rows["job"])]
    columns: dict[str, Any] = {name: rows[name] for name in JOB.names or ()}
    columns["exchange"] = [exchanges[place] for place in rows["exchange"].tolist()]
    columns["into_version"] = [None if one < 0 else one for one in rows["into_version"].tolist()]
    columns["ending"] = [_ENDINGS[number] for number in rows["ending"].tolist()]
    return list(columns.values())


class EventDigest:
    """Of each table of events: how many rows it has, and the sum, modulo 2^64, of a 64-bit hash of each.

    A sum follows new rows at their own cost, whatever their order, and can be made again from what is stored.
    It is there against damage, not against forgery: one changed value always changes it.

    Attributes:
        sums: by table, the count and the sum.
    """

    def __init__(self, sums: Mapping[str, Sequence[int]] | None = None) -> None:
        self.sums = {table: tuple((sums or {}).get(table, (0, 0))) for table in _TABLES}

    @classmethod
    def of(cls, database: sqlite3.Connection) -> EventDigest:
        """That of stored rows.

        Raises:
            sqlite3.DatabaseError, ValueError, TypeError, AttributeError, OverflowError: rows cannot be read,
                or a value is not of its column's type.
        """
        found, cursor = cls(), database.cursor()
        cursor.row_factory = None
        for table, columns in _TABLES.items():
            rows = cursor.execute(f"SELECT {', '.join(columns)} FROM {table}")  # noqa: S608 - our own names
            while some := list(islice(rows, _ROWS)):
                found.add_rows(table, some)
        return found

    def add_rows(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Adds rows."""
        if rows:
            self.add(table, list(zip(*rows, strict=True)))

    def add(self, table: str, columns: Sequence[Any]) -> None:
        """Adds rows, given as the table's columns: each a sequence or an array of one value a row."""
        kinds = _TABLES[table].values()
        words = np.stack([_WORDS[kind](column) for kind, column in zip(kinds, columns, strict=True)])
        # Upper bits go into lower ones, since the product with an odd number only moves bits up.
        words ^= words >> _HALF
        words *= _keys(len(words))
        hashes: Words = words.sum(axis=0, dtype=np.uint64)
        # Not linear, so that values which two rows exchange change the sum of both.
        hashes ^= hashes >> _HALF
        hashes *= _MIX
        hashes ^= hashes >> _HALF
        count, total = self.sums[table]
        self.sums[table] = count + len(hashes), (total + int(hashes.sum(dtype=np.uint64))) % 2**64

    def text(self) -> str:
        """16 hexadecimal digits; empty where nothing has happened yet."""
        found = [(table, *sums) for table, sums in self.sums.items() if sums[0]]
        return hashlib.sha256(repr(found).encode()).hexdigest()[:16] if found else ""


def _integers(column: Any) -> Words:
    """What is missing is -1, as in rows of ``JOB``."""
    if not isinstance(column, np.ndarray):
        column = [-1 if value is None else value for value in column]
    return np.array(column, dtype=np.int64).view(np.uint64)


def _reals(column: Any) -> Words:
    """SQLite reads back every NaN as NULL, which is NaN here, and -0 as 0."""
    values = np.array(column, dtype=np.float64) + 0.0
    values[np.isnan(values)] = np.nan
    return values.view(np.uint64)


def _texts(column: Any) -> Words:
    return np.fromiter(map(_text, column), np.uint64, len(column))


@lru_cache(maxsize=4096)
def _text(value: str) -> int:
    return int.from_bytes(hashlib.blake2b(value.encode(), digest_size=8).digest(), "little")


_WORDS = {"INTEGER": _integers, "REAL": _reals, "TEXT": _texts}


@cache
def _keys(count: int) -> Words:
    """An odd number for each column."""
    return np.array([[_text(f"column {place}") | 1] for place in range(count)], dtype=np.uint64)


# The key of a digest's sums among the facts about a run.
DIGEST = "events"


def event_hash(reader: Reader) -> str | None:
    """16 hexadecimal digits by which two people see that they ran the same events.

    Runs of one format of the store have the same hash if and only if they have the same jobs, events of the
    server and settled tails, in every column, up to collisions (about 2^-64). Engines do not matter, nor
    wall time. The digest is stored with each commit, so no row is read.

    Returns:
        None where nothing has happened yet.
    """
    return EventDigest(reader.meta.get(DIGEST)).text() or None
