"""A run's jobs, merges and clients as columns, read once for all that is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgefl.analysis.usage import ENDINGS
from edgefl.core.event import JOULES
from edgefl.store import Reader

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_ENDING = " ".join(f"WHEN '{kind}' THEN {place}" for place, kind in enumerate(ENDINGS))
# The names of columns that are not their own SQL. The jobs come first, so that they stay in their order.
_SQL = {
    "place": "place",
    "into": "IFNULL(into_version, -1)",
    "ending": f"CASE ending {_ENDING} END",
    "until_s": "IFNULL(arrived_s, ended_s)",
    "energy_j": " + ".join(JOULES),
}


@dataclass(frozen=True, eq=False)
class Jobs:
    """A run's jobs, columns (n,) in the order of their numbers; in a run in progress, those that ended.

    Attributes:
        client: the client.
        place: the exchange's place in the run.
        version: the server version that it started from.
        into: the version that it was merged into; -1 for none.
        steps: optimizer steps.
        down_bytes, up_bytes, flops: traffic and operations, as far as it went.
        ending: a place in ``usage.ENDINGS``.
        dispatched_s, received_s, worked_s, arrived_s: virtual seconds; NaN where it did not come so far.
        ended_s: when it was merged, or given up.
        receive_s, work_s, transmit_s: busy seconds of its stages, as far as it went.
        full_power_s: of the work, see ``edgefl.core.event.JOB``.
    """

    client: Ints
    place: Ints
    version: Ints
    into: Ints
    steps: Ints
    down_bytes: Ints
    up_bytes: Ints
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
    full_power_s: Floats

    def __len__(self) -> int:
        return len(self.client)

    @property
    def until_s(self) -> Floats:
        """When the upload had arrived, or the job ended without: its client was free again."""
        return np.where(np.isnan(self.arrived_s), self.ended_s, self.arrived_s)


def jobs_of(reader: Reader) -> Jobs:
    """A run's jobs.

    Raises:
        UserError: the run is damaged.
    """
    return Jobs(**job_columns(reader, [field.name for field in fields(Jobs)]))


def job_columns(
    reader: Reader, names: Sequence[str], *, where: str = "TRUE", order: str = "job"
) -> dict[str, NDArray[Any]]:
    """Some columns of a run's jobs, (n,); reals that are NULL are NaN.

    Args:
        reader: the run.
        names: columns of the table that are numbers, the fields of ``Jobs``, ``until_s`` (see ``Jobs``), and
            ``energy_j``, the sum of its ``JOULES``.
        where: a condition of SQL.
        order: a column, or several.

    Raises:
        UserError: the run is damaged.
    """
    dtypes: dict[str, type[np.generic]] = {
        name: np.float64 if name.endswith(("_s", "_j")) else np.int64 for name in names
    }
    columns = ", ".join(_SQL.get(name, name) for name in names)
    return reader.arrays(
        f"SELECT {columns} FROM jobs CROSS JOIN exchanges USING (exchange) WHERE {where} ORDER BY {order}",  # noqa: S608 - our own
        **dtypes,
    )


@dataclass(frozen=True, eq=False)
class Merges:
    """A run's merges, columns (n,) by ascending version.

    Attributes:
        version: the version that it made.
        place: the exchange's place in the run.
        round: from 0; -1 before the first, the number of rounds after the last.
        t_s: virtual seconds.
        server_s: how long the server worked on it until then.
    """

    version: Ints
    place: Ints
    round: Ints
    t_s: Floats
    server_s: Floats

    def __len__(self) -> int:
        return len(self.version)


def merges_of(reader: Reader) -> Merges:
    """A run's merges.

    Raises:
        UserError: the run is damaged.
    """
    sql = (
        "SELECT version, place, round, t_s, IFNULL(server_seconds, 0.0) AS server_s "
        "FROM merges CROSS JOIN exchanges USING (exchange) ORDER BY version"
    )
    ints: dict[str, type[np.generic]] = dict.fromkeys(("version", "place", "round"), np.int64)
    return Merges(**reader.arrays(sql, **ints, t_s=np.float64, server_s=np.float64))


@dataclass(frozen=True, eq=False)
class Fleet:
    """A run's clients, columns (clients,).

    Attributes:
        device_names: its devices, sorted.
        device: each client's, a place among these.
        kind: each client's kind.
        slowdown: each client's constant slowdown.
    """

    device_names: Sequence[str]
    device: Ints
    kind: Ints
    slowdown: Floats


def fleet_of(reader: Reader) -> Fleet:
    """A run's clients.

    Raises:
        UserError: the run is damaged.
    """
    columns = reader.arrays(
        "SELECT kind, slowdown FROM fleet ORDER BY client", kind=np.int64, slowdown=np.float64
    )
    of_kind = {row["kind"]: row["device"] for row in reader.rows("kinds")}
    names = sorted(set(of_kind.values()))
    place_of = np.zeros(max(of_kind, default=0) + 1, dtype=np.int64)
    place_of[list(of_kind)] = [names.index(name) for name in of_kind.values()]
    return Fleet(names, place_of[columns["kind"]], **columns)


@dataclass(frozen=True, eq=False)
class Timeline:
    """All that happened in a run in virtual time.

    Attributes:
        jobs: its jobs.
        merges: its merges.
        fleet: its clients.
        exchanges: the names of its exchanges, by place.
        at: "start", "round" or "end", by place.
        timed: whether the policy's rounds last a fixed time.
    """

    jobs: Jobs
    merges: Merges
    fleet: Fleet
    exchanges: Sequence[str]
    at: Sequence[str]
    timed: bool

    @property
    def in_rounds(self) -> Bools:
        """Which exchanges belong to the rounds, by place."""
        return np.array([at == "round" for at in self.at], dtype=bool)

    def merged_in_rounds(self) -> Ints:
        """The places of the jobs that were merged in rounds, by ascending version."""
        # A merge is missing where its table was damaged.
        into = self.jobs.into
        merged = np.flatnonzero(self.in_rounds[self.jobs.place] & np.isin(into, self.merges.version))
        return merged[np.argsort(into[merged], kind="stable")]


def timeline(reader: Reader, jobs: Jobs | None = None) -> Timeline:
    """A run's timeline.

    Args:
        reader: the run.
        jobs: its jobs, if they are read already.

    Raises:
        UserError: the run is damaged.
    """
    exchanges = reader.rows("exchanges", "place")
    return Timeline(
        jobs=jobs_of(reader) if jobs is None else jobs,
        merges=merges_of(reader),
        fleet=fleet_of(reader),
        exchanges=[row["exchange"] for row in exchanges],
        at=[row["at"] for row in exchanges],
        timed=bool(reader.meta.get("timed")),
    )
