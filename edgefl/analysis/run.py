"""One run in hand: its rows as columns, each read once, when somebody asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgefl.core.corners import Interval
from edgefl.core.event import joules
from edgefl.core.repricing import Jobs, Repriced, Taken, at_corners, is_unbounded
from edgefl.store import Reader, read_prices

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class JobColumns:
    """Jobs that ended, (n,): a column for each name of ``core.event.JOB``, as an attribute or by the name."""

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Takes all columns."""
        vars(self).update(columns)

    def __getitem__(self, which: str | Ints | Bools) -> Any:
        """A column, or some of the jobs."""
        if isinstance(which, str):
            return vars(self)[which]
        return JobColumns({name: column[which] for name, column in vars(self).items()})

    def __len__(self) -> int:
        return len(self["job"])


@dataclass(frozen=True, eq=False)
class Merges:
    """A run's merges, columns (n,) by ascending version: which one it made, in which exchange, by place.

    The round is -1 before the first, the number of rounds after the last; ``server_s`` is how long the server
    worked on it until ``t_s``.
    """

    version: Ints
    exchange: Ints
    round: Ints
    t_s: Floats
    server_s: Floats

    def __len__(self) -> int:
        return len(self.version)


class Clients(NamedTuple):
    """A run's clients, columns (clients,); device and kind are places in ``device_names`` and ``kinds``."""

    device: Ints
    kind: Ints
    slowdown: Floats
    admitted: Bools


class Bounds(NamedTuple):
    """A run whose devices or links have intervals, at both of their corners; see ``edgefl.core.repricing``.

    Times are known there where a run is blind to them (``edgefl.world.blind``). Elsewhere they stand as they
    are; where a device's launch overhead is unknown, as lower bounds: unbounded.
    """

    cheap: Repriced
    costly: Repriced
    unbounded: bool

    def joules(self, t_s: float, version: int | None = None) -> Interval:
        """The bounds of the energy of all clients until a virtual time, as of ``Repriced``."""
        return Interval.of(self.cheap.joules(t_s, version), self.costly.joules(t_s, version))

    def by_job(self, t_s: float) -> tuple[Iterator[tuple[slice, Taken]], Iterator[tuple[slice, Taken]]]:
        """What each job took in a run that ended then, some of them at a time, at both corners."""
        return self.cheap.by_job(t_s), self.costly.by_job(t_s)

    def seconds(self, t_s: float, version: int | None = None) -> Interval | None:
        """The bounds of a virtual time; None for none."""
        low, high = self.cheap.seconds(version), self.costly.seconds(version)
        if low is None or high is None:
            return Interval(t_s, None) if self.unbounded else None
        return Interval.of(low, high)


