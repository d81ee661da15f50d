"""A roofline device: peak rates, the efficiency of each class of kernels, and memory bandwidth.

Kernels run one after another, each bound by the slower of its two roofs, plus a fixed launch overhead:
``max(flops / (efficiency * peak), bytes / bandwidth) + launch overhead`` (Williams, Waterman, Patterson 2009,
with an efficiency for each class of kernels). Nothing is cached between kernels, but a kernel whose
operands fit into a cache streams at the cache's bandwidth if the file gives one. A dense product with a
short side fills vector registers and cache blocks poorly: if the file gives a ``half_side`` h, one whose
shortest side is s reaches s / (s + h) of the dense efficiency, half of it at s = h. Elementwise kernels have
no FLOPs: their cost is bytes, at the elementwise efficiency of the bandwidth. In another number type than
fp32 every byte counted in fp32 shrinks by the type's width; the efficiencies are the same unless the file
gives others, as it should where the peak is of other units, such as tensor cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from edgefl.core import units
from edgefl.core.cost import DENSE, ELEMENTWISE, OP_CLASSES, Kernel
from edgefl.core.devices.board import TRACED, WIDTHS, Board, DType, KernelClock, known
from edgefl.core.params import Strict
from edgefl.core.sourced import Sourced, sourced

Efficiency = Annotated[float, Field(gt=0, le=1)]
OperationRate = Annotated[units.FlopsPerSecond, Field(ge=1)]
Bandwidth = Annotated[units.BytesPerSecond, Field(ge=1)]
Side = Annotated[float, Field(gt=0)]


class EfficiencyByClass(Strict):
    """The share of the peak that kernels of each class reach; for elementwise ones, of the bandwidth."""

    dense: Sourced[Efficiency]
    depthwise: Sourced[Efficiency]
    elementwise: Sourced[Efficiency]


class Cache(Strict):
    """A cache that speeds up streaming kernels.

    Attributes:
        size: bytes of operands that fit.
        bandwidth: bytes per second.
    """

    size: Sourced[units.Bytes]
    bandwidth: Sourced[Bandwidth]


class Runtime(Strict):
    """Efficiency and overhead of one runtime.

    Attributes:
        runtime: its name and version.
        efficiency: the share of the peak reached, by class of kernels.
        half_side: the shortest side at which a dense product reaches half of its efficiency; if left out,
            short sides have no cost.
        launch_overhead: seconds added to every kernel.
    """

    runtime: str
    efficiency: EfficiencyByClass
    half_side: Sourced[Side] | None = None
    launch_overhead: Sourced[units.Seconds]


class Roofline(Board):
    """A roofline device.

    Attributes:
        peak: operations per second by number type; a multiply-add counts as two.
        efficiency: the share of the peak that training reaches, by class of kernels.
        efficiency_in: the same for number types in which it differs.
        half_side: the shortest side at which a dense product reaches half of its efficiency; if left out,
            short sides have no cost.
        memory_bandwidth: bytes per second that streaming kernels reach.
        cache: a cache's size and bandwidth; left out if none was measured.
        launch_overhead: seconds added to every kernel in training.
        inference: the figures of a runtime for inference; those of training by default.
    """

    kind: Literal["roofline"] = "roofline"
    peak: Annotated[dict[DType, Sourced[OperationRate]], Field(min_length=1)]
    efficiency: EfficiencyByClass
    efficiency_in: dict[DType, EfficiencyByClass] = Field(default_factory=dict)
    half_side: Sourced[Side] | None = None
    memory_bandwidth: Sourced[Bandwidth]
    cache: Cache | None = None
    launch_overhead: Sourced[units.Seconds]
    inference: Runtime | None = None

    @model_validator(mode="after")
    def _efficiencies_have_peaks(self) -> Roofline:
        if lonely := sorted(self.efficiency_in.keys() - self.peak.keys()):
            raise ValueError(f"efficiency_in has {', '.join(lonely)}, but peak does not")
        return self

    @model_validator(mode="after")
    def _a_cache_is_no_slower_than_memory(self) -> Roofline:
        fast, slow = self.cache.bandwidth.value if self.cache else None, self.memory_bandwidth.value
        if fast is not None and slow is not None and fast < slow:
            raise ValueError(f"cache.bandwidth, {fast:.4g} B/s, is below memory_bandwidth, {slow:.4g} B/s")
        return self

    def dtypes(self) -> tuple[str, ...]:
        """The number types with a peak."""
        return tuple(self.peak)

    def launch(self, *, inference: bool = False) -> Sourced[float]:
        """See ``Board.launch``."""
        return (self.inference if inference and self.inference else self).launch_overhead

    def clock(self, name: str, dtype: str, *, inference: bool = False) -> RooflineClock:
        """See ``Board.clock``."""
        runtime = self.inference if inference and self.inference else None
        place, efficiency = ("inference.", runtime.efficiency) if runtime else ("", self.efficiency)
        launch = self.launch(inference=inference)
        area = f"{place}efficiency"
        if not runtime and dtype in self.efficiency_in:
            area, efficiency = f"efficiency_in.{dtype}", self.efficiency_in[dtype]
        half_side = (runtime or self).half_side

        def read() -> Iterator[tuple[str, Sourced[Any]]]:
            yield f"peak.{dtype}", self.peak[dtype]  # type: ignore[index]  # dtypes() has it
            yield from sourced(efficiency, area)
            yield "memory_bandwidth", self.memory_bandwidth
            yield f"{place}launch_overhead", launch
            if half_side is not None:
                yield f"{place}half_side", half_side
            if self.cache is not None:
                yield from sourced(self.cache, "cache")

        self.needs(name, dtype, read())
        peak = known(self.peak[dtype])  # type: ignore[index]
        shares = {kind: known(getattr(efficiency, kind)) for kind in OP_CLASSES}
        cache = (known(self.cache.size), known(self.cache.bandwidth)) if self.cache else (0.0, 1.0)
        return RooflineClock(
            rates={kind: peak * share for kind, share in shares.items()},
            streaming=known(self.memory_bandwidth),
            cache=cache,
            elementwise=shares[ELEMENTWISE],
            half_side=known(half_side) if half_side else 0.0,
            launch_s=known(launch),
            width=WIDTHS[dtype] / WIDTHS[TRACED],
        )


class RooflineClock(KernelClock):
    """Times kernels by the roofs of one number type."""

    def __init__(
        self,
        *,
        rates: dict[str, float],
        streaming: float,
        cache: tuple[float, float],
        elementwise: float,
        half_side: float,
        launch_s: float,
        width: float,
    ) -> None:
        super().__init__(launch_s)
        self._rates = rates
        self._streaming = streaming
        self._cache = cache
        self._elementwise = elementwise
        self._half_side = half_side
        self._width = width

    def roofs(self, kernel: Kernel) -> tuple[float, float]:
        """One kernel's seconds by each roof, without launch overhead."""
        moved = kernel.bytes * self._width
        size, rate = self._cache
        bandwidth = rate if moved <= size else self._streaming
        if kernel.kind == ELEMENTWISE:
            bandwidth *= self._elementwise
        rate = self._rates[kernel.kind]
        if self._half_side and kernel.kind == DENSE:
            side = max(1, min(kernel.m, kernel.n, kernel.k))
            rate *= side / (side + self._half_side)
        return kernel.flops / rate, moved / bandwidth
