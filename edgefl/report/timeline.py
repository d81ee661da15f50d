"""A run's jobs and merges as columns, read once for all that is made of them."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from edgefl.report.usage import ENDINGS
from edgefl.store import Reader

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_ENDING = " ".join(f"WHEN '{kind}' THEN {place}" for place, kind in enumerate(ENDINGS))
# The names of columns that are not their own SQL. The jobs come first, so that they stay in their order.
_SQL = {"place": "place", "into": "IFNULL(into_version, -1)", "ending": f"CASE ending {_ENDING} END"}


@dataclass(frozen=True, eq=False)
class Jobs:
    """A run's jobs, columns (n,) in the order of their numbers; in a run in progress, those that ended.

    Attributes:
        client: the client.
        place: the exchange's place in the run.
        version: the server version that it started from.
        into: the version that it was merged into; -1 for none.
        steps: optimizer steps.
        flops: operations, as far as it went.
        ending: a place in ``usage.ENDINGS``.
        dispatched_s, received_s, worked_s, arrived_s: virtual seconds; NaN where it did not come so far.
        ended_s: when it was merged, or given up.
        receive_s, work_s, transmit_s: busy seconds of its stages, as far as it went.
    """

    client: Ints
    place: Ints
    version: Ints
    into: Ints
    steps: Ints
    flops: Ints
    ending: Ints
    dispatched_s: Floats
    received_s: Floats
    worked_s: Floats
    arrived_s: Floats
    ended_s: Floats
    receive_s: Floats
    work_s: Floats
    transmit_s: Floats

    def __len__(self) -> int:
        return len(self.client)

    @property
    def until_s(self) -> Floats:
        """When the upload had arrived, or the job ended without: its client was free again."""
        return np.where(np.isnan(self.arrived_s), self.ended_s, self.arrived_s)


def jobs(reader: Reader) -> Jobs:
    """A run's jobs.

    Raises:
        UserError: the run is damaged.
    """
    names = [field.name for field in fields(Jobs)]
    dtypes: dict[str, type[np.generic]] = {
        name: np.float64 if name.endswith("_s") else np.int64 for name in names
    }
    columns = ", ".join(_SQL.get(name, name) for name in names)
    sql = f"SELECT {columns} FROM jobs CROSS JOIN exchanges USING (exchange) ORDER BY job"  # noqa: S608 - our own names
    return Jobs(**reader.arrays(sql, **dtypes))


@dataclass(frozen=True, eq=False)
class Merges:
    """A run's merges, columns (n,) by ascending version.

    Attributes:
        version: the version that it made.
        place: the exchange's place in the run.
        round: from 0; -1 before the first, the number of rounds after the last.
        t_s: virtual seconds.
    """

    version: Ints
    place: Ints
    round: Ints
    t_s: Floats

    def __len__(self) -> int:
        return len(self.version)


def merges(reader: Reader) -> Merges:
    """A run's merges.

    Raises:
        UserError: the run is damaged.
    """
    sql = (
        "SELECT version, place, round, t_s FROM merges CROSS JOIN exchanges USING (exchange) ORDER BY version"
    )
    return Merges(**reader.arrays(sql, version=np.int64, place=np.int64, round=np.int64, t_s=np.float64))
