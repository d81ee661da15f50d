"""Prices a cost in seconds and joules.

Assumptions:

1. Compute: the steps run one after another, each timed by the device model
   (``edgefl.core.devices``).
2. Transfer: the link's handshakes in round trips, then the bytes at the slower of the link's rate and what
   TCP reaches under its losses. An empty payload costs nothing, not even a round trip.
3. Energy, by stage. Idle: the idle power throughout the job. Compute: the active power above idle, while
   computing. Receive and transmit: the radio's base power during a transfer, and an energy per bit carried
   (watts per Mbit/s are joules per Mbit; a round trip carries none). Tail: the radio's tail power after a
   transfer, until its tail time is over or the job's next transfer begins; after the last transfer in full.
   Time between jobs is not charged.
4. A number that is unknown makes every total that needs it unknown (None), never zero.

The world determines durations, which may depend on other clients. Quantities (``Demand``) are known
beforehand; ``PowerDraw.charge`` turns what happened into joules, for ``edgefl profile`` and the world alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from edgefl.core.cost import Cost, Work
from edgefl.core.devices import Board, Bounds
from edgefl.core.devices.board import TRACED, WIDTHS
from edgefl.core.event import Charge, total
from edgefl.core.link import Link


class Stage(StrEnum):
    """The three stages of a job."""

    RECEIVE = "receive"
    WORK = "work"
    TRANSMIT = "transmit"


class PowerDraw(NamedTuple):
    """The power of a device and its radio; None for an unknown number.

    Attributes:
        idle_w: throughout the job.
        compute_w: above idle, while computing.
        radio_w: above idle, during a transfer.
        receive_j_per_mbit, transmit_j_per_mbit: energy of a transfer per megabit.
        tail_w: after a transfer.
        tail_s: the longest tail.
    """

    idle_w: float | None
    compute_w: float | None
    radio_w: float | None
    receive_j_per_mbit: float | None
    transmit_j_per_mbit: float | None
    tail_w: float | None
    tail_s: float

    @classmethod
    def of(cls, device: Board, link: Link) -> PowerDraw:
        """The power draw of a device on a link."""
        idle_w, active_w, radio = device.power.idle.value, device.power.active.value, link.radio.value
        above_w = None if idle_w is None or active_w is None else max(0.0, active_w - idle_w)
        if radio is None:
            return cls(idle_w, above_w, None, None, None, None, 0.0)
        per_mbit = radio.down_w_per_mbps, radio.up_w_per_mbps
        return cls(idle_w, above_w, radio.base, *per_mbit, radio.tail, radio.tail_time)

    def charge(
        self,
        stage: Stage,
        seconds: float,
        *,
        size_bytes: int = 0,
        flops: int = 0,
        tail_s: float | None = None,
    ) -> Charge:
        """The cost of a stage, or of the part of it that happened.

        Args:
            stage: which.
            seconds: how long it lasted.
            size_bytes: bytes carried.
            flops: operations done.
            tail_s: seconds of the radio's tail charged with it; None without a tail.
        """
        tail_j = 0.0 if tail_s is None else None if self.tail_w is None else self.tail_w * tail_s
        idle_j = _times(self.idle_w, seconds)
        if stage is Stage.WORK:
            return Charge(seconds, 0, 0, flops, _times(self.compute_w, seconds), tail_j, idle_j)
        if stage is Stage.RECEIVE:
            active_j = self._carried(seconds, size_bytes, self.receive_j_per_mbit)
            return Charge(seconds, size_bytes, 0, 0, active_j, tail_j, idle_j)
        active_j = self._carried(seconds, size_bytes, self.transmit_j_per_mbit)
        return Charge(seconds, 0, size_bytes, 0, active_j, tail_j, idle_j)

    def _carried(self, seconds: float, size_bytes: int, per_mbit: float | None) -> float | None:
        if not seconds and not size_bytes:
            return 0.0
        if self.radio_w is None or per_mbit is None:
            return None
        return self.radio_w * seconds + per_mbit * 8 * size_bytes / 1e6


class Demand(NamedTuple):
    """The quantities of a client's job, before any duration is known.

    Attributes:
        down_bytes, up_bytes: payload sizes.
        down_delay_s, up_delay_s: handshakes before a transfer's first byte; 0 if nothing is sent.
        down_bps, up_bps: the client link's rates.
        work_s: computing at the device's full speed.
        flops: operations.
        steps: optimizer steps.
        draw: the power.
    """

    down_bytes: int
    up_bytes: int
    down_delay_s: float
    up_delay_s: float
    down_bps: float
    up_bps: float
    work_s: float
    flops: int
    steps: int
    draw: PowerDraw

    @classmethod
    def of(cls, cost: Cost, work_s: float, draw: PowerDraw, link: Link, steps: int = 0) -> Demand:
        """The demand of a cost on a device that takes ``work_s`` for it, on a link."""
        return cls(
            cost.down_bytes,
            cost.up_bytes,
            link.delay_s if cost.down_bytes else 0.0,
            link.delay_s if cost.up_bytes else 0.0,
            link.down_bps,
            link.up_bps,
            work_s,
            cost.work.flops,
            steps,
            draw,
        )

    @property
    def down_s(self) -> float:
        """Seconds of the download on an unshared link."""
        return self.down_delay_s + 8 * self.down_bytes / self.down_bps

    @property
    def up_s(self) -> float:
        """Seconds of the upload on an unshared link."""
        return self.up_delay_s + 8 * self.up_bytes / self.up_bps

    def received(self, seconds: float) -> Charge:
        """The charge of the whole download."""
        return self.draw.charge(Stage.RECEIVE, seconds, size_bytes=self.down_bytes)

    def worked(self, seconds: float) -> Charge:
        """The charge of all work, and of the radio's tail after the download until the upload begins."""
        tail_s = None
        if self.down_bytes:
            tail_s = min(self.draw.tail_s, seconds) if self.up_bytes else self.draw.tail_s
        return self.draw.charge(Stage.WORK, seconds, flops=self.flops, tail_s=tail_s)

    def transmitted(self, seconds: float) -> Charge:
        """The charge of the whole upload, and of the radio's tail after it."""
        tail_s = self.draw.tail_s if self.up_bytes else None
        return self.draw.charge(Stage.TRANSMIT, seconds, size_bytes=self.up_bytes, tail_s=tail_s)

    def broken_off(self, stage: Stage, elapsed_s: float, duration_s: float, work_s: float) -> Charge:
        """The charge of a stage that was broken off: the bytes moved so far, or the share of work done.

        Args:
            stage: which.
            elapsed_s: how long it lasted.
            duration_s: how long it would have lasted.
            work_s: how long the work takes.
        """
        draw = self.draw
        if stage is Stage.WORK:
            share = min(1.0, elapsed_s / duration_s) if duration_s else 1.0
            tail_s = draw.tail_s if self.down_bytes else None
            return draw.charge(stage, elapsed_s, flops=int(self.flops * share), tail_s=tail_s)
        down = stage is Stage.RECEIVE
        size_bytes = self.down_bytes if down else self.up_bytes
        delay_s, bps = (self.down_delay_s, self.down_bps) if down else (self.up_delay_s, self.up_bps)
        moved = min(size_bytes, (elapsed_s - delay_s) * bps / 8) if elapsed_s > delay_s else 0.0
        tail_s = draw.tail_s if size_bytes and elapsed_s else None
        if not (down or elapsed_s) and self.down_bytes and self.up_bytes:
            # The upload, which would have ended the tail after the download, never began.
            tail_s = max(0.0, draw.tail_s - work_s)
        return draw.charge(stage, elapsed_s, size_bytes=int(moved), tail_s=tail_s)


