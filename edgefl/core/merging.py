"""What merges cost the server: their work by the number of uploads, and its price on the server's device.

All of a merge's products run at the device's rate for fp32, also where the method computes in float64; bytes
are those of the tensors' own types.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from edgefl.core.corners import known
from edgefl.core.cost import Kernel, Work
from edgefl.core.devices import TRACED, Board
from edgefl.core.price import Demand, in_dtype


class MergeCost(NamedTuple):
    """What a merge of so many uploads costs; joules are the whole device's, None where a power is unknown."""

    uploads: int = 0
    seconds: float = 0.0
    flops: int = 0
    moved_bytes: int = 0
    joules: float | None = 0.0
    peak_bytes: int = 0


# The numbers of uploads through which the polynomials of kernels go, and the one where they are checked.
AT, CHECK = (2, 3, 5), 7
COUNTS = (1, *AT, CHECK)


def through(values: Sequence[int], uploads: int, at: Sequence[int] = AT) -> int:
    """The polynomial of degree 2 through values at three numbers of uploads (Lagrange), rounded down."""
    (a, b, c), (p, q, r), n = values, at, uploads
    ends = a * (n - q) * (n - r) * (r - q) + c * (n - p) * (n - q) * (q - p)
    return (ends - b * (n - p) * (n - r) * (r - p)) // ((q - p) * (r - q) * (r - p))


@dataclass(frozen=True)
class MergeTrace:
    """The work of an exchange's merge by its number of uploads."""

    # Kernels whose size is always the same, with how many there are at each of ``AT``; the others, at each.
    counts: Sequence[tuple[Kernel, Sequence[int]]]
    growing: Sequence[Sequence[Kernel]]
    # Bytes at the worst moment at each of ``COUNTS``.
    peaks: Sequence[int]

    def work(self, uploads: int) -> Work:
        found = Counter({kernel: max(through(counts, uploads), 0) for kernel, counts in self.counts})
        for each in self.growing:
            sides = [through(side, uploads) for side in zip(*(one[4:] for one in each), strict=True)]
            found[Kernel(*each[0][:4], *sides)] += 1
        return Work(+found)

    def peak_bytes(self, uploads: int) -> int:
        # Other numbers of uploads have that of the polynomial through the last three that are traced; larger
        # ones that of the line through the last two if it is more: the worst moment may become another one.
        if uploads in COUNTS:
            return self.peaks[COUNTS.index(uploads)]
        (*_, low, high), (*_, first, last) = self.peaks, COUNTS
        line = low + (high - low) * (uploads - first) // (last - first)
        curve = through(self.peaks[-3:], uploads, COUNTS[-3:])
        return max(line, curve) if uploads > last else curve


@dataclass(frozen=True)
class ServerWork:
    name: str
    board: Board
    traces: Mapping[str, MergeTrace]
    _known: dict[tuple[str, int], MergeCost] = field(default_factory=dict, init=False, compare=False)

    @property
    def dtype(self) -> str:
        supported = self.board.dtypes()
        return TRACED if TRACED in supported else supported[0]

    def price(self, exchange: str, uploads: int) -> MergeCost:
        """What a merge of so many uploads costs; a ``UserError`` if a number that timing needs is unknown."""
        key = exchange, uploads
        if uploads and key not in self._known:
            trace = self.traces[exchange]
            work, peak = trace.work(uploads), in_dtype(trace.peak_bytes(uploads), self.dtype)
            bounds = self.board.clock(self.name, self.dtype).time(work)
            joules = known(Demand.working(bounds, self.board.power).working_j)
            self._known[key] = MergeCost(uploads, bounds.seconds, work.flops, work.bytes, joules, peak)
        return self._known.get(key, MergeCost())
