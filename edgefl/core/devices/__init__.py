"""Device records, each kind with a cost model in a file; every number has a status and a source."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, model_validator

from edgefl.core import units
from edgefl.core.components import OfKind
from edgefl.core.cost import ELEMENTWISE, GRAD_INPUT, GRAD_WEIGHT, Kernel, Work
from edgefl.core.errors import UserError
from edgefl.core.params import Strict
from edgefl.core.sourced import NEEDED, Costs, Sourced, sourced

# A number type; read in any case.
DType = Annotated[
    Literal["fp32", "fp16", "bf16", "int8"],
    BeforeValidator(lambda name: name.lower() if isinstance(name, str) else name),
]
# Bytes a value, by type.
WIDTHS: dict[str, int] = {"fp32": 4, "fp16": 2, "bf16": 2, "int8": 1}
# The type that kernels' bytes are counted in.
TRACED = "fp32"

Bandwidth = Annotated[units.BytesPerSecond, Field(ge=1)]
Room = Annotated[units.Bytes, Costs.LESS]
Capacity = Annotated[units.Joules, Field(gt=0), Costs.LESS]
ChargePower = Annotated[units.Watts, Field(gt=0), Costs.LESS]
Level = Annotated[float, Field(ge=0, lt=1), Costs.MORE]
Efficiency = Annotated[float, Field(gt=0, le=1), Costs.LESS]
Load = Annotated[units.Seconds, Field(ge=0), Costs.LESS]
# Shorter falls and recoveries would be walked through for ever.
Fall = Annotated[units.Seconds, Field(ge=1), Costs.LESS]
Recovery = Annotated[units.Seconds, Field(ge=1), Costs.MORE]
Slowest = Annotated[float, Field(ge=0.001, le=1), Costs.LESS]


class Bounds(NamedTuple):
    """Seconds of work by what binds each kernel; ``launch_s`` is what starting kernels and passes takes."""

    compute_s: float = 0.0
    memory_s: float = 0.0
    launch_s: float = 0.0

    @property
    def seconds(self) -> float:
        return self.compute_s + self.memory_s + self.launch_s

    def plus(self, other: "Bounds", times: int = 1) -> "Bounds":
        return Bounds(*(one + times * two for one, two in zip(self, other, strict=True)))


@dataclass
class KernelClock:
    """Times work on a device in one number type, kernel by kernel.

    ``roofs`` are one kernel's seconds of arithmetic and of memory traffic; starting it takes ``launch_s``
    besides, and a backward pass ``backward_s``.
    """

    roofs: Callable[[Kernel], tuple[float, float]]
    launch_s: float
    backward_s: float = 0.0

    def time(self, work: Work) -> Bounds:
        """The time of the work's kernels, run one after another, each bound by the slower of its roofs."""
        compute_s = memory_s = 0.0
        for kernel, count in work:
            arithmetic_s, traffic_s = self.roofs(kernel)
            if arithmetic_s > traffic_s:
                compute_s += arithmetic_s * count
            else:
                memory_s += traffic_s * count
        launch_s = self.launch_s * work.launches + self.backward_s * work.backwards
        return Bounds(compute_s, memory_s, launch_s)


class Power(Strict):
    """Electrical power of the whole device, in watts.

    Attributes:
        active: training at full load.
        single_core: with one core busy, which is what overheads keep busy: starting kernels and backward
            passes. ``active`` if left out.
    """

    idle: Sourced[units.Watts]
    active: Sourced[units.Watts]
    single_core: Sourced[units.Watts] | None = None

    @model_validator(mode="after")
    def _powers_are_in_order(self) -> "Power":
        given = {"idle": self.idle, "single_core": self.single_core, "active": self.active}
        stated = [(key, one) for key, one in given.items() if one]
        for (lower, one), (upper, other) in combinations(stated, 2):
            less = next((watts for watts in (one.value, one.low) if watts is not None), 0.0)
            more = next((watts for watts in (other.value, other.high) if watts is not None), math.inf)
            if more < less:
                raise ValueError(f"{upper}, {more:.4g} W, is below {lower}, {less:.4g} W")
        return self

    @property
    def overhead_bound(self) -> Sourced[units.Watts]:
        return self.single_core or self.active


class Battery(Strict):
    """A device's battery. A number alone is read as its capacity: ``battery: {value: 17.8 Wh, ...}``.

    Attributes:
        charge_power: what the charger delivers.
        charge_efficiency: share of it that is stored; all of it by default.
        cut_off: level below which the device takes no work.
    """

    capacity: Sourced[Capacity]
    charge_power: Sourced[ChargePower] | None = None
    charge_efficiency: Sourced[Efficiency] | None = None
    cut_off: Sourced[Level] | None = None

    @model_validator(mode="before")
    @classmethod
    def _capacity_alone(cls, data: Any) -> Any:
        is_number = isinstance(data, dict) and data and data.keys() <= Sourced.model_fields.keys()
        return {"capacity": data} if is_number else data

    @property
    def fill_w(self) -> float | None:
        """The power that fills it, after losses; None if the charger's power is unknown."""
        power, kept = self.charge_power, self.charge_efficiency
        if power is None or power.value is None:
            return None
        return power.value * (1.0 if kept is None or kept.value is None else kept.value)


