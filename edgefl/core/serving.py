"""What merges cost the server: their work by the number of uploads, and its price on the server's device.

Number types: a device has one rate for all of a merge's products, that of fp32, also where the method computes
in float64. Bytes are those of the tensors' own types.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import NamedTuple

from edgefl.core.cost import Kernel, Work
from edgefl.core.devices import Board
from edgefl.core.devices.board import TRACED
from edgefl.core.price import Working, in_dtype

# Kernels differ in these fields, which are numbers; those before are text.
_NUMBERS = 4


class Served(NamedTuple):
    """What one merge costs the server; ``joules`` of the whole device, NaN where a power is unknown."""

    seconds: float = 0.0
    flops: int = 0
    moved_bytes: int = 0
    joules: float = 0.0
    peak_bytes: int = 0


@dataclass(frozen=True)
class MergeTrace:
    """The work of an exchange's merge by its number of uploads, a polynomial of degree 2 at most.

    Attributes:
        at: three numbers of uploads, ascending.
        counts: kernels of one size, and how often they run at each of ``at``.
        growing: kernels whose sizes grow, as they are at each of ``at``.
        peaks: bytes at the worst moment, at each of ``at``; linear between and beyond them.
    """

    at: tuple[int, ...]
    counts: tuple[tuple[Kernel, tuple[int, ...]], ...]
    growing: tuple[tuple[Kernel, ...], ...]
    peaks: tuple[int, ...]

    def work(self, uploads: int) -> Work:
        """The kernels of a merge of so many uploads."""
        found = {kernel: self._at(counts, uploads) for kernel, counts in self.counts}
        for each in self.growing:
            sides = zip(*(kernel[_NUMBERS:] for kernel in each), strict=True)
            kernel = Kernel(*each[0][:_NUMBERS], *(self._at(side, uploads) for side in sides))
            found[kernel] = found.get(kernel, 0) + 1
        return Work({kernel: count for kernel, count in found.items() if count > 0})

    def peak_bytes(self, uploads: int) -> int:
        """The memory at the worst moment."""
        place = 0 if uploads < self.at[1] else 1
        low, high = self.at[place : place + 2]
        first, last = self.peaks[place : place + 2]
        return first + (last - first) * (uploads - low) // (high - low)

    def _at(self, values: Sequence[int], uploads: int) -> int:
        return int(through(self.at, values, uploads))

    def written(self) -> str:
        """As text."""
        return json.dumps(asdict(self))

    @classmethod
    def read_back(cls, text: str) -> MergeTrace:
        """What ``written`` returned the text of."""
        given = json.loads(text)
        return cls(
            at=tuple(given["at"]),
            counts=tuple((Kernel(*kernel), tuple(counts)) for kernel, counts in given["counts"]),
            growing=tuple(tuple(Kernel(*kernel) for kernel in each) for each in given["growing"]),
            peaks=tuple(given["peaks"]),
        )


def through(at: Sequence[int], values: Sequence[int], place: int) -> Fraction:
    """The polynomial through some values, at a place (Lagrange)."""
    terms = (
        value * Fraction(math.prod(place - other for other in rest), math.prod(one - other for other in rest))
        for one, value in zip(at, values, strict=True)
        for rest in [[other for other in at if other != one]]
    )
    return sum(terms, Fraction(0))


@dataclass(frozen=True)
class Serving:
    """The server.

    Attributes:
        name: its device's.
        board: the device.
        traces: of each exchange's merge, by name.
    """

    name: str
    board: Board
    traces: Mapping[str, MergeTrace]
    _known: dict[tuple[str, int], Served] = field(default_factory=dict, repr=False, compare=False)

    @property
    def dtype(self) -> str:
        """The number type that it computes in: fp32, or the first that it supports."""
        known = self.board.dtypes()
        return TRACED if TRACED in known else known[0]

    def price(self, exchange: str, uploads: int) -> Served:
        """What a merge of so many uploads costs; nothing without uploads, since nothing is merged.

        Raises:
            UserError: a number that timing needs is unknown.
        """
        if not uploads:
            return Served()
        key = exchange, uploads
        if key not in self._known:
            trace = self.traces[exchange]
            work, peak = trace.work(uploads), in_dtype(trace.peak_bytes(uploads), self.dtype)
            bounds = self.board.clock(self.name, self.dtype).time(work)
            working = Working.of(self.board.power, bounds)
            self._known[key] = Served(working.seconds, work.flops, work.bytes, working.joules, peak)
        return self._known[key]
