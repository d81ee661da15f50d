"""Device-independent costs of work: kernels, bytes, memory."""

import base64
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Annotated, Any, NamedTuple, Self, TypeAlias, TypeVar

from pydantic import PlainSerializer, PlainValidator, TypeAdapter

T = TypeVar("T")

DENSE = "dense"
DEPTHWISE = "depthwise"
ELEMENTWISE = "elementwise"
OP_CLASSES = (DENSE, DEPTHWISE, ELEMENTWISE)

FORWARD = "forward"
GRAD_INPUT = "grad-input"
GRAD_WEIGHT = "grad-weight"
UPDATE = "update"

FROZEN = "frozen copies"


class Product(NamedTuple):
    """Matrix products of one shape: ``groups`` times (m x k) @ (k x n)."""

    m: int
    n: int
    k: int
    groups: int = 1
    kind: str = DENSE

    @property
    def flops(self) -> int:
        """Floating-point operations; a multiply-add is two."""
        return 2 * self.m * self.n * self.k * self.groups


class Kernel(NamedTuple):
    """One operator's work.

    Attributes:
        kind: its class, which devices have an efficiency for; one of ``OP_CLASSES``.
        role: of the step; ``UPDATE`` is everything after the gradients.
        part: the part of the model whose weights a product has, such as "body"; FROZEN for a kept copy's;
            empty if there is none.
        m, n, k, groups: the equivalent ``Product``; 0 if it is none.
        flops: floating-point operations; 0 for elementwise work, whose cost is its bytes.
        bytes: operands read and results written once each.
        phases: of a strided convolution's input gradient, the number of products without inserted zeros that
            it splits into: the phases of the stride that meet any tap. 0 for all other kernels.
        backward: 1 for the first kernel of each backward pass, 0 for all other kernels.
        filtering: 1 if minimal filtering can compute it: a pass of an ungrouped convolution of 3x3 taps
            without stride or dilation. 0 for all other kernels.
    """

    op: str
    kind: str
    role: str
    part: str
    m: int
    n: int
    k: int
    groups: int
    flops: int
    bytes: int
    phases: int = 0
    backward: int = 0
    filtering: int = 0

    @classmethod
    def multiplying(cls, op: str, product: Product, moved: int, role: str = FORWARD, part: str = "") -> Self:
        m, n, k, groups, kind = product
        return cls(op, kind, role, part, m, n, k, groups, product.flops, moved)

    @classmethod
    def moving(cls, op: str, moved: int, role: str = FORWARD) -> Self:
        return cls(op, ELEMENTWISE, role, "", 0, 0, 0, 1, 0, moved)


def convolution(
    x: Sequence[int], weight: Sequence[int], result: Sequence[int], groups: int, *, transposed: bool = False
) -> Product:
    """A convolution as the products of im2col, from shapes (B, C, *area).

    The weight's is (outer, inner, *taps): output channels first, or the input's where it is transposed.
    """
    outer, inner = weight[0] // groups, prod(weight[1:])
    m, n, k = (places(x), inner, outer) if transposed else (places(result), outer, inner)
    # Several groups with one input channel each.
    kind = DEPTHWISE if groups > 1 and x[1] == groups else DENSE
    return Product(m, n, k, groups, kind)


def places(x: Sequence[int]) -> int:
    """How many positions an image batch of shape (B, C, *area) has over samples and area."""
    return x[0] * prod(x[2:])


def _pairs(key: Callable[[Any], Any]) -> tuple[PlainValidator, PlainSerializer]:
    """JSON's keys are texts, so what has others is written as pairs."""
    read = PlainValidator(lambda pairs: {key(one): value for one, value in pairs})
    return read, PlainSerializer(lambda mapping: list(mapping.items()))


@dataclass(frozen=True)
class Work:
    kernels: Annotated[Mapping[Kernel, int], *_pairs(Kernel._make)] = field(default_factory=dict)

    @classmethod
    def of(cls, kernels: Iterable[Kernel]) -> "Work":
        return cls(Counter(kernels))

    def __iter__(self) -> Iterator[tuple[Kernel, int]]:
        return iter(self.kernels.items())

    @property
    def flops(self) -> int:
        return sum(kernel.flops * count for kernel, count in self)

    @property
    def bytes(self) -> int:
        """All bytes moved between memory and the processor, with nothing cached between kernels."""
        return sum(kernel.bytes * count for kernel, count in self)

    @property
    def launches(self) -> int:
        return sum(self.kernels.values())

    @property
    def backwards(self) -> int:
        return sum(kernel.backward * count for kernel, count in self)


