"""What every device has, whatever its cost model: memory, power, what it can train."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple, Protocol

from pydantic import Field, model_validator

from edgefl.core import units
from edgefl.core.cost import ELEMENTWISE, GRAD_INPUT, GRAD_WEIGHT, Kernel, Work
from edgefl.core.errors import UserError
from edgefl.core.params import Strict
from edgefl.core.sourced import Sourced, sourced

DType = Literal["fp32", "fp16", "bf16", "int8"]
WIDTHS: dict[str, int] = {"fp32": 4, "fp16": 2, "bf16": 2, "int8": 1}
"""Bytes a value, by type."""
TRACED = "fp32"
"""The type that kernels' bytes are counted in."""

MEMORY = ("memory", "reserved_memory")
Capacity = Annotated[units.Joules, Field(gt=0)]
Trains = Literal["everything", "last layer", "nothing"]


class Bounds(NamedTuple):
    """Seconds of work, by what bounds each kernel.

    Attributes:
        compute_s: of kernels that wait for arithmetic.
        memory_s: of kernels that wait for memory.
        launch_s: of starting kernels.
    """

    compute_s: float = 0.0
    memory_s: float = 0.0
    launch_s: float = 0.0

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.compute_s + self.memory_s + self.launch_s

    def plus(self, other: Bounds, times: int = 1) -> Bounds:
        """With ``times`` times another."""
        return Bounds(*(one + times * two for one, two in zip(self, other, strict=True)))


class Clock(Protocol):
    """A device in one number type, ready to time work."""

    def time(self, work: Work) -> Bounds:
        """The work's kernels, one after another."""


class KernelClock:
    """Times work kernel by kernel; those seen before are not timed again.

    Args:
        launch_s: seconds to start a kernel.
    """

    def __init__(self, launch_s: float) -> None:
        self._launch_s = launch_s
        self._known: dict[Kernel, tuple[float, float]] = {}

    def time(self, work: Work) -> Bounds:
        """The work's kernels, one after another, each as long as the slower of its roofs."""
        compute_s = memory_s = 0.0
        for kernel, count in work:
            one = self._known.get(kernel)
            if one is None:
                one = self._known[kernel] = self.roofs(kernel)
            if one[0] > one[1]:
                compute_s += one[0] * count
            else:
                memory_s += one[1] * count
        return Bounds(compute_s, memory_s, self._launch_s * work.launches)

    @abstractmethod
    def roofs(self, kernel: Kernel) -> tuple[float, float]:
        """One kernel's seconds by arithmetic and by memory, without its start."""


class Power(Strict):
    """Electrical power of the whole device, in watts.

    Attributes:
        idle: doing nothing.
        active: training at full load.
    """

    idle: Sourced[units.Watts]
    active: Sourced[units.Watts]

    @model_validator(mode="after")
    def _work_takes_no_less_than_idling(self) -> Power:
        idle, active = self.idle.value, self.active.value
        if idle is not None and active is not None and active < idle:
            raise ValueError(f"active, {active:.4g} W, is below idle, {idle:.4g} W")
        return self


class Training(Strict):
    """What a device can train.

    Attributes:
        supports: "everything", "last layer" (backpropagation through more is refused) or "nothing".
        source: why, and where it was read.
    """

    supports: Trains
    source: Annotated[str, Field(min_length=1)]