@dataclass(frozen=True, eq=False)
class Run:
    """A run that is open for reading; every attribute raises UserError if it is damaged."""

    reader: Reader

    @cached_property
    def jobs(self) -> Any:
        """All jobs that ended, by number: ``JobColumns``."""
        return JobColumns(self.reader.jobs())

    @cached_property
    def until_s(self) -> Floats:
        """When each job's upload had arrived, or it ended without: its client was free again, (n,)."""
        return self.over_s("arrived_s")

    def over_s(self, station: str, places: Ints | slice = slice(None)) -> Floats:
        """When jobs, all (n,) or some, had passed a station such as "worked_s", or had ended before it."""
        at_s = self.jobs[station][places]
        found: Floats = np.where(np.isnan(at_s), self.jobs.ended_s[places], at_s)
        return found

    @cached_property
    def joules(self) -> Floats:
        """Each job's energy, with the tail that it left open at the run's end, NaN for unknown, (n,)."""
        found = joules(self.jobs)
        np.add.at(found, np.searchsorted(self.jobs.job, self.tails["job"]), self.tails["joules"])
        return found

    @cached_property
    def tails(self) -> dict[str, NDArray[Any]]:
        """The radios' tails that were open in the end: ``client``, ``job``, ``t_s`` and ``joules``."""
        kinds: dict[str, type[np.generic]] = {"client": np.int64, "job": np.int64}
        sql = "SELECT client, job, t_s, joules FROM settled_tails"
        return self.reader.arrays(sql, **kinds, t_s=np.float64, joules=np.float64)

    @cached_property
    def known(self) -> Bools:
        """Of each client, whether the energies of all its jobs are known, (clients,)."""
        found: Bools = np.ones(len(self.clients.kind), dtype=bool)
        found[self.jobs.client[np.isnan(self.joules)]] = False
        return found

    @cached_property
    def took_part(self) -> Bools:
        """Which clients had a job, (clients,)."""
        return np.bincount(self.jobs.client, minlength=len(self.clients.kind)) > 0

    @cached_property
    def merges(self) -> Merges:
        """All merges."""
        sql = (
            "SELECT version, place, round, t_s, IFNULL(server_seconds, 0.0) AS server_s "
            "FROM merges CROSS JOIN exchanges USING (exchange) ORDER BY version"
        )
        ints: dict[str, type[np.generic]] = dict.fromkeys(("version", "place", "round"), np.int64)
        return Merges(*self.reader.arrays(sql, **ints, t_s=np.float64, server_s=np.float64).values())

    @cached_property
    def exchanges(self) -> list[dict[str, Any]]:
        """The rows of its exchanges, by place."""
        return self.reader.rows("exchanges", "place")

    @cached_property
    def names(self) -> list[str]:
        """The names of its exchanges, by place."""
        return [row["exchange"] for row in self.exchanges]

    @cached_property
    def at(self) -> list[str]:
        """When each exchange happens, by place: "start", "round" or "end"."""
        return [row["at"] for row in self.exchanges]

    @property
    def timed(self) -> bool:
        """Whether the policy's rounds last a fixed time."""
        return bool(self.reader.meta.get("timed"))

    @cached_property
    def in_rounds(self) -> Bools:
        """Which exchanges belong to the rounds, by place."""
        return np.array([at == "round" for at in self.at], dtype=bool)

    @cached_property
    def kinds(self) -> list[dict[str, Any]]:
        """The rows of its kinds of clients, by number."""
        return self.reader.rows("kinds", "kind")

    @cached_property
    def device_names(self) -> Sequence[str]:
        """The devices, sorted."""
        return sorted({row["device"] for row in self.kinds})

    @cached_property
    def clients(self) -> Clients:
        """All clients."""
        kinds: dict[str, type[np.generic]] = {
            "kind": np.int64, "slowdown": np.float64, "admitted": np.bool_,
        }  # fmt: skip
        columns = self.reader.arrays("SELECT kind, slowdown, admitted FROM fleet ORDER BY client", **kinds)
        device = np.array([self.device_names.index(row["device"]) for row in self.kinds], dtype=np.int64)
        return Clients(device[columns["kind"]], **columns)

    def merged_in_rounds(self) -> Ints:
        """The places of the jobs that were merged in rounds, by ascending version."""
        # A merge is missing where its table was damaged.
        into = self.jobs.into_version
        merged = np.flatnonzero(self.in_rounds[self.jobs.exchange] & np.isin(into, self.merges.version))
        found: Ints = merged[np.argsort(into[merged], kind="stable")]
        return found

    @cached_property
    def repriced(self) -> Jobs:
        """The jobs, to be priced anew."""
        return Jobs.of_rows(self.jobs, self.clients.kind)

    @cached_property
    def bounds(self) -> Bounds | None:
        """The bounds of its times and energies; None where no number of devices and links is an interval."""
        (found,) = self.reader.query("SELECT EXISTS (SELECT 1 FROM corner_prices) AS found")
        if not found["found"]:
            return None
        prices = read_prices(self.reader)
        ends = at_corners(self.repriced, prices, blind=self.is_blind, shared=self.is_shared)
        return Bounds(*ends, any(map(is_unbounded, prices)))

    @property
    def is_blind(self) -> bool:
        """Whether who did what does not depend on times; see ``world.blind``."""
        return bool(self.reader.meta.get("blind"))

    @property
    def is_shared(self) -> bool:
        """Whether links are shared or change."""
        return bool(self.reader.meta.get("shared"))

    def between_s(self, t_s: float, version: int | None = None) -> Interval | None:
        """The bounds of a virtual time, of which ``version`` is the server's; None for none."""
        return self.bounds.seconds(t_s, version) if self.bounds else None

    def between_j(self, t_s: float, version: int | None = None) -> Interval | None:
        """The bounds of all clients' energy until a virtual time; None for none."""
        return self.bounds.joules(t_s, version) if self.bounds else None
