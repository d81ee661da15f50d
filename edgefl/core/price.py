"""From a cost to seconds and joules: the one replaceable pricing function.

Assumptions:

1. Compute: kernels run one after another, each at the slower of its two roofs,
   ``max(flops / (efficiency * peak), bytes / bandwidth) + launch overhead`` (the roofline model,
   Williams 2009, with an efficiency for each class of kernels). Nothing stays in caches between
   kernels. Elementwise kernels have no FLOPs: their cost is bytes, at the elementwise efficiency of the
   bandwidth.
2. Transfer: one round trip of latency, then the bytes at the link's rate. An empty payload costs
   nothing, not even the round trip.
3. Energy: the device draws its active power while computing and its idle power while transferring; the
   radio adds its base power while a transfer lasts, an energy for each bit that it carries (watts per
   Mbit/s are joules per Mbit; the round trip carries none), and its tail after each transfer, in full even
   where the next transfer begins within it. Waiting between jobs is not charged, neither under a tail: the
   device is then not working for us.
4. A number that is unknown makes every total that needs it unknown (None), never zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgefl.core.cost import ELEMENTWISE, Cost, Kernel, Work
from edgefl.core.device import Device, Link, Radio, Sourced
from edgefl.core.errors import UserError


@dataclass(frozen=True)
class Price:
    """What a job takes on one device behind one link.

    Attributes:
        down_s: receiving the payload.
        compute_s: the work.
        up_s: sending the result.
        receive_j: energy while receiving, tail included; None where a number is unknown.
        compute_j: energy while computing; None likewise.
        transmit_j: energy while sending, tail included; None likewise.
    """

    down_s: float
    compute_s: float
    up_s: float
    receive_j: float | None
    compute_j: float | None
    transmit_j: float | None

    @property
    def seconds(self) -> float:
        """All phases, one after another."""
        return self.down_s + self.compute_s + self.up_s

    @property
    def joules(self) -> float | None:
        """All phases; None where one is unknown."""
        if self.receive_j is None or self.compute_j is None or self.transmit_j is None:
            return None
        return self.receive_j + self.compute_j + self.transmit_j


class Pricer:
    """Prices work on one device; kernels seen before are not priced again."""

    def __init__(self, name: str, device: Device) -> None:
        """Checks that the numbers pricing needs are known.

        Raises:
            UserError: one of them is unknown.
        """
        # Unknown power makes energies unknown, unknown memory refuses nobody; everything else is needed.
        optional = {"power.idle", "power.active", "memory", "reserved_memory"}
        needed = [key for key in device.unknown if key not in optional]
        if needed:
            raise UserError(
                f"device {name!r} cannot be priced: {', '.join(needed)} unknown",
                where=name,
                hint="copy the file into a devices/ folder on EDGEFL_PATH, "
                "measure or assume the number, say its source",
            )
        self.device = device
        self._peak = {
            kind: _known(device.peak.value) * _known(share.value) for kind, share in _classes(device)
        }
        streaming = _known(device.memory_bandwidth.value)
        self._bandwidth = dict.fromkeys(self._peak, streaming)
        self._bandwidth[ELEMENTWISE] = streaming * _known(device.efficiency.elementwise.value)
        self._launch_s = _known(device.launch_overhead.value)
        self._seconds: dict[Kernel, float] = {}

    def kernel_seconds(self, kernel: Kernel) -> float:
        """One kernel's time."""
        seconds = self._seconds.get(kernel)
        if seconds is None:
            by_compute = kernel.flops / self._peak[kernel.kind]
            by_memory = kernel.bytes / self._bandwidth[kernel.kind]
            seconds = self._seconds[kernel] = max(by_compute, by_memory) + self._launch_s
        return seconds

    def work_seconds(self, work: Work) -> float:
        """All kernels, one after another."""
        return sum(self.kernel_seconds(kernel) * count for kernel, count in work)

    def price(self, cost: Cost, link: Link) -> Price:
        """Seconds and joules of a job, by phase."""
        down_s = transfer_seconds(cost.down_bytes, _known(link.down.value), _known(link.latency.value))
        up_s = transfer_seconds(cost.up_bytes, _known(link.up.value), _known(link.latency.value))
        compute_s = self.work_seconds(cost.work)
        active_w, radio = self.device.power.active.value, link.radio.value
        down_j, up_j = (0.0, 0.0) if radio is None else (radio.down_w_per_mbps, radio.up_w_per_mbps)
        return Price(
            down_s=down_s,
            compute_s=compute_s,
            up_s=up_s,
            receive_j=self._transfer_joules(cost.down_bytes, down_s, radio, down_j),
            compute_j=None if active_w is None else active_w * compute_s,
            transmit_j=self._transfer_joules(cost.up_bytes, up_s, radio, up_j),
        )

    def _transfer_joules(
        self, size_bytes: int, seconds: float, radio: Radio | None, j_per_mbit: float
    ) -> float | None:
        if not size_bytes:
            return 0.0
        idle_w = self.device.power.idle.value
        if idle_w is None or radio is None:
            return None
        carrying_j = j_per_mbit * 8 * size_bytes / 1e6
        return (idle_w + radio.base) * seconds + carrying_j + radio.tail * radio.tail_time


def transfer_seconds(size_bytes: float, rate_bps: float, latency_s: float) -> float:
    """The time of one transfer; nothing to send takes no time."""
    return latency_s + 8 * size_bytes / rate_bps if size_bytes else 0.0


def _classes(device: Device) -> list[tuple[str, Sourced[float]]]:
    return [(name, getattr(device.efficiency, name)) for name in type(device.efficiency).model_fields]


def _known(value: float | None) -> float:
    if value is None:
        raise AssertionError("an unknown number got past the checks of Pricer and Link")
    return value