class Throttling(Strict):
    """How a device slows down under sustained load, and recovers.

    Attributes:
        after: sustained load at full speed.
        over: further load over which the speed falls linearly.
        to: the share of the full speed that remains.
        recovery: rest from there until the device is cold again.
    """

    after: Annotated[Sourced[Load], NEEDED]
    over: Annotated[Sourced[Fall], NEEDED]
    to: Annotated[Sourced[Slowest], NEEDED]
    recovery: Annotated[Sourced[Recovery], NEEDED]


class Training(Strict):
    """How much of a model the device can train.

    Attributes:
        supports: with "last layer", anything deeper is refused.
        source: why, and where it was read.
    """

    supports: Literal["everything", "last layer", "nothing"]
    source: Annotated[str, Field(min_length=1)]


class Board(Strict):
    """A device.

    Attributes:
        kind: the name of its cost model's file.
        reserved_memory: what the system and the runtime occupy.
        battery: left out if there is none.
        throttling: how it slows down under sustained load; left out if it does not.
        training: what it can train; everything by default.
    """

    kind: str = ""
    title: str
    category: Literal["sbc", "edge-gpu", "phone", "laptop", "mcu", "fpga", "npu", "server", "server-gpu"]
    memory: Sourced[units.Bytes]
    reserved_memory: Sourced[units.Bytes]
    power: Power
    battery: Battery | None = None
    throttling: Throttling | None = None
    training: Training | None = None
    notes: str = ""

    @model_validator(mode="after")
    def _reserved_memory_is_less_than_memory(self) -> "Board":
        if self.usable_memory_bytes is not None and self.usable_memory_bytes <= 0:
            taken, whole = (units.show_bytes(one.known) for one in (self.reserved_memory, self.memory))
            raise ValueError(f"reserved_memory, {taken}, is not below memory, {whole}")
        return self

    @property
    def usable_memory_bytes(self) -> float | None:
        """None if unknown."""
        if self.memory.value is None or self.reserved_memory.value is None:
            return None
        return self.memory.value - self.reserved_memory.value

    def refusal(self, work: Work, dtype: str) -> str:
        """Why the device cannot do the work at all, whatever its size; empty if it can."""
        supports = self.training.supports if self.training else "everything"
        if supports == "everything" and dtype != "int8":
            return ""
        roles = GRAD_INPUT, GRAD_WEIGHT
        gradients = [kernel for kernel, _ in work if kernel.kind != ELEMENTWISE and kernel.role in roles]
        is_deep = any(kernel.role == GRAD_INPUT or kernel.op == "convolution" for kernel in gradients)
        is_one_layer = len({kernel.part for kernel in gradients}) == 1 and not is_deep
        if not gradients or (supports != "nothing" and is_one_layer):
            return ""
        if self.training is None or supports == "everything":
            return "int8 training is modelled for the last layer only: choose another number type"
        what = "only the last layer" if supports == "last layer" else supports
        return f"it trains {what}: {self.training.source}"

    @abstractmethod
    def dtypes(self, *, inference: bool = False) -> tuple[str, ...]:
        """The number types that its runtime for training supports, or that for inference."""

    @abstractmethod
    def clock(self, name: str, dtype: str, *, inference: bool = False) -> KernelClock:
        """A clock for work in a number type; a ``UserError`` if that is not supported, see ``known``."""

    @abstractmethod
    def launch(self, *, inference: bool = False) -> Sourced[float]:
        """The seconds that starting a kernel takes."""

    def figures(self) -> str:
        """Whose figures time inference: a runtime's, or "training"; empty of a model that has no others."""
        return ""

    def in_words(self) -> str:
        """What its model has beside the numbers, a line for ``edgefl show``; empty for nothing."""
        return ""

    def launch_known(self, *, inference: bool = False) -> str:
        """The status of the launch overhead; "none" of 0."""
        launch = self.launch(inference=inference)
        return launch.status if launch.value else "none"

    def areas(self, dtype: str, *, inference: bool = False) -> tuple[str, ...]:  # noqa: ARG002 - others differ
        """The keys of what holds the numbers that timing reads: all that its kind adds to ``Board``."""
        return tuple(key for key in type(self).model_fields if key not in Board.model_fields)

    def reads(self, number: str, dtype: str, *, inference: bool = False) -> bool:
        """Whether timing reads a number, given by its dotted name."""
        return any(f"{number}.".startswith(f"{area}.") for area in self.areas(dtype, inference=inference))

    def known(self, name: str, dtype: str, *, inference: bool = False) -> dict[str, float]:
        """The numbers that timing reads, by dotted name; a ``UserError`` if one, or the type, is unknown."""
        supported = self.dtypes(inference=inference)
        if dtype not in supported:
            hint = f"it has {', '.join(supported)}"
            raise UserError(f"device {name!r} has no figure for {dtype}", where=name, hint=hint)
        every = sourced(self)
        numbers = {key: number for key, number in every if self.reads(key, dtype, inference=inference)}
        if missing := [key for key, number in numbers.items() if number.value is None]:
            what = f"device {name!r} cannot be priced: no value for {', '.join(missing)}"
            hint = f"add it to a device like it: edgefl new device NAME --like {name}"
            raise UserError(what, where=name, hint=hint)
        return {key: float(number.known) for key, number in numbers.items()}


AnyBoard: Any = Annotated[Board, OfKind("boards", "roofline", "kind")]