class Board(Strict):
    """What every device has.

    Attributes:
        title: its name for people.
        category: sbc, edge-gpu, phone, laptop, mcu, fpga, npu, server or server-gpu.
        memory: bytes of memory.
        reserved_memory: bytes that the system and the runtime take of it.
        power: idle and active.
        battery: energy of a full battery; left out where there is none.
        training: what it can train; everything where left out.
        notes: what a user should know.
    """

    title: str
    category: Literal["sbc", "edge-gpu", "phone", "laptop", "mcu", "fpga", "npu", "server", "server-gpu"]
    memory: Sourced[units.Bytes]
    reserved_memory: Sourced[units.Bytes]
    power: Power
    battery: Sourced[Capacity] | None = None
    training: Training | None = None
    notes: str = ""

    @model_validator(mode="after")
    def _something_is_left_of_memory(self) -> Board:
        memory, reserved = self.memory.value, self.reserved_memory.value
        if memory is not None and reserved is not None and reserved >= memory:
            taken, whole = units.show_bytes(reserved), units.show_bytes(memory)
            raise ValueError(f"reserved_memory, {taken}, leaves nothing of memory, {whole}")
        return self

    @property
    def usable_memory_bytes(self) -> float | None:
        """What training may use; None where it is unknown."""
        if self.memory.value is None or self.reserved_memory.value is None:
            return None
        return self.memory.value - self.reserved_memory.value

    def numbers(self) -> Iterator[tuple[str, Sourced[Any]]]:
        """Every sourced number with its dotted name."""
        return sourced(self)

    @property
    def unknown(self) -> list[str]:
        """The names of the numbers that nobody knows."""
        return [name for name, number in self.numbers() if number.value is None]

    def refusal(self, work: Work, dtype: str) -> str:
        """Why the device cannot do work at all, whatever its size; empty where it can."""
        supports = self.training.supports if self.training else "everything"
        source = self.training.source if self.training else ""
        modelled = dtype != "int8" or supports != "everything"
        if not modelled:
            supports = "last layer"
        if supports == "everything":
            return ""
        gradients = [
            kernel
            for kernel, _ in work
            if kernel.role in {GRAD_INPUT, GRAD_WEIGHT} and kernel.kind != ELEMENTWISE
        ]
        deep = [kernel for kernel in gradients if kernel.role == GRAD_INPUT or kernel.op == "convolution"]
        weights = {kernel.part for kernel in gradients}
        if not gradients or (supports == "last layer" and not deep and len(weights) == 1):
            return ""
        if not modelled:
            return "in int8 the training of a last layer alone is modelled: take another number type"
        return f"it trains {'only the last layer' if supports == 'last layer' else supports}: {source}"

    @abstractmethod
    def dtypes(self) -> tuple[str, ...]:
        """The number types it has figures for."""

    @abstractmethod
    def clock(self, name: str, dtype: str, *, inference: bool = False) -> Clock:
        """The device ready to time work in one number type.

        Args:
            name: the device's, for messages.
            dtype: one of ``dtypes()``.
            inference: whether the runtime is the one for inference, not for training.

        Raises:
            UserError: a number that timing needs is unknown, or the device lacks the type.
        """

    @abstractmethod
    def launch(self, *, inference: bool = False) -> Sourced[float]:
        """Seconds to start a kernel.

        Args:
            inference: whether the runtime is the one for inference, not for training.
        """

    def launch_known(self, *, inference: bool = False) -> str:
        """How well the time to start a kernel is known: its status, or "none" where it is 0."""
        launch = self.launch(inference=inference)
        return launch.status if launch.value else "none"

    def needs(self, name: str, dtype: str, numbers: Iterator[tuple[str, Sourced[Any]]]) -> None:
        """Sees to it that timing can go on.

        Args:
            name: the device's, for messages.
            dtype: the number type asked for.
            numbers: what timing reads, by name.

        Raises:
            UserError: the device lacks the type, or one of the numbers is unknown.
        """
        if dtype not in self.dtypes():
            raise UserError(
                f"device {name!r} has no figure for {dtype}",
                where=name,
                hint=f"it has {', '.join(self.dtypes())}",
            )
        missing = [key for key, number in numbers if number.value is None]
        if missing:
            raise UserError(
                f"device {name!r} cannot be priced: {', '.join(missing)} unknown",
                where=name,
                hint="copy the file into a devices/ folder on EDGEFL_PATH, "
                "measure or assume the number, say its source",
            )


def known(number: Sourced[Any]) -> float:
    """The value of a number that ``Board.needs`` has let pass."""
    if number.value is None:
        raise AssertionError("an unknown number got past Board.needs")
    return float(number.value)
