"""A systolic array: rows x columns of multiply-add cells, fed from on-chip memory behind one DRAM port.

A product (m x k) @ (k x n) is cut into folds that fill the array; their cycles are those that SCALE-Sim 3.0.0
counts (Samajdar et al. 2020, section 3; as its code implements them). The product takes the longer of its
cycles and of its traffic over the DRAM's bandwidth. Convolutions of all three passes are their im2col
products, once a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from edgefl.core import units
from edgefl.core.cost import DEPTHWISE, ELEMENTWISE, GRAD_INPUT, Kernel
from edgefl.core.devices.board import TRACED, WIDTHS, Board, DType, KernelClock, known
from edgefl.core.params import Strict
from edgefl.core.sourced import Sourced, sourced

Dataflow = Literal["os", "ws", "is"]
Cells = Annotated[int, Field(ge=1)]
Frequency = Annotated[units.Hertz, Field(gt=0)]
Bandwidth = Annotated[units.BytesPerSecond, Field(gt=0)]
Share = Annotated[float, Field(gt=0, le=1)]


class Gemm(NamedTuple):
    """The product (m x k) @ (k x n)."""

    m: int
    n: int
    k: int


class SpecialUnit(Strict):
    """A vector unit beside the array, for norms, activations and whatever else is no product.

    Attributes:
        lanes: values (or multiply-adds) a cycle.
    """

    lanes: Sourced[Cells]


class Systolic(Board):
    """A systolic array.

    Attributes:
        rows, columns: its cells.
        clock: cycles a second.
        dataflow: what stays in the cells: "os" outputs, "ws" weights, "is" inputs.
        dtypes_supported: number types that its cells compute in, one multiply-add a cycle in each.
        memory_bandwidth: the DRAM's bytes a second, shared by all operands.
        bandwidth_efficiency: the share of it reached.
        on_chip_memory: bytes that keep operands between folds.
        launch_overhead: seconds added to every kernel.
        stride_handling: what a strided convolution's input gradient is: "phase" (one product for each phase
            of the stride, no wasted multiply-adds) or "zero-insert" (stride^2 times the work).
        depthwise: "array" (a product with one column for each channel) or "special_unit".
        special_unit: what does everything but products.
    """

    kind: Literal["systolic"]
    rows: Sourced[Cells]
    columns: Sourced[Cells]
    clock_rate: Sourced[Frequency]
    dataflow: Dataflow
    dtypes_supported: Annotated[tuple[DType, ...], Field(min_length=1)]
    memory_bandwidth: Sourced[Bandwidth]
    bandwidth_efficiency: Sourced[Share]
    on_chip_memory: Sourced[units.Bytes]
    launch_overhead: Sourced[units.Seconds]
    stride_handling: Literal["phase", "zero-insert"] = "phase"
    depthwise: Literal["array", "special_unit"] = "array"
    special_unit: SpecialUnit

    def dtypes(self) -> tuple[str, ...]:
        """The number types its cells compute in."""
        return self.dtypes_supported

    def clock(self, name: str, dtype: str, *, inference: bool = False) -> SystolicClock:  # noqa: ARG002 - one for both
        """See ``Board.clock``; training and inference run on the same array."""

        def read() -> Iterator[tuple[str, Sourced[Any]]]:
            for key in _NEEDED:
                yield key, getattr(self, key)
            yield from sourced(self.special_unit, "special_unit")

        self.needs(name, dtype, read())
        return SystolicClock(self, WIDTHS[dtype])


_NEEDED = (
    "rows",
    "columns",
    "clock_rate",
    "memory_bandwidth",
    "bandwidth_efficiency",
    "on_chip_memory",
    "launch_overhead",
)


class SystolicClock(KernelClock):
    """Times kernels by the array's cycles and the DRAM's traffic."""

    def __init__(self, device: Systolic, word_bytes: int) -> None:
        super().__init__(known(device.launch_overhead))
        self._device = device
        self._word_bytes = word_bytes
        self._rows, self._columns = int(known(device.rows)), int(known(device.columns))
        self._hz = known(device.clock_rate)
        self._bandwidth = known(device.memory_bandwidth) * known(device.bandwidth_efficiency)
        self._on_chip_words = known(device.on_chip_memory) / word_bytes
        self._lanes = known(device.special_unit.lanes)

    def roofs(self, kernel: Kernel) -> tuple[float, float]:
        """One kernel's seconds by arithmetic and by memory, without its start."""
        moved_s = kernel.bytes * self._word_bytes / WIDTHS[TRACED] / self._bandwidth
        if kernel.kind == ELEMENTWISE:
            values = kernel.bytes / WIDTHS[TRACED]
            return values / self._lanes / self._hz, moved_s
        if kernel.kind == DEPTHWISE and self._device.depthwise == "special_unit":
            return kernel.flops / 2 / self._lanes / self._hz, moved_s
        spent = words = 0
        for gemm, times in gemms(kernel, phases=self._device.stride_handling == "phase"):
            spent += times * cycles(self._device.dataflow, self._rows, self._columns, gemm)
            words += times * self._words(gemm)
        return spent / self._hz, words * self._word_bytes / self._bandwidth

    def _words(self, gemm: Gemm) -> int:
        least = floor_words(gemm)
        if least <= self._on_chip_words:
            return least
        return dram_words(self._device.dataflow, self._rows, self._columns, gemm)


