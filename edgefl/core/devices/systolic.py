"""A systolic array: rows x columns of multiply-add cells, fed from on-chip memory behind one DRAM port.

A product (m x k) @ (k x n) is cut into folds that fill the array; their cycles are those that SCALE-Sim 3.0.0
counts (Samajdar et al. 2020, section 3; as its code implements them). The product takes the longer of its
cycles and of its traffic over the DRAM's bandwidth. Convolutions of all three passes are their im2col
products, once a group.

What the array needs again for a later fold comes from DRAM again unless on-chip memory keeps it. How a real
accelerator shares that memory out is its compiler's business; here it keeps whatever saves most traffic
among: nothing, the part of one operand that consecutive folds share, and that of one operand with the whole
of the other. A convolution whose image, filters and result fit together moves these, not im2col's copies.
"""

from math import ceil
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from edgefl.core import units
from edgefl.core.cost import DEPTHWISE, ELEMENTWISE, Kernel, Product
from edgefl.core.devices import TRACED, WIDTHS, Bandwidth, Board, DType, Efficiency, KernelClock, Room
from edgefl.core.params import Strict
from edgefl.core.sourced import Costs, Sourced

Dataflow = Literal["os", "ws", "is"]
Cells = Annotated[int, Field(ge=1)]


class SpecialUnit(Strict):
    """A vector unit beside the array, for norms, activations and everything else but products.

    Attributes:
        lanes: values read or written per cycle; multiply-adds, for depthwise convolutions.
    """

    lanes: Sourced[Annotated[int, Field(ge=1), Costs.LESS]]


class Systolic(Board):
    """A systolic array.

    Attributes:
        rows, columns: the array's size in cells.
        dataflow: what stays in the cells: "os" outputs, "ws" weights, "is" inputs.
        dtypes_supported: the cells' number types, with one multiply-add per cycle in each.
        memory_bandwidth: the DRAM's bytes per second, shared by all operands.
        bandwidth_efficiency: the share of it reached.
        on_chip_memory: bytes that keep operands between folds.
        launch_overhead: seconds added to every kernel.
        stride_handling: what a strided convolution's input gradient is: "phase" (one product for each phase
            of the stride, no wasted multiply-adds) or "zero-insert" (stride^2 times the work).
        depthwise: "array" (a product with one column for each channel) or "special_unit".
    """

    kind: Literal["systolic"]
    rows: Sourced[Cells]
    columns: Sourced[Cells]
    clock_rate: Sourced[Annotated[units.Hertz, Field(ge=1)]]
    dataflow: Dataflow
    dtypes_supported: Annotated[tuple[DType, ...], Field(min_length=1)]
    memory_bandwidth: Sourced[Bandwidth]
    bandwidth_efficiency: Sourced[Efficiency]
    on_chip_memory: Sourced[Room]
    launch_overhead: Sourced[units.Seconds]
    stride_handling: Literal["phase", "zero-insert"] = "phase"
    depthwise: Literal["array", "special_unit"] = "array"
    special_unit: SpecialUnit

    def dtypes(self, *, inference: bool = False) -> tuple[str, ...]:  # noqa: ARG002 - alike for both
        return self.dtypes_supported

    def launch(self, *, inference: bool = False) -> Sourced[float]:  # noqa: ARG002 - one for both
        return self.launch_overhead

    def in_words(self) -> str:
        return (
            f"dataflow {self.dataflow}; strided input gradients by {self.stride_handling}; "
            f"depthwise convolutions on the {self.depthwise.replace('_', ' ')}"
        )

    def clock(self, name: str, dtype: str, *, inference: bool = False) -> KernelClock:  # noqa: ARG002 - likewise
        read, word_bytes = self.known(name, dtype), WIDTHS[dtype]
        array = self.dataflow, int(read["rows"]), int(read["columns"])
        hz, lanes = read["clock_rate"], read["special_unit.lanes"]
        bandwidth = read["memory_bandwidth"] * read["bandwidth_efficiency"]
        room = read["on_chip_memory"] / word_bytes

        def roofs(kernel: Kernel) -> tuple[float, float]:
            values = kernel.bytes / WIDTHS[TRACED]
            moved_s = kernel.bytes * word_bytes / WIDTHS[TRACED] / bandwidth
            if kernel.kind == ELEMENTWISE:
                return values / lanes / hz, moved_s
            if kernel.kind == DEPTHWISE and self.depthwise == "special_unit":
                return kernel.flops / 2 / lanes / hz, moved_s
            product = product_of(kernel, phases=self.stride_handling == "phase")
            spent = product.groups * cycles(*array, product)
            words: float = product.groups * kept_words(*array, product, room)
            if values <= room:
                words = min(words, values)
            return spent / hz, words * word_bytes / bandwidth

        return KernelClock(roofs, read["launch_overhead"])


