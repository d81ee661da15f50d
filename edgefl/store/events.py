"""What identifies a run's events."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgefl.core.event import ServerEvent
from edgefl.store.digests import Digests
from edgefl.store.reader import Reader
from edgefl.store.rows import event_row, job_columns


def event_hash(reader: Reader) -> str | None:
    """16 hexadecimal digits by which two people see that they ran the same events.

    Runs of one format of the store have the same hash if and only if they have the same jobs, events of the
    server and settled tails, in every column, up to collisions (about 2^-64). Engines do not matter, nor
    wall time. It is derived from the digests that the store keeps, see ``edgefl.store.digests``, so no row is
    read.

    Returns:
        None where nothing has happened yet.
    """
    return Digests.of(tuple(row.values()) for row in reader.rows("digests")).event_hash()


class Happened:
    """What happens in a world and is not stored: enough to compare it with a run that is.

    Attributes:
        events: the server's own so far; append to it.
        rows: the jobs that ended, as rows of ``edgefl.core.event.JOB``; append to it.
        jobs: the numbers of the jobs that had ended when the hash was last asked for.
        turn: the server's last turn then.
    """

    def __init__(self, exchanges: Sequence[str]) -> None:
        """Nothing has happened; ``exchanges`` are the names that jobs' numbers stand for."""
        self.events: list[ServerEvent] = []
        self.rows: list[np.ndarray] = []
        self.jobs: list[int] = []
        self.turn = 0
        self._exchanges = exchanges
        self._digests = Digests()

    def event_hash(self) -> str:
        """As of a store in which the same happened; empty where nothing has."""
        if self.events:
            self.turn = self.events[-1].turn
            self._digests.add("server_events", list(zip(*map(event_row, self.events), strict=True)))
        if self.rows:
            rows = np.concatenate(self.rows)
            self.jobs += rows["job"].tolist()
            self._digests.add("jobs", job_columns(rows, self._exchanges)[0])
        self.events.clear()
        self.rows.clear()
        return self._digests.event_hash() or ""