@dataclass(frozen=True)
class Cost:
    """A job's cost.

    Attributes:
        down, up: bytes the client receives and sends, by part of the payload.
        steps: its work in order: (the kernels of one step, how many such steps).
        peak: peak memory in bytes, by what occupies it.
    """

    down: Mapping[str, int] = field(default_factory=dict)
    up: Mapping[str, int] = field(default_factory=dict)
    steps: tuple[tuple[Work, int], ...] = ()
    peak: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def work(self) -> Work:
        total: Counter[Kernel] = Counter()
        for work, times in self.steps:
            for kernel, count in work:
                total[kernel] += count * times
        return Work(total)

    @property
    def peak_bytes(self) -> int:
        return sum(self.peak.values())


def between(first: list[Kernel], last: list[Kernel], low: int, high: int, size: int) -> list[Kernel] | None:
    """The kernels at ``size`` by linear interpolation of all numbers; None if that is impossible."""
    # A kernel's first four fields are text, the others are numbers.
    if [kernel[:4] for kernel in first] != [kernel[:4] for kernel in last]:
        return None
    found = []
    for one, other in zip(first, last, strict=True):
        numbers = []
        for start, end in zip(one[4:], other[4:], strict=True):
            step, rest = divmod((end - start) * (size - low), high - low)
            if rest:
                return None
            numbers.append(start + step)
        found.append(Kernel(*one[:4], *numbers))
    return found


@dataclass(frozen=True)
class PhaseTrace:
    """One phase's work by batch size: of a step, and of making its batch where that is counted."""

    name: str
    steps: Mapping[int, Work]
    batches: Mapping[int, Work] = field(default_factory=dict)
    # Whether it trains on the client's own data what the method reports of.
    trains: bool = True

    def work(self, counts: Mapping[int, int]) -> tuple[tuple[Work, int], ...]:
        """The work of so many steps of each batch size, as in ``Cost.steps``."""
        return tuple(
            (made[size], count)
            for size, count in counts.items()
            for made in (self.batches, self.steps)
            if size in made
        )


@dataclass(frozen=True)
class Trace:
    """The cost of one exchange of a method on a model, read off its code by the meta engine.

    Attributes:
        start, finish: kernels before the first step, decoding included, and after the last, with encoding.
        peaks: peak memory in bytes, by what occupies it, for each tuple of the phases' largest batches.
    """

    exchange: str
    down: Mapping[str, int]
    up: Mapping[str, int]
    start: Work
    phases: tuple[PhaseTrace, ...]
    finish: Work
    peaks: Annotated[Mapping[tuple[int, ...], Mapping[str, int]], *_pairs(tuple)]

    def cost(self, steps: Sequence[Mapping[int, int]]) -> Cost:
        """A job's cost, from how many steps of each batch size each phase takes."""
        return Cost(self.down, self.up, self.work(steps), self.peaks[largest(steps)])

    def work(self, steps: Sequence[Mapping[int, int]]) -> tuple[tuple[Work, int], ...]:
        """A job's work in order, as in ``Cost.steps``, from the same."""
        taken = [one for phase, counts in zip(self.phases, steps, strict=True) for one in phase.work(counts)]
        parts = ((self.start, 1), *taken, (self.finish, 1))
        return tuple((one, count) for one, count in parts if one.kernels and count)


def largest(steps: Sequence[Mapping[int, int]]) -> tuple[int, ...]:
    """Each phase's largest batch; 0 for a phase without steps."""
    return tuple(max(counts, default=0) for counts in steps)


Steps: TypeAlias = tuple[Counter[int], ...]
"""For each phase of an exchange, how many steps of each batch size."""


class Traced(NamedTuple):
    """An exchange's work for every kind of client: traces by model, steps by kind of client."""

    traces: tuple[Trace, ...]
    steps: tuple[Steps, ...]


def as_text(trace: Any) -> str:
    """A ``Traced``, or the ``MergeTrace`` of a server, as text, compressed."""
    return base64.b85encode(zlib.compress(TypeAdapter(type(trace)).dump_json(trace))).decode()


def of_text(kind: type[T], text: str) -> T:
    """What ``as_text`` made a text of; a ``ValueError`` for any other."""
    try:
        return TypeAdapter(kind).validate_json(zlib.decompress(base64.b85decode(text)))
    except (zlib.error, ValueError, TypeError) as error:
        raise ValueError("this is no trace") from error
