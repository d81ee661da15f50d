"""What a policy and a selector must not do, checked before anything is recorded of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, get_args

import numpy as np
from numpy.typing import ArrayLike

from edgefl.core.errors import RunError, nearest
from edgefl.core.event import ENDINGS, Kind
from edgefl.core.plan import Ints
from edgefl.core.user_code import defined_at
from edgefl.world.flights import Flights
from edgefl.world.needs import Correction
from edgefl.world.table import Rows

if TYPE_CHECKING:
    from edgefl.world.world import World


# In one round, besides ten for each client.
_MOST_MERGES = 1000


def _repeated(numbers: Ints) -> bool:
    """Whether a number comes twice."""
    return len(numbers) > 1 and len(np.unique(numbers)) < len(numbers)


class Checks:
    """The checks of one world; each raises a RunError."""

    def __init__(self, world: World, *, stale: bool) -> None:
        """``stale``: whether the policy says that it merges stale uploads."""
        self._world = world
        self._stale = stale

    def chosen(self, select: Callable[[int, Ints], ArrayLike], count: int, candidates: Ints) -> Ints:
        """A selector's answer: ``count`` different ones of the candidates, which are in order."""
        answer = select(count, candidates)
        chosen = np.atleast_1d(np.asarray(answer))
        valid = 0
        if chosen.ndim == 1 and np.issubdtype(chosen.dtype, np.integer):
            # Not NumPy's set functions, which would go through all candidates.
            places = np.searchsorted(candidates, chosen)
            among = candidates[np.minimum(places, len(candidates) - 1)] == chosen
            valid = len(np.unique(chosen[among]))
        if not chosen.size == valid == count:
            raise RunError(
                f"asked for {count} of {len(candidates)} clients, the selector returned {chosen.size}, "
                f"of which {valid} are different candidates",
                where=str(defined_at(select) or f"selector {self._world.plan.scenario.server.selector.name}"),
                hint=f"return {count} different clients of the candidates",
            )
        return chosen

    def free(self, exchange: str, clients: Ints) -> None:
        """Jobs are dispatched to clients that exist, were admitted, are available and have no other job."""
        plan = self._world.plan
        names = [prices.exchange for prices in plan.prices]
        if exchange not in names:
            raise self._wrong(f"the method has no exchange {exchange!r}", nearest(exchange, names))
        count, admitted = len(plan.clients), plan.clients.admitted
        unknown = clients[(clients < 0) | (clients >= count)]
        if len(unknown):
            raise self._wrong(
                f"client {unknown[0]} does not exist: there are {count}, from 0", "choose among world.clients"
            )
        refused = clients[~admitted[clients]]
        if len(refused):
            raise self._wrong(f"client {refused[0]} was refused", "choose among world.clients")
        if _repeated(clients):
            raise self._wrong(
                "a client is asked twice at once", "dispatch to a client once its last job has ended"
            )
        if len(self._world.candidates(clients)) < len(clients):
            self._not_free(clients)

    def _not_free(self, clients: Ints) -> None:
        free = self._world.candidates(clients)
        client = int(np.setdiff1d(clients, free)[0])
        rows = self._world.table.take(self._world.table.open())
        busy = rows[(rows["client"] == client) & (rows["due_s"] > self._world.env.now)]
        if len(busy):
            raise self._wrong(
                f"a job was dispatched to client {client}, which is still at its job {busy['job'][-1]}",
                hint="dispatch to clients that are free, and only while world.serving",
            )
        raise self._wrong(
            f"a job was dispatched to client {client}, which is not available",
            hint="dispatch to world.candidates(), or to those that world.invite(...) returns",
        )

    def ends_once(self, flights: Flights, ending: Kind) -> None:
        """None ended before or comes twice, and merged ones have arrived."""
        merging = ending is Kind.MERGED
        if _repeated(flights.jobs):
            numbers, counts = np.unique(flights.jobs, return_counts=True)
            raise self._twice(int(numbers[counts > 1][0]), ending, ending)
        same, endings = flights.column("job") == flights.jobs, flights.column("ending")
        over = np.flatnonzero(~same | (endings != 0))
        for place in over.tolist():
            first = ENDINGS[endings[place]] if same[place] else None
            if merging or first in {Kind.MERGED, Kind.LATE}:
                raise self._twice(int(flights.jobs[place]), first, ending)
        if merging:
            early = flights.jobs[~flights.arrived]
            if len(early):
                raise self._wrong(
                    f"job {early[0]} is merged before its upload has arrived",
                    "wait with world.ended(flights), and merge flights[flights.arrived]",
                )

    def order(self, exchange: str, flights: Flights) -> None:
        """A client's states are committed in order: its older jobs are merged or discarded first."""
        plan = self._world.plan
        if not plan.price(exchange).stateful:
            return
        newest = dict(zip(flights.clients.tolist(), flights.jobs.tolist(), strict=True))
        merged = set(flights.jobs.tolist())
        rows = self._world.table.take(self._world.table.open())
        stateful = np.array([prices.stateful for prices in plan.prices])
        wrote = rows[(rows["worked_s"] <= self._world.env.now) & stateful[rows["exchange"]]]
        for job, client in zip(wrote["job"].tolist(), wrote["client"].tolist(), strict=True):
            if job not in merged and job < newest.get(client, -1):
                raise self._wrong(
                    f"client {client}'s job {newest[client]} is merged before its job {job}, "
                    "which has arrived and wrote the state that the newer one started from",
                    hint="merge a client's jobs in order, or discard the older one",
                )

    def merging(self, correction: str, merges: int) -> None:
        """A merge's correction is known, and its round ends: nobody merges each client many times in one."""
        known = get_args(Correction)
        if correction not in known:
            raise self._wrong(f"there is no correction {correction!r}", nearest(correction, known))
        if merges >= _MOST_MERGES + 10 * len(self._world.plan.clients):
            what = f"a round does not end: it has {merges} merges"
            raise self._wrong(what, "end each round with: yield from world.end_round()")

    def staleness(self, rows: Rows) -> None:
        """Only a policy that says so merges what began at an older version."""
        version = self._world.version
        if self._stale:
            return
        stale = rows[rows["version"] < version]
        if len(stale):
            raise self._wrong(
                f"job {stale['job'][0]} began at version {stale['version'][0]} and is merged into version "
                f"{version + 1}, and the policy does not say that it merges stale uploads",
                hint="write STALE = True at the top of the policy's file, or discard the job as late",
            )

    def _twice(self, job: int, first: Kind | None, ending: Kind) -> RunError:
        what = f"first as {first}, then as {ending}" if first else f"it is over, and then {ending}"
        return self._wrong(f"job {job} ends twice: {what}", "merge or discard each flight once")

    def _wrong(self, what: str, hint: str) -> RunError:
        return RunError(what, where=f"policy {self._world.plan.scenario.server.policy.name}", hint=hint)