def product_of(kernel: Kernel, *, phases: bool) -> Product:
    """The products of a kernel.

    The input gradient of a convolution with stride s is one product of zero-inserted operands, or one for
    each of the s^2 phases of the stride that meets any tap: as many places as the convolution has outputs,
    and that phase's share of the taps, here the average one.
    """
    if not phases or not kernel.phases:
        return Product(kernel.m, kernel.n, kernel.k, kernel.groups)
    places = kernel.flops // (2 * kernel.n * kernel.k * kernel.groups)
    return Product(places, kernel.n, ceil(kernel.k / kernel.phases), kernel.phases * kernel.groups)


def cycles(dataflow: Dataflow, rows: int, columns: int, product: Product) -> int:
    """The cycles of one product without stalls; SCALE-Sim prints one less, plus its stalls."""
    m, n, k, *_ = product
    if dataflow == "os":
        return ceil(m / rows) * ceil(n / columns) * (rows + columns + k - 2)
    across, streamed = (n, m) if dataflow == "ws" else (m, n)
    return ceil(k / rows) * ceil(across / columns) * (2 * rows + columns + streamed - 2)


def kept_words(dataflow: Dataflow, rows: int, columns: int, product: Product, room: float) -> int:
    """One product's DRAM traffic in words where ``room`` words of on-chip memory keep what saves most of it.

    Of the two operands that come more than once, folds in one order share a part of the first, in the other
    order a part of the second; with one of the two kept whole, nothing comes twice.
    """
    every = operands(dataflow, rows, columns, product)
    one, two = sorted(every, key=lambda operand: operand.times)[1:]
    nothing, all_kept = sum(each.words * each.times for each in every), sum(each.words for each in every)
    ways = (
        (one.shared, nothing - one.words * (one.times - 1)),
        (two.shared, nothing - two.words * (two.times - 1)),
        (one.shared + two.words, all_kept),
        (two.shared + one.words, all_kept),
    )
    return min([nothing, *(words for held, words in ways if held <= room)])


class Operand(NamedTuple):
    """The words of an operand or result, how often DRAM moves it if nothing is kept, and its shared words.

    These are what consecutive folds share, if folds are taken in the order that suits it.
    """

    words: int
    times: int
    shared: int


def operands(dataflow: Dataflow, rows: int, columns: int, product: Product) -> tuple[Operand, ...]:
    """(m x k), (k x n) and (m x n).

    What streams past the cells comes again for every fold across it; partial sums that leave the array are
    written once a fold along k, and read back from the second on.
    """
    m, n, k, *_ = product
    if dataflow == "os":
        left = Operand(m * k, ceil(n / columns), min(m, rows) * k)
        right = Operand(k * n, ceil(m / rows), k * min(n, columns))
        return left, right, Operand(m * n, 1, 0)
    stays, across, streamed = (k * n, n, m) if dataflow == "ws" else (m * k, m, n)
    held = Operand(stays, 1, 0)
    streams = Operand(streamed * k, ceil(across / columns), streamed * min(k, rows))
    sums = Operand(m * n, max(1, 2 * ceil(k / rows) - 1), streamed * min(across, columns))
    return (streams, held, sums) if dataflow == "ws" else (held, streams, sums)


Params = Systolic
