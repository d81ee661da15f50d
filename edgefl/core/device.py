"""Devices and links as records: every number with its source and its standing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field, model_validator

from edgefl.core import units
from edgefl.core.cost import OP_CLASSES
from edgefl.core.params import Strict

Q = TypeVar("Q")
Efficiency = Annotated[float, Field(gt=0, le=1)]
OperationRate = Annotated[units.FlopsPerSecond, Field(gt=0)]
Bandwidth = Annotated[units.BytesPerSecond, Field(gt=0)]


class Sourced(Strict, Generic[Q]):
    """A number with where it comes from.

    Attributes:
        value: the number; absent exactly where the status is "unknown".
        status: measured (the source gives this very number), derived (arithmetic on such), assumed (the
            source line says why), unknown.
        source: where it was read, or the reason for an assumption.
    """

    value: Q | None = None
    status: Literal["measured", "derived", "assumed", "unknown"]
    source: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _value_and_status_agree(self) -> Sourced[Q]:
        if (self.value is None) != (self.status == "unknown"):
            raise ValueError("a value stands exactly where the status is not 'unknown'")
        return self


class Power(Strict):
    """Electrical power of the whole device, in watts.

    Attributes:
        idle: doing nothing.
        active: training at full load.
    """

    idle: Sourced[units.Watts]
    active: Sourced[units.Watts]


class EfficiencyByClass(Strict):
    """The share of the peak that kernels of each class reach in training."""

    dense: Sourced[Efficiency]
    depthwise: Sourced[Efficiency]
    elementwise: Sourced[Efficiency]


class Device(Strict):
    """A roofline device: a peak, how much of it each class of kernels reaches, and a memory.

    Attributes:
        title: its name for people.
        category: sbc, edge-gpu, phone, laptop, mcu, fpga, npu or server-gpu.
        kind: the cost model; "roofline" so far.
        peak: floating-point operations a second in fp32, a multiply-add being two.
        efficiency: the share of the peak reached, by class of kernels.
        memory_bandwidth: bytes a second that streaming kernels reach.
        launch_overhead: seconds added to every kernel.
        memory: bytes of memory.
        reserved_memory: bytes that the system and the runtime take of it.
        power: idle and active.
        notes: what a user should know.
    """

    title: str
    category: Literal["sbc", "edge-gpu", "phone", "laptop", "mcu", "fpga", "npu", "server-gpu"]
    kind: Literal["roofline"] = "roofline"
    peak: Sourced[OperationRate]
    efficiency: EfficiencyByClass
    memory_bandwidth: Sourced[Bandwidth]
    launch_overhead: Sourced[units.Seconds]
    memory: Sourced[units.Bytes]
    reserved_memory: Sourced[units.Bytes]
    power: Power
    notes: str = ""

    @property
    def usable_memory_bytes(self) -> float | None:
        """What training may use; None where it is unknown."""
        if self.memory.value is None or self.reserved_memory.value is None:
            return None
        return max(0.0, self.memory.value - self.reserved_memory.value)

    def numbers(self) -> Iterator[tuple[str, Sourced[Any]]]:
        """Every sourced number with its dotted name."""
        yield "peak", self.peak
        for kind in OP_CLASSES:
            yield f"efficiency.{kind}", getattr(self.efficiency, kind)
        for name in ("memory_bandwidth", "launch_overhead", "memory", "reserved_memory"):
            yield name, getattr(self, name)
        yield "power.idle", self.power.idle
        yield "power.active", self.power.active

    @property
    def unknown(self) -> list[str]:
        """The names of the numbers that nobody knows."""
        return [name for name, number in self.numbers() if number.value is None]


class Radio(Strict):
    """Power a radio draws above the idle device (Huang 2012's form).

    While sending: base + up_w_per_mbps * (throughput in Mbit/s); receiving likewise; afterwards tail for
    tail_time.
    """

    up_w_per_mbps: Annotated[float, Field(ge=0)] = 0.0
    down_w_per_mbps: Annotated[float, Field(ge=0)] = 0.0
    base: units.Watts
    tail: units.Watts = 0.0
    tail_time: units.Seconds = 0.0


class Link(Strict):
    """A client's network connection.

    Attributes:
        title: its name for people.
        down: bits a second towards the client.
        up: bits a second from the client.
        latency: round-trip time, paid once a transfer.
        radio: what the transceiver draws; unknown makes a client's energy unknown.
    """

    title: str
    down: Sourced[units.BitsPerSecond]
    up: Sourced[units.BitsPerSecond]
    latency: Sourced[units.Seconds]
    radio: Sourced[Radio]

    @model_validator(mode="after")
    def _rates_are_known(self) -> Link:
        for name in ("down", "up"):
            rate = getattr(self, name).value
            if not rate:
                raise ValueError(f"a link needs a {name} rate above 0")
        if self.latency.value is None:
            raise ValueError("a link needs a latency; 0 s where there is none")
        return self
