"""From a cost to seconds and joules: the one replaceable pricing function.

Assumptions:

1. Compute: the steps run one after another, each as long as the device's own model says
   (``edgefl.core.devices``).
2. Transfer: the link's handshakes in round trips, then the bytes at the slower of the link's rate and what
   TCP reaches under its losses. An empty payload costs nothing, not even the round trip.
3. Energy, by phase. Idle: the idle power for as long as the job lasts. Compute: what the active power has
   above the idle one, while computing. Receive and transmit: the radio's base power while a transfer lasts
   and an energy for each bit that it carries (watts per Mbit/s are joules per Mbit; a round trip carries
   none). Tail: the radio's tail power after a transfer, until its tail time is over or the job's next
   transfer begins; after the last one in full. Waiting between jobs is not charged: the device is then not
   working for us.
4. A number that is unknown makes every total that needs it unknown (None), never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from edgefl.core.cost import Cost, Work
from edgefl.core.devices import Board, Bounds
from edgefl.core.devices.board import TRACED, WIDTHS
from edgefl.core.link import Link


class Draw(NamedTuple):
    """What a job draws, before its computing time is known; None where a number is unknown.

    Attributes:
        receive_j: above idle, while receiving.
        compute_w: above idle, while computing.
        transmit_j: above idle, while sending.
        idle_w: as long as the job lasts.
        tail_w: after each transfer.
        tail_s: for how long at most.
    """

    receive_j: float | None
    compute_w: float | None
    transmit_j: float | None
    idle_w: float | None
    tail_w: float | None
    tail_s: float

    def first_tail_j(self, received: bool, compute_s: float, sent: bool) -> float | None:  # noqa: FBT001 - facts
        """The tail after receiving, which ends when sending begins, if anything is sent."""
        if not received:
            return 0.0
        lasts_s = min(self.tail_s, compute_s) if sent else self.tail_s
        return None if self.tail_w is None else self.tail_w * lasts_s

    def last_tail_j(self, sent: bool) -> float | None:  # noqa: FBT001
        """The tail after sending."""
        if not sent:
            return 0.0
        return None if self.tail_w is None else self.tail_w * self.tail_s


class Energy(NamedTuple):
    """A job's joules by phase; None where a number is unknown. See the assumptions above."""

    receive_j: float | None
    compute_j: float | None
    transmit_j: float | None
    tail_j: float | None
    idle_j: float | None

    @property
    def joules(self) -> float | None:
        """All phases; None where one is unknown."""
        return total(*self)


def total(*joules: float | None) -> float | None:
    """The sum; None where one is unknown."""
    known = [one for one in joules if one is not None]
    return sum(known) if len(known) == len(joules) else None


@dataclass(frozen=True)
class Price:
    """What a job takes on one device behind one link.

    Attributes:
        down_s: receiving the payload.
        bounds: the work's time, by what bounds it.
        up_s: sending the result.
        draw: what the job draws.
        energy: the same in joules, at the device's own speed.
    """

    down_s: float
    bounds: Bounds
    up_s: float
    draw: Draw
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
    """Prices work on one device in one number type; work seen before is not timed again.

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
        # By identity; the work is held, so that no other takes its number.
        self._known: dict[int, tuple[Work, Bounds]] = {}

    def peak_bytes(self, cost: Cost) -> int:
        """The memory at the worst moment in this number type."""
        return peak_bytes(cost, self.dtype)

    def time(self, cost: Cost) -> Bounds:
        """All steps, one after another.

        Raises:
            UserError: a measured device was not measured on this work.
        """
        found = Bounds()
        for work, count in cost.steps:
            known = self._known.get(id(work))
            if known is None:
                known = self._known[id(work)] = work, self._clock.time(work)
            found = found.plus(known[1], count)
        return found

    def price(self, cost: Cost, link: Link) -> Price:
        """Seconds and joules of a job, by phase.

        Raises:
            UserError: as ``time`` does.
        """
        down_s, bounds, up_s = (
            link.receiving_seconds(cost.down_bytes),
            self.time(cost),
            link.sending_seconds(cost.up_bytes),
        )
        draw = self._draw(cost, link, down_s, up_s)
        received, sent = cost.down_bytes > 0, cost.up_bytes > 0
        energy = Energy(
            draw.receive_j,
            times(draw.compute_w, bounds.seconds),
            draw.transmit_j,
            total(draw.first_tail_j(received, bounds.seconds, sent), draw.last_tail_j(sent)),
            times(draw.idle_w, down_s + bounds.seconds + up_s),
        )
        return Price(down_s, bounds, up_s, draw, energy)

    def _draw(self, cost: Cost, link: Link, down_s: float, up_s: float) -> Draw:
        power, radio = self.device.power, link.radio.value
        idle_w, active_w = power.idle.value, power.active.value
        receive_j = transmit_j = None
        if radio is not None:
            receive_j = radio.base * down_s + radio.down_w_per_mbps * 8 * cost.down_bytes / 1e6
            transmit_j = radio.base * up_s + radio.up_w_per_mbps * 8 * cost.up_bytes / 1e6
        return Draw(
            receive_j if cost.down_bytes else 0.0,
            None if idle_w is None or active_w is None else max(0.0, active_w - idle_w),
            transmit_j if cost.up_bytes else 0.0,
            idle_w,
            None if radio is None else radio.tail,
            0.0 if radio is None else radio.tail_time,
        )


def times(rate: float | None, seconds: float) -> float | None:
    """The product; nothing lasts no time, whatever its rate."""
    if not seconds:
        return 0.0
    return None if rate is None else rate * seconds
