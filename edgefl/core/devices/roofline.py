"""A roofline device: peak rates, the efficiency of each class of kernels, and memory bandwidth.

Kernels run one after another, each bound by the slower of its two roofs, plus a fixed launch overhead:
``max(flops / (efficiency * peak), bytes / bandwidth) + launch overhead`` (Williams, Waterman, Patterson 2009,
with an efficiency for each class of kernels). Every backward pass has an overhead of its own, since starting
and ending it takes time however many kernels it runs. Nothing is cached between kernels, but a kernel whose
operands fit into a cache streams at the cache's bandwidth if the file gives one. A dense product with a
short side fills vector registers and cache blocks poorly: if the file gives a ``half_side`` h, one whose
shortest side is s reaches s / (s + h) of the dense efficiency, half of it at s = h. Where the libraries
compute 3x3 convolutions by minimal filtering (Lavin and Gray 2016, section 4.1), which multiplies less than
is counted, a file gives what their FLOPs are divided by: 2.25 for F(2x2, 3x3). Elementwise kernels have
no FLOPs: their cost is bytes, at the elementwise efficiency of the bandwidth. In another number type than
fp32 every byte counted in fp32 shrinks by the type's width; the efficiencies are the same unless the file
gives others, as it should where the peak is of other units, such as tensor cores: these filter nothing.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from edgefl.core import units
from edgefl.core.cost import DENSE, ELEMENTWISE, OP_CLASSES, Kernel
from edgefl.core.devices import TRACED, WIDTHS, Bandwidth, Board, DType, Efficiency, KernelClock, Room
from edgefl.core.params import Strict
from edgefl.core.sourced import Costs, Sourced

# The operator whose dense kernels may have an efficiency of their own.
CONVOLUTION = "convolution"

OperationRate = Annotated[units.FlopsPerSecond, Field(ge=1)]
Side = Annotated[float, Field(gt=0), Costs.MORE]
Saving = Annotated[float, Field(ge=1), Costs.LESS]


class EfficiencyByClass(Strict):
    """The share of the peak that kernels of each class reach; for elementwise ones, of the bandwidth.

    Attributes:
        dense: matrix products, and convolutions but depthwise ones.
        convolution: dense convolutions, where libraries compute them at another share than products.
    """

    dense: Sourced[Efficiency]
    convolution: Sourced[Efficiency] | None = None
    depthwise: Sourced[Efficiency]
    elementwise: Sourced[Efficiency]


class Cache(Strict):
    """A cache, from which kernels whose operands fit into it stream."""

    size: Sourced[Room]
    bandwidth: Sourced[Bandwidth]


class Runtime(Strict):
    """What differs in a runtime for inference.

    Attributes:
        runtime: its name and version.
        peak, efficiency, efficiency_in: as a ``Roofline`` has them; the board's where left out.
        half_side, filtering: as a ``Roofline`` has them, for these efficiencies; the board's go with the
            board's.
        launch_overhead: seconds added to every kernel: what the runtime takes to start it.
    """

    runtime: str
    peak: dict[DType, Sourced[OperationRate]] = Field(default_factory=dict)
    efficiency: EfficiencyByClass | None = None
    efficiency_in: dict[DType, EfficiencyByClass] = Field(default_factory=dict)
    half_side: Sourced[Side] | None = None
    filtering: Sourced[Saving] | None = None
    launch_overhead: Sourced[units.Seconds]


class Roofline(Board):
    """A roofline device.

    Attributes:
        peak: operations per second by number type; a multiply-add counts as two.
        efficiency: the share of the peak that training reaches, by class of kernels.
        efficiency_in: the same for number types in which it differs.
        half_side: the shortest side at which a dense product reaches half of its efficiency; if left out,
            short sides have no cost.
        filtering: how many times less 3x3 convolutions without stride multiply than is counted, at the types
            without an ``efficiency_in``; 1 if left out.
        memory_bandwidth: bytes per second that streaming kernels reach.
        cache: left out if none was measured.
        launch_overhead: seconds added to every kernel in training.
        backward_overhead: seconds added to every backward pass; none if left out.
        inference: what differs in a runtime for inference; nothing by default.
    """

    kind: Literal["roofline"] = "roofline"
    peak: Annotated[dict[DType, Sourced[OperationRate]], Field(min_length=1)]
    efficiency: EfficiencyByClass
    efficiency_in: dict[DType, EfficiencyByClass] = Field(default_factory=dict)
    half_side: Sourced[Side] | None = None
    filtering: Sourced[Saving] | None = None
    memory_bandwidth: Sourced[Bandwidth]
    cache: Cache | None = None
    launch_overhead: Sourced[units.Seconds]
    backward_overhead: Sourced[units.Seconds] | None = None
    inference: Runtime | None = None

    @model_validator(mode="after")
    def _a_cache_is_no_slower_than_memory(self) -> "Roofline":
        fast, slow = self.cache.bandwidth.value if self.cache else None, self.memory_bandwidth.value
        if fast is not None and slow is not None and fast < slow:
            raise ValueError(f"cache.bandwidth, {fast:.4g} B/s, is below memory_bandwidth, {slow:.4g} B/s")
        return self

    def dtypes(self, *, inference: bool = False) -> tuple[str, ...]:
        own = self.inference.peak if inference and self.inference else {}
        return tuple(self.peak | own)

    def launch(self, *, inference: bool = False) -> Sourced[float]:
        return (self.inference if inference and self.inference else self).launch_overhead

    def figures(self) -> str:
        return self.inference.runtime if self.inference else "training"

    def areas(self, dtype: str, *, inference: bool = False) -> tuple[str, ...]:
        """Its peak, efficiency, launch overhead, half side and filtering come first."""
        runtime = self.inference if inference else None
        place = "inference." if runtime else ""
        peak = f"{place if runtime and dtype in runtime.peak else ''}peak.{dtype}"
        efficiency = self._efficiency(dtype, runtime)
        owner = place if efficiency.startswith("inference.") else ""
        shape = f"{owner}half_side", f"{owner}filtering"
        backward = () if runtime else ("backward_overhead",)
        return peak, efficiency, f"{place}launch_overhead", *shape, "memory_bandwidth", "cache", *backward

    def clock(self, name: str, dtype: str, *, inference: bool = False) -> KernelClock:
        peak, efficiency, launch, half_side, filtering, *_ = self.areas(dtype, inference=inference)
        read = self.known(name, dtype, inference=inference)
        shares = {kind: read[f"{efficiency}.{kind}"] for kind in OP_CLASSES}
        shares[CONVOLUTION] = read.get(f"{efficiency}.{CONVOLUTION}", shares[DENSE])
        half = read.get(half_side, 0.0)
        saving = 1.0 if "efficiency_in" in efficiency else read.get(filtering, 1.0)
        streaming, cached_bytes = read["memory_bandwidth"], read.get("cache.size", 0.0)
        # At the ends of intervals too, a cache is no slower than memory: a larger one never costs more.
        cached = max(read.get("cache.bandwidth", streaming), streaming)

        def roofs(kernel: Kernel) -> tuple[float, float]:
            moved = kernel.bytes * WIDTHS[dtype] / WIDTHS[TRACED]
            bandwidth = cached if moved <= cached_bytes else streaming
            if kernel.kind == ELEMENTWISE:
                bandwidth *= shares[ELEMENTWISE]
            is_convolution = kernel.op == CONVOLUTION and kernel.kind == DENSE
            rate = read[peak] * shares[CONVOLUTION if is_convolution else kernel.kind]
            if half and kernel.kind == DENSE:
                side = max(1, min(kernel.m, kernel.n, kernel.k))
                rate *= side / (side + half)
            if kernel.filtering:
                rate *= saving
            return kernel.flops / rate, moved / bandwidth

        return KernelClock(roofs, read[launch], read.get("backward_overhead", 0.0))

    def _efficiency(self, dtype: str, runtime: Runtime | None) -> str:
        """Where they are: the type's own before those of all types, of each the runtime's first."""
        if runtime and dtype in runtime.efficiency_in:
            return f"inference.efficiency_in.{dtype}"
        if dtype in self.efficiency_in:
            return f"efficiency_in.{dtype}"
        return "inference.efficiency" if runtime and runtime.efficiency else "efficiency"


Params = Roofline
