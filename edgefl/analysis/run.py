"""One run in hand: its rows as columns, each read once, when somebody asks for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from edgefl.analysis.repricing import Columns, Repriced, is_unbounded, priceable
from edgefl.core.arrays import Bools, Floats, Ints
from edgefl.core.corners import Interval
from edgefl.core.event import joules
from edgefl.core.plan import Prices
from edgefl.core.price import Demand
from edgefl.store.plans import read_prices
from edgefl.store.reader import Reader


@dataclass(frozen=True, eq=False)
class Run:
    """A run that is open for reading; every attribute raises UserError if it is damaged."""

    reader: Reader

    @cached_property
    def jobs(self) -> Columns:
        """All jobs that ended, by number: those of ``core.event.JOB``."""
        return Columns(self.reader.jobs())

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
        np.add.at(found, np.searchsorted(self.jobs.job, self.tails.job), self.tails.joules)
        return found

    @cached_property
    def tails(self) -> Columns:
        """The radios' tails that were open in the end: ``client``, ``job``, ``t_s`` and ``joules``."""
        sql = "SELECT client, job, t_s, joules FROM settled_tails"
        kinds: dict[str, type[np.generic]] = {"client": np.int64, "job": np.int64}
        return Columns(self.reader.arrays(sql, **kinds, t_s=np.float64, joules=np.float64))

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
    def merges(self) -> Columns:
        """All merges, by ascending ``version``: in which ``exchange``, by place, and when, ``t_s``.

        The ``round`` is -1 before the first, the number of rounds after the last; ``server_s`` is how long
        the server worked on it until then.
        """
        sql = (
            "SELECT version, place, round, t_s, IFNULL(server_seconds, 0.0) AS server_s "
            "FROM merges CROSS JOIN exchanges USING (exchange) ORDER BY version"
        )
        ints: dict[str, type[np.generic]] = dict.fromkeys(("version", "exchange", "round"), np.int64)
        return Columns(self.reader.arrays(sql, **ints, t_s=np.float64, server_s=np.float64))

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
    def clients(self) -> Columns:
        """All clients: ``device`` and ``kind``, places in these, ``slowdown`` and ``admitted``."""
        kinds: dict[str, type[np.generic]] = {"kind": np.int64, "slowdown": np.float64}
        sql = "SELECT kind, slowdown, admitted FROM fleet ORDER BY client"
        columns = self.reader.arrays(sql, **kinds, admitted=np.bool_)
        device = np.array([self.device_names.index(row["device"]) for row in self.kinds], dtype=np.int64)
        return Columns({"device": device[columns["kind"]], **columns})

    def merged_in_rounds(self) -> Ints:
        """The places of the jobs that were merged in rounds, by ascending version."""
        # A merge is missing where its table was damaged.
        into = self.jobs.into_version
        merged = np.flatnonzero(self.in_rounds[self.jobs.exchange] & np.isin(into, self.merges.version))
        found: Ints = merged[np.argsort(into[merged], kind="stable")]
        return found

    @cached_property
    def repriced(self) -> Columns:
        """The jobs, to be priced anew."""
        return priceable(self.jobs, self.clients.kind)

    @cached_property
    def prices(self) -> tuple[Prices, ...]:
        """What the work of each kind of client is priced at, by exchange."""
        return read_prices(self.reader)

    @cached_property
    def corners(self) -> tuple[Repriced, ...]:
        """Its jobs at the cheap and at the costly corner of what its devices' and links' numbers may be.

        There are none where no number is an interval.
        """
        if not any(one.corners for one in self.prices):
            return ()
        corners = (one.corners or (one.demand, one.demand) for one in self.prices)
        return tuple(map(self.repriced_at, zip(*corners, strict=True)))

    @cached_property
    def repriced_at(self) -> Callable[[Sequence[Demand]], Repriced]:
        """Its jobs at other prices, by exchange."""
        own = [one.demand for one in self.prices]
        return partial(Repriced, self.repriced, own, blind=self.is_blind, shared=self.is_shared)

    @property
    def is_blind(self) -> bool:
        """Whether who did what does not depend on times; see ``world.blind``."""
        return bool(self.reader.meta.get("blind"))

    @property
    def is_shared(self) -> bool:
        """Whether links are shared or change."""
        return bool(self.reader.meta.get("shared"))

    def between_s(self, t_s: float, version: int | None = None) -> Interval | None:
        """The bounds of a virtual time, of which ``version`` is the server's; None for none.

        Times are known at corners where a run is blind to them. Elsewhere they stand as they are; where a
        device's launch overhead is unknown, as lower bounds.
        """
        ends = [end.seconds(version) for end in self.corners]
        if None in ends:
            return Interval(t_s, None) if any(map(is_unbounded, self.prices)) else None
        return Interval.of(*ends) if ends else None

    def between_j(self, t_s: float, version: int | None = None) -> Interval | None:
        """The bounds of all clients' energy until a virtual time, as of ``Repriced``; None for none."""
        return Interval.of(*(end.joules(t_s, version) for end in self.corners)) if self.corners else None
