"""What identifies a run's events."""

from __future__ import annotations

import hashlib

from edgefl.store.reader import Reader

# All that happens in virtual time, and nothing that training reports: its scalars have a digest of their own.
_TABLES = frozenset({"jobs", "server_events", "settled_tails"})
_MARKS = ", ".join("?" * len(_TABLES))
_SQL = f"SELECT name, count, total FROM digests WHERE count > 0 AND name IN ({_MARKS}) ORDER BY name"  # noqa: S608 - our own names


def event_hash(reader: Reader) -> str | None:
    """16 hexadecimal digits by which two people see that they ran the same events.

    Runs of one format of the store have the same hash if and only if they have the same jobs, events of the
    server and settled tails, in every column, up to collisions (about 2^-64). Engines do not matter, nor
    wall time. It is derived from the digests that the store keeps, see ``edgefl.store.digests``, so no row is
    read.

    Returns:
        None where nothing has happened yet, or where one of these tables is damaged.
    """
    if reader.damaged & _TABLES:
        return None
    found = [tuple(row.values()) for row in reader.query(_SQL, *sorted(_TABLES))]
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16] if found else None
