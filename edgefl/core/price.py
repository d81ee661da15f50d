"""What a cost is in seconds and joules, on these assumptions; ``edgefl.planning.repricing`` reckons it.

1. Compute: the steps run one after another, each timed by the device model (``edgefl.core.devices``).
2. Transfer: the link's handshakes in round trips, then the bytes at the slower of the link's rate and what
   TCP reaches under its losses. An empty payload costs nothing, not even a round trip.
3. Energy, by stage. Idle: the idle power throughout the job. Compute: what the device draws above idle while
   computing: active power while arithmetic or memory bounds the work, the power of one busy core while
   overheads do, and so on average their mean over the work's time. Receive and transmit: the radio's base
   power during a transfer, and an energy per bit carried (watts per Mbit/s are joules per Mbit; a round trip
   carries none). Tail: the radio's tail power after a transfer, until its tail time is over or its client's
   next transfer begins; for a job that is priced alone, after its last transfer in full. Other time between
   jobs is not charged; what a client that waits for the server draws meanwhile is known apart.
4. A number that is unknown makes every total that needs it unknown (None), never zero.
5. Where a number of the device or the link is an interval, or an unknown power, the job is also priced at
   their two corners (``edgefl.core.corners``), which bound its price. Where kernels are counted, a launch
   overhead of 0 without an upper bound is a lower bound: nothing bounds the work's time from above.

The world determines durations, which may depend on other clients; quantities (``Demand``) are known
beforehand. ``Demand.charges`` turns what happened into joules, of numbers or arrays of them.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np

from edgefl.core.corners import Interval
from edgefl.core.cost import Cost
from edgefl.core.devices import TRACED, WIDTHS, Bounds, Power
from edgefl.core.link import Link
from edgefl.core.sourced import Sourced

# Numbers or arrays; NaN is an unknown number.
Reals: TypeAlias = Any
Counts: TypeAlias = Annotated[Any, np.int64]
Stages: TypeAlias = tuple[Reals, Reals, Reals]
"""Something of receiving, working and sending."""

ENERGIES = ("receive_j", "compute_j", "transmit_j", "tail_j", "idle_j")
"""A job's joules: above idle by stage, of the radio's tails, and at idle power."""


def _above_idle(power: Power, bounds: Bounds) -> float:
    """The mean power above idle over some work; NaN if a number that it needs is unknown."""
    idle_w, active_w, overhead_w = map(_watts, (power.idle, power.active, power.overhead_bound))
    # Each is at least the idle power, also where an interval's end puts that higher.
    full_w, one_core_w = np.maximum(0.0, (active_w - idle_w, overhead_w - idle_w))
    share = bounds.launch_s / bounds.seconds if bounds.seconds else 0.0
    return float(full_w + times(one_core_w - full_w, share))


def _watts(number: Sourced[float]) -> float:
    return math.nan if number.value is None else number.value


def times(rate: Reals, amount: Reals) -> Reals:
    """The product; 0 of nothing, even at an unknown rate."""
    return np.where(np.asarray(amount) != 0, rate * amount, 0.0)


class Demand(NamedTuple):
    """What a client's job asks for, before any duration is known; of many jobs, if its fields are arrays.

    Attributes:
        down_delay_s, up_delay_s: handshakes before a transfer's first byte; 0 if nothing is sent.
        work_s: computing at the device's full speed.
        idle_w: power throughout the job.
        compute_w: above idle, while computing; the mean over the work.
        radio_w: above idle, during a transfer.
        tail_w, tail_s: after a transfer, and how long at most.
    """

    down_delay_s: Reals = 0.0
    up_delay_s: Reals = 0.0
    down_bps: Reals = math.inf
    up_bps: Reals = math.inf
    work_s: Reals = 0.0
    idle_w: Reals = math.nan
    compute_w: Reals = math.nan
    radio_w: Reals = math.nan
    receive_j_per_mbit: Reals = math.nan
    transmit_j_per_mbit: Reals = math.nan
    tail_w: Reals = math.nan
    tail_s: Reals = math.nan
    down_bytes: Counts = 0
    up_bytes: Counts = 0
    flops: Counts = 0
    steps: Counts = 0
    peak_bytes: Counts = 0

    @classmethod
    def of(cls, cost: Cost, bounds: Bounds, link: Link, power: Power | None = None) -> "Demand":
        """The demand of a cost, but its steps and memory, on a link and a device, None for unknown power."""
        down_bytes, up_bytes = sum(cost.down.values()), sum(cost.up.values())
        amounts = {"down_bytes": down_bytes, "up_bytes": up_bytes, "flops": cost.work.flops}
        delays_s = link.delay_s if down_bytes else 0.0, link.delay_s if up_bytes else 0.0
        found = cls(*delays_s, link.down_bps, link.up_bps, bounds.seconds, **amounts)
        if power is None:
            return found
        found = found._replace(idle_w=_watts(power.idle), compute_w=_above_idle(power, bounds), tail_s=0.0)
        if (radio := link.radio.value) is None:
            return found
        carrying = {"receive_j_per_mbit": radio.down_w_per_mbps, "transmit_j_per_mbit": radio.up_w_per_mbps}
        return found._replace(radio_w=radio.base, tail_w=radio.tail, tail_s=radio.tail_time, **carrying)

    @classmethod
    def working(cls, bounds: Bounds, power: Power) -> "Demand":
        idle_w, compute_w = _watts(power.idle), _above_idle(power, bounds)
        return cls(work_s=bounds.seconds, idle_w=idle_w, compute_w=compute_w)

    def taken(self, places: Any) -> "Demand":
        return Demand._make(column[places] for column in self)

    @property
    def working_j(self) -> Reals:
        """Joules of the whole device while it works."""
        return times(self.compute_w + self.idle_w, self.work_s)

    @property
    def down_s(self) -> Reals:
        """Seconds of the download on an unshared link."""
        return self.down_delay_s + 8 * self.down_bytes / self.down_bps

    @property
    def up_s(self) -> Reals:
        """Seconds of the upload on an unshared link."""
        return self.up_delay_s + 8 * self.up_bytes / self.up_bps

    def moved(self, receive_s: Reals, transmit_s: Reals) -> tuple[Any, Any]:
        """The bytes of a download and an upload after some seconds."""
        received = _moved(receive_s, self.down_delay_s, self.down_bps, self.down_bytes)
        return received, _moved(transmit_s, self.up_delay_s, self.up_bps, self.up_bytes)

    def charges(
        self, seconds: Stages, moved: tuple[Any, Any], full_power_s: Reals | None = None
    ) -> tuple[Stages, Stages]:
        """The joules of a job's stages above idle and at idle power, without radios' tails.

        ``seconds`` are 0 for a stage that did not begin, ``moved`` the bytes that were received and sent; as
        many seconds of work at full power take as much energy above idle, None for all.
        """
        receive_s, work_s, transmit_s = seconds
        active_j = (
            self._carried(receive_s, moved[0], self.receive_j_per_mbit),
            times(self.compute_w, work_s if full_power_s is None else full_power_s),
            self._carried(transmit_s, moved[1], self.transmit_j_per_mbit),
        )
        idle_j = times(self.idle_w, receive_s), times(self.idle_w, work_s), times(self.idle_w, transmit_s)
        return active_j, idle_j

    def _carried(self, seconds: Reals, size_bytes: Reals, per_mbit: Reals) -> Reals:
        used = (np.asarray(seconds) != 0) | (np.asarray(size_bytes) != 0)
        return np.where(used, self.radio_w * seconds + per_mbit * 8 * size_bytes / 1e6, 0.0)

    def tail_j(self, opened: Any, seconds: Reals) -> Reals:
        """The joules of radios' tails, where there is one, each until the next transfer or its tail time."""
        return np.where(opened, self.tail_w * np.minimum(seconds, self.tail_s), 0.0)

    def energy(self) -> dict[str, Reals]:
        """The ``ENERGIES`` of a job alone, at full speed on an unshared link; NaN for unknown ones."""
        seconds, moved = (self.down_s, self.work_s, self.up_s), (self.down_bytes, self.up_bytes)
        active_j, idle_j = self.charges(seconds, moved)
        receives, sends = np.asarray(self.down_s) > 0, np.asarray(self.up_s) > 0
        # One tail lasts until the upload begins, the one after the last transfer in full.
        tails_j = self.tail_j(receives & sends, self.work_s) + self.tail_j(receives | sends, np.inf)
        return dict(zip(ENERGIES, (*active_j, tails_j, sum(idle_j)), strict=True))


# The columns of a ``Demand`` of many jobs, and their types.
COLUMNS: Mapping[str, type] = {
    name: np.int64 if kind == Counts else np.float64 for name, kind in Demand.__annotations__.items()
}


def _moved(elapsed_s: Reals, delay_s: Reals, bps: Reals, size_bytes: Any) -> Any:
    beyond_s = np.maximum(elapsed_s - delay_s, 0.0)
    carried = np.multiply(beyond_s, bps, out=np.zeros_like(beyond_s), where=beyond_s > 0) / 8
    return np.minimum(size_bytes, carried).astype(np.int64)


def above_idle_between(cheap: Demand, costly: Demand) -> Interval:
    """The bounds of the joules of work above idle power, which are most where that is least."""
    least_j = cheap.working_j - times(costly.idle_w, cheap.work_s)
    return Interval.of(max(0.0, least_j), costly.working_j - times(cheap.idle_w, costly.work_s))


def in_dtype(size_bytes: int, dtype: str) -> int:
    """Bytes of values in a number type, of bytes of as many in ``TRACED``."""
    return round(size_bytes * WIDTHS[dtype] / WIDTHS[TRACED])