def gemms(kernel: Kernel, *, phases: bool) -> list[tuple[Gemm, int]]:
    """The products of a kernel, and how often each.

    A strided convolution's input gradient has stride^2 times more multiply-adds as one product of
    zero-inserted operands than it needs; decomposed by phases it is stride^2 products of 1 / stride^2 of the
    places and, on average, of the depth each.
    """
    whole = Gemm(kernel.m, kernel.n, kernel.k)
    useless = 2 * kernel.m * kernel.n * kernel.k * kernel.groups // kernel.flops
    if not phases or kernel.role != GRAD_INPUT or useless <= 1:
        return [(whole, kernel.groups)]
    return [(Gemm(ceil(kernel.m / useless), kernel.n, ceil(kernel.k / useless)), useless * kernel.groups)]


def cycles(dataflow: Dataflow, rows: int, columns: int, gemm: Gemm) -> int:
    """The cycles of a product without stalls: folds times the cycles of one.

    SCALE-Sim 3.0.0 prints the index of the last cycle, one less, plus its stalls.
    """
    m, n, k = gemm
    if dataflow == "os":
        return ceil(m / rows) * ceil(n / columns) * (rows + columns + k - 2)
    across, streamed = (n, m) if dataflow == "ws" else (m, n)
    return ceil(k / rows) * ceil(across / columns) * (2 * rows + columns + streamed - 2)


def floor_words(gemm: Gemm) -> int:
    """The DRAM traffic in words where on-chip memory holds all operands: each moves once."""
    m, n, k = gemm
    return m * k + k * n + m * n


def dram_words(dataflow: Dataflow, rows: int, columns: int, gemm: Gemm) -> int:
    """The DRAM traffic in words where nothing is kept between folds."""
    return sum(traffic(dataflow, rows, columns, gemm))


def traffic(dataflow: Dataflow, rows: int, columns: int, gemm: Gemm) -> tuple[int, int, int]:
    """The same by operand: (m x k), (k x n), (m x n).

    What streams past the cells comes again for every fold across it; partial sums that leave the array are
    written once a fold along k, and read back from the second on.
    """
    m, n, k = gemm
    if dataflow == "os":
        return m * k * ceil(n / columns), k * n * ceil(m / rows), m * n
    sums = m * n * (2 * ceil(k / rows) - 1)
    if dataflow == "ws":
        return m * k * ceil(n / columns), k * n, sums
    return m * k, k * n * ceil(m / columns), sums
