"""What a policy and a selector must not do, checked before anything is recorded of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from edgefl.core.arrays import Ints
from edgefl.core.errors import RunError, nearest
from edgefl.core.event import ENDINGS, Kind
from edgefl.core.user_code import defined_at
from edgefl.world.job import Job
from edgefl.world.needs import Correction
from edgefl.world.presence import Candidates

if TYPE_CHECKING:
    from edgefl.world.world import World

# In one round, besides ten for each client.
_MOST_MERGES = 1000


class Checks:
    """The checks of one world; each raises a RunError."""

    def __init__(self, world: World, *, stale: bool) -> None:
        """``stale``: whether the policy says that it merges stale uploads."""
        self._world = world
        self._stale = stale

    def chosen(self, select: Callable[[int, Any], ArrayLike], count: int, candidates: Candidates) -> Ints:
        """A selector's answer: ``count`` different ones of the candidates, which are in order."""
        answer = select(count, candidates.array())
        chosen = np.atleast_1d(np.asarray(answer))
        valid = 0
        if chosen.ndim == 1 and np.issubdtype(chosen.dtype, np.integer):
            valid = sum(candidates.has(client) for client in set(chosen.tolist()))
        if not chosen.size == valid == count:
            raise RunError(
                f"asked for {count} of {len(candidates)} clients, the selector returned {chosen.size}, "
                f"of which {valid} are different candidates",
                where=str(defined_at(select) or f"selector {self._world.plan.scenario.server.selector.name}"),
                hint=f"return {count} different clients of the candidates",
            )
        return chosen

    def free(self, exchange: str, clients: Sequence[int]) -> None:
        """Jobs are dispatched to clients that exist, were admitted, are available and have no other job."""
        plan, candidates, asked = self._world.plan, self._world.free(), set[int]()
        names = [prices.exchange for prices in plan.prices]
        if exchange not in names:
            raise self._wrong(f"the method has no exchange {exchange!r}", nearest(exchange, names))
        for client in clients:
            if not 0 <= client < len(plan.clients):
                raise self._wrong(
                    f"client {client} does not exist: there are {len(plan.clients)}, from 0",
                    "choose among world.clients",
                )
            if not plan.clients.admitted[client]:
                raise self._wrong(f"client {client} was refused", "choose among world.clients")
            if client in asked:
                raise self._wrong(
                    "a client is asked twice at once", "dispatch to a client once its last job has ended"
                )
            if not candidates.has(client):
                self._not_free(client)
            asked.add(client)

    def _not_free(self, client: int) -> None:
        busy = [job.job for job in self._world.open.values() if job.client == client and job.in_flight]
        if busy:
            raise self._wrong(
                f"a job was dispatched to client {client}, which is still at its job {busy[-1]}",
                hint="dispatch to clients that are free, and only while world.serving",
            )
        raise self._wrong(
            f"a job was dispatched to client {client}, which is not available",
            hint="dispatch to world.candidates(), or to those that world.invite(...) returns",
        )

    def ends_once(self, jobs: Sequence[Job], ending: Kind) -> None:
        """None ended before or comes twice, and merged ones have arrived."""
        merging = ending is Kind.MERGED
        seen: set[int] = set()
        for job in jobs:
            first = ending if job.job in seen else ENDINGS[job.ending]
            if first is not None and (merging or job.job in seen or first in {Kind.MERGED, Kind.LATE}):
                raise self._wrong(
                    f"job {job.job} ends twice: first as {first}, then as {ending}",
                    "merge or discard each job once",
                )
            seen.add(job.job)
        early = [job.job for job in jobs if merging and not job.arrived]
        if early:
            raise self._wrong(
                f"job {early[0]} is merged before its upload has arrived",
                "wait with world.ended(jobs), and merge [job for job in jobs if job.arrived]",
            )

    def merge(self, exchange: str, jobs: Sequence[Job], correction: str, merges: int) -> None:
        """What is merged next, in the order of clients, after so many merges in the round.

        Only a policy that says so merges what began at an older version, and each round ends: nobody merges
        each client many times in one.
        """
        self.ends_once(jobs, Kind.MERGED)
        self._in_order(exchange, jobs)
        version = self._world.version
        for job in jobs:
            if job.version < version and not self._stale:
                raise self._wrong(
                    f"job {job.job} began at version {job.version} and is merged into version {version + 1}, "
                    "and the policy does not say that it merges stale uploads",
                    hint="have the policy's merges_stale return True, or discard the job as late",
                )
        known = get_args(Correction)
        if correction not in known:
            raise self._wrong(f"there is no correction {correction!r}", nearest(correction, known))
        if merges >= _MOST_MERGES + 10 * len(self._world.plan.clients):
            what = f"a round does not end: it has {merges} merges"
            raise self._wrong(what, "end each round with: yield from world.end_round()")

    def _in_order(self, exchange: str, jobs: Sequence[Job]) -> None:
        """A client's states are committed in order: its older jobs are merged or discarded first."""
        if not self._world.plan.price(exchange).stateful:
            return
        merged = {job.job for job in jobs}
        for job in jobs:
            for older in self._world.older(job):
                if older.job not in merged:
                    raise self._wrong(
                        f"client {job.client}'s job {job.job} is merged before its job {older.job}, "
                        "which has arrived and wrote the state that the newer one started from",
                        hint="merge a client's jobs in order, or discard the older one",
                    )

    def _wrong(self, what: str, hint: str) -> RunError:
        return RunError(what, where=f"policy {self._world.plan.scenario.server.policy.name}", hint=hint)
