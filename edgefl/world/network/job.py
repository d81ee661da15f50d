"""One job on its way through a network."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from edgefl.core.plan import Bools, Ints
from edgefl.core.price import Demand
from edgefl.world.network.pool import Flow
from edgefl.world.table import Rows

DOWN, UP, WORK = 0, 1, 2
"""Where a job is; its transfers are in the pool of this number."""

# A rounding error below a whole number of transfers, or of bytes, counts as it.
_ROUNDING, _BYTE = 1e-9, 1e-6


class _Way(NamedTuple):
    """A transfer of a job in one direction: its bytes, its handshakes and its link's rate."""

    size_bytes: int
    delay_s: float
    bps: float

    @property
    def alone_s(self) -> float:
        """How long it takes if nothing holds it up."""
        return self.delay_s + 8 * self.size_bytes / self.bps


class Job:
    """One job, and how far its present transfers are.

    Attributes:
        number, slot, client, cell: the job's, with its place in the world's table.
        given_up: whether its last upload is one too many that arrives with errors.
        finish_by: when its uploads are due; None if nobody asks.
        least_work_s: the least time of its work, from when it is received.
        crashes_at: see ``edgefl.world.timeline.DrawnFailures``.
        stage: DOWN, WORK or UP.
        step: counts what it does; what was to follow an earlier step does not happen.
        over: whether it arrived, was lost or was broken off.
        times: how many transfers the stage has.
        completed: how many of them are.
        flow: the one whose bytes flow now.
        left_bits: what was left of it when bytes last began or ceased to flow.
        holds_until_s: until when its handshakes last; None if they are over.
        left_delay_s: what is left of them while it is paused; None if nothing is.
        alone: whether nothing has held up the stage's transfers.
        is_paused: whether its client is away.
    """

    __slots__ = (
        "_began_s", "_busy_s", "_since_s", "_uploads", "_way", "_ways", "alone", "cell", "client",
        "completed", "crashes_at", "finish_by", "flow", "given_up", "holds_until_s", "is_paused",
        "least_work_s", "left_bits", "left_delay_s", "number", "over", "slot", "stage", "step", "times",
    )  # fmt: skip
    finish_by: float | None
    flow: Flow | None
    holds_until_s: float | None
    left_delay_s: float | None

    def __init__(self, number: int, slot: int, client: int, cell: int, ways: tuple[_Way, _Way]) -> None:
        self.number, self.slot, self.client, self.cell = number, slot, client, cell
        self._ways, self._uploads = ways, 1
        self.given_up, self.finish_by, self.least_work_s = False, None, 0.0
        self.crashes_at = math.inf
        self.step, self.over = 0, False
        self.enter(DOWN, 0.0)

    @classmethod
    def of_each(
        cls,
        slots: Ints,
        rows: Rows,
        demand: Demand,
        cells: Ints,
        given_up: Bools,
        finish_by: float | None,
    ) -> Iterator[Job]:
        """Jobs that begin.

        Args:
            slots: their places in the table.
            rows: as they are there.
            demand: what each asks for.
            cells: each client's cell, (clients,).
            given_up: see ``Direct.launch``.
            finish_by: likewise.
        """
        down = map(_Way, demand.down_bytes.tolist(), demand.down_delay_s.tolist(), demand.down_bps.tolist())
        up = map(_Way, demand.up_bytes.tolist(), demand.up_delay_s.tolist(), demand.up_bps.tolist())
        least_s = rows["amount_s"]
        if finish_by is not None:
            # It may be as short as one step.
            least_s = least_s / rows["steps"].clip(1)
        clients = rows["client"]
        who = zip(
            rows["job"].tolist(), slots.tolist(), clients.tolist(), cells[clients].tolist(), strict=True
        )
        how = zip(rows["sends"].tolist(), given_up.tolist(), least_s.tolist(), strict=True)
        for own, ways, (uploads, hopeless, least) in zip(who, zip(down, up, strict=True), how, strict=True):
            job = cls(*own, ways)
            job._uploads, job.given_up, job.least_work_s, job.finish_by = uploads, hopeless, least, finish_by
            yield job

    def enter(self, stage: int, now_s: float) -> None:
        """The stage's first transfer begins."""
        self.stage, self._way = stage, self._ways[stage]
        self.times = self._uploads if stage == UP else 1
        self.completed, self.flow, self.left_bits = 0, None, self.bits
        self.holds_until_s = self.left_delay_s = None
        self._began_s = self._since_s = now_s
        self._busy_s = 0.0
        self.alone, self.is_paused = True, False

    @property
    def bits(self) -> float:
        """Of one transfer."""
        return 8 * self._way.size_bytes

    @property
    def is_carried(self) -> bool:
        """Whether nothing is left of a transfer that was stopped, but for a rounding error."""
        return self.left_bits <= _ROUNDING * self.bits

    @property
    def delay_s(self) -> float:
        """Of one transfer, on a link that does not change."""
        return self._way.delay_s

    @property
    def cap_bps(self) -> float:
        """The rate of a link that does not change."""
        return self._way.bps

    def alone_until_s(self, transfers: int) -> float:
        """When so many transfers are complete if nothing holds them up."""
        return self._began_s + self._way.alone_s * transfers

    def pause(self, now_s: float) -> None:
        """Its client leaves."""
        self.left_delay_s = None if self.holds_until_s is None else self.holds_until_s - now_s
        self.holds_until_s = None
        self._busy_s = self.busy_until(now_s)
        self.alone, self.is_paused = False, True

    def resume(self, now_s: float) -> None:
        """Its client is back."""
        self._since_s, self.is_paused = now_s, False

    def busy_until(self, now_s: float) -> float:
        """For how long its client has been at the stage."""
        return self._busy_s if self.is_paused else self._busy_s + (now_s - self._since_s)

    def moved(self, busy_s: float, left_bits: float | None) -> int:
        """The bytes that the stage has moved.

        Args:
            busy_s: for how long its client has been at it.
            left_bits: of the transfer in progress; None if nothing has held up any.
        """
        size = self._way.size_bytes
        if left_bits is not None:
            return self.completed * size + min(size, int((self.bits - left_bits) / 8 + _BYTE))
        once_s = self._way.alone_s
        complete = int(busy_s / once_s + _ROUNDING) if once_s else 0
        flowed_s = busy_s - complete * once_s - self._way.delay_s
        return complete * size + (int(min(size, flowed_s * self._way.bps / 8)) if flowed_s > 0 else 0)
