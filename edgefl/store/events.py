"""A run's events as rows of its tables, and what identifies them."""

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from edgefl.core.event import ENDINGS, JOB, TAIL, ServerEvent

_ENDING = " ".join(f"WHEN '{kind}' THEN {number}" for number, kind in enumerate(ENDINGS) if kind)
# The columns of ``JOB`` that are not their own SQL.
_OTHERS = {
    "exchange": "place",
    "ending": f"CASE ending {_ENDING} END",
    "into_version": "IFNULL(into_version, -1)",
}
_COLUMNS = ", ".join(_OTHERS.get(name, name) for name in JOB.names or ())
# All jobs that ended, by number, as rows of ``JOB``; they come first, so that they stay in their order.
JOBS = f"SELECT {_COLUMNS} FROM jobs CROSS JOIN exchanges USING (exchange) ORDER BY job"  # noqa: S608 - our own names
_RECORDS = {"jobs": JOB, "settled_tails": TAIL}
# The key of a digest's sums among the facts about a run.
DIGEST = "events"


def event_rows(events: Iterable[ServerEvent]) -> list[tuple[Any, ...]]:
    """Rows of ``server_events``."""
    return [(event.turn, float(event.t_s), str(event.kind), *event[3:]) for event in events]


class EventDigest:
    """Of each table of events, ``sums``: its count of rows, and the sum of their 64-bit hashes modulo 2^64.

    A sum follows new rows at their own cost, whatever their order, and can be made again from what is stored.
    What training reports has no part in it.
    """

    def __init__(self, sums: Mapping[str, Sequence[int]] | None = None) -> None:
        tables = ("jobs", "server_events", "settled_tails")
        self.sums = {table: tuple((sums or {}).get(table, (0, 0))) for table in tables}

    @classmethod
    def of(cls, database: sqlite3.Connection) -> "EventDigest":
        """That of stored rows; of damaged ones NumPy and SQLite raise what they will."""
        found, cursor = cls(), database.cursor()
        cursor.row_factory = None
        found.add_events(cursor.execute("SELECT * FROM server_events"))
        for table, sql in (("jobs", JOBS), ("settled_tails", "SELECT * FROM settled_tails")):
            rows = cursor.execute(sql)
            while len(some := np.fromiter(islice(rows, 10_000), _RECORDS[table])):
                found.add(table, some)
        return found

    def add(self, table: str, rows: np.ndarray) -> None:
        """Adds rows of ``jobs``, which may have more columns than ``JOB``, or of ``settled_tails``."""
        kind = _RECORDS[table]
        names = list(kind.names or ())
        rows = rows[names].astype(kind)
        for name in names:
            if rows[name].dtype == np.float64:
                # SQLite reads back every NaN as NULL, which is NaN here, and -0 as 0.
                rows[name] = np.where(np.isnan(rows[name]), np.nan, rows[name] + 0.0)
        self._add(table, rows.view(f"V{rows.itemsize}").tolist())

    def add_events(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Adds rows of ``server_events``."""
        self._add("server_events", [repr(row).encode() for row in rows])

    def _add(self, table: str, rows: Sequence[bytes]) -> None:
        hashes = b"".join([hashlib.blake2b(row, digest_size=8).digest() for row in rows])
        count, total = self.sums[table]
        total += int(np.frombuffer(hashes, "<u8").sum())
        self.sums[table] = count + len(rows), total % 2**64

    def text(self) -> str:
        """16 hexadecimal digits; empty where nothing has happened yet."""
        found = [(table, *sums) for table, sums in self.sums.items() if sums[0]]
        return hashlib.sha256(repr(found).encode()).hexdigest()[:16] if found else ""