class Energy(NamedTuple):
    """A job's joules by stage and kind; None if a number is unknown. See the assumptions above."""

    receive_j: float | None
    compute_j: float | None
    transmit_j: float | None
    tail_j: float | None
    idle_j: float | None

    @property
    def joules(self) -> float | None:
        """The sum; None if a part is unknown."""
        return total(*self)


@dataclass(frozen=True)
class Price:
    """A job's times and energy on one device at full speed, on an unshared link.

    Attributes:
        down_s: receiving the payload.
        bounds: the work's time, by what bounds it.
        up_s: sending the result.
        demand: the quantities behind it.
        energy: the same in joules.
    """

    down_s: float
    bounds: Bounds
    up_s: float
    demand: Demand
    energy: Energy

    @property
    def compute_s(self) -> float:
        """The work."""
        return self.bounds.seconds

    @property
    def seconds(self) -> float:
        """All phases, one after another."""
        return self.down_s + self.compute_s + self.up_s


def peak_bytes(cost: Cost, dtype: str) -> int:
    """The memory at the worst moment in a number type."""
    return round(cost.peak_bytes * WIDTHS[dtype] / WIDTHS[TRACED])


class Pricer:
    """Prices work on one device in one number type; caches the times of work.

    Args:
        name: the device's name, for messages.
        device: the device.
        dtype: the number type that it computes in.

    Raises:
        UserError: a number that timing needs is unknown. Unknown power makes energies unknown, unknown
            memory refuses nobody.
    """

    def __init__(self, name: str, device: Board, dtype: str = TRACED) -> None:
        self.device = device
        self.dtype = dtype
        self._clock = device.clock(name, dtype)
        # By identity; holding the work keeps its id from being reused.
        self._known: dict[int, tuple[Work, Bounds]] = {}

    def peak_bytes(self, cost: Cost) -> int:
        """The memory at the worst moment in this number type."""
        return peak_bytes(cost, self.dtype)

    def time(self, cost: Cost) -> Bounds:
        """All steps, one after another.

        Raises:
            UserError: a measured device was not measured on this work.
        """
        bounds = Bounds()
        for work, count in cost.steps:
            known = self._known.get(id(work))
            if known is None:
                known = self._known[id(work)] = work, self._clock.time(work)
            bounds = bounds.plus(known[1], count)
        return bounds

    def price(self, cost: Cost, link: Link, steps: int = 0) -> Price:
        """Seconds and joules of a job, by stage.

        Raises:
            UserError: as ``time`` does.
        """
        bounds = self.time(cost)
        demand = Demand.of(cost, bounds.seconds, PowerDraw.of(self.device, link), link, steps)
        received = demand.received(demand.down_s)
        worked = demand.worked(bounds.seconds)
        sent = demand.transmitted(demand.up_s)
        energy = Energy(
            received.active_j,
            worked.active_j,
            sent.active_j,
            total(worked.tail_j, sent.tail_j),
            total(received.idle_j, worked.idle_j, sent.idle_j),
        )
        return Price(demand.down_s, bounds, demand.up_s, demand, energy)


def _times(rate: float | None, seconds: float) -> float | None:
    """The product; 0 for no time, even at an unknown rate."""
    if not seconds:
        return 0.0
    return None if rate is None else rate * seconds
