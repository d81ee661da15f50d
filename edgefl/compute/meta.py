"""Traces: a method's own functions run on meta tensors, and what they cost.

Bytes are the payload's, kernels are the operators that autograd really calls, memory is what is alive. A step
is traced at the clients' batch sizes; where kernels are affine in the batch size (a third size is checked),
the sizes between are interpolated.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from edgefl.compute.kernels import UnknownOperatorError
from edgefl.compute.loading import coding_kernels
from edgefl.compute.tracer import ACTIVATIONS, GRADIENTS, INPUT, OUTSIDE, Tracer
from edgefl.core.cost import UPDATE, Kernel, PhaseTrace, Trace, Work, between, largest
from edgefl.core.errors import UserError
from edgefl.core.user_code import raised_at, returned
from edgefl.protocol import (
    BUFFERS,
    Assignment,
    Batch,
    Carry,
    Ctx,
    Exchange,
    Fold,
    Method,
    Net,
    Payload,
    Phase,
    Tree,
    bytes_by_part,
    nbytes,
    tree_map,
)
from edgefl.protocol.meta_device import meta_device


def _values(payload: Payload, received: Payload | None) -> dict[str, int]:  # noqa: ARG001 - the signature of codecs
    return bytes_by_part(payload)


class Sizes(NamedTuple):
    """Payloads on the wire: (payload, reference that both ends have) -> bytes by part, each way.

    Attributes:
        coded: whether a payload's values are changed on the way down and on the way up.
    """

    down: Callable[[Payload, Payload | None], dict[str, int]] = _values
    up: Callable[[Payload, Payload | None], dict[str, int]] = _values
    coded: tuple[bool, bool] = (False, False)


_PLAIN = Sizes()


def trace(
    method: Method,
    exchange: Exchange,
    net: Net,
    steps: Sequence[Sequence[Mapping[int, int]]],
    wire: Sizes = _PLAIN,
    batches: Callable[[Phase, Iterable[int]], Mapping[int, list[Kernel]]] | None = None,
) -> Trace:
    """The cost of one exchange for the clients of one model.

    Args:
        method: built on ``net``, the clients' model.
        steps: for each kind of client and each phase, how many steps of each batch size it takes.
        batches: the kernels that make a phase's batches of some sizes; None leaves them out.

    Raises:
        UnknownOperatorError: an operator has no cost yet.
    """
    fold = exchange.work
    with meta_device():
        given = _given(method, exchange, net)
        # A model without clients still has a payload.
        kinds = {largest(one) for one in steps} or {(0,) * len(fold.phases)}
        wholes = {most: _run(fold, given, most) for most in sorted(kinds)}
        # Every phase's steps, from the carry that the phases before it leave.
        sizes = [{size for one in steps for size in one[place]} for place in range(len(fold.phases))]
        phases = []
        for place, (phase, carry) in enumerate(_carries(fold, given, [min(one, default=0) for one in sizes])):
            seen = {most[place]: whole.steps[place] for most, whole in wholes.items() if most[place]}
            works = _by_size(partial(traced_step, phase, carry, given.shape), sizes[place], seen)
            made = batches(phase, works) if batches else {}
            phases.append(
                PhaseTrace(
                    phase.name,
                    works,
                    trains=phase.reports and phase.data == "train",
                    batches={size: Work.of(kernels) for size, kernels in made.items()},
                )
            )
    some = next(iter(wholes.values()))
    down, up = wire.down(given.payload, None), wire.up(some.upload, given.payload)
    decode = coding_kernels("decode", given.payload, down) if wire.coded[0] else []
    encode = coding_kernels("encode", some.upload, up) if wire.coded[1] else []
    return Trace(
        exchange=exchange.name,
        down=down,
        up=up,
        start=Work.of([*decode, *some.start]),
        phases=tuple(phases),
        finish=Work.of([*some.finish, *encode]),
        peaks={most: whole.peak for most, whole in wholes.items()},
    )


class _Given(NamedTuple):
    """What a job begins with, and the shape of one sample."""

    payload: Payload
    state: Tree | None
    ctx: Ctx
    shape: tuple[int, ...]


def _given(method: Method, exchange: Exchange, net: Net) -> _Given:
    initial = net.on_meta()
    ctx = Ctx(client=0, round=0, lr=0.1, steps=1, samples=1, class_counts=torch.empty(net.classes))
    state = method.client(initial)
    return _Given(
        returned(exchange.down(method.initial(initial), 0), dict, exchange.down, "a payload (a dict)"),
        returned(state, (dict, type(None)), method.client, "a client state (a dict) or None"),
        exchange.context(Assignment(ctx)),
        net.shape,
    )


def peak_bytes(method: Method, exchange: Exchange, net: Net, batch_size: int) -> int:
    """The peak memory of one exchange with batches of one size, in bytes."""
    with meta_device():
        sizes = (batch_size,) * len(exchange.work.phases)
        return sum(_run(exchange.work, _given(method, exchange, net), sizes).peak.values())


def payloads(method: Method, exchange: Exchange, net: Net) -> tuple[Payload, Payload]:
    """What a client receives and sends in one exchange, on the meta device."""
    with meta_device():
        given = _given(method, exchange, net)
        return given.payload, _run(exchange.work, given, (0,) * len(exchange.work.phases)).upload


@contextmanager
def _placed() -> Iterator[None]:
    """Puts the file and line in the user's code, if it is theirs, to an operator whose cost is unknown."""
    try:
        yield
    except UnknownOperatorError as error:
        error.where = str(raised_at(error) or error.where)
        raise


@dataclass(frozen=True)
class _Whole:
    start: list[Kernel]
    steps: list[list[Kernel]]
    finish: list[Kernel]
    peak: dict[str, int]
    upload: Payload


@_placed()
def _run(fold: Fold, given: _Given, sizes: Sequence[int], tracer: Tracer | None = None) -> _Whole:
    """The fold from start to finish with one step of each phase, at its largest batch."""
    tracer = tracer or Tracer()
    # Copies that nothing else holds, so that memory is freed when the fold drops it.
    received = tree_map(_fresh, given.payload)
    own = None if given.state is None else tree_map(_fresh, given.state)
    with tracer:
        tracer.label({"weights": {"received": received, "own": own}})
        start = tracer.kernels
        carry = fold.started(received, own, given.ctx)
        del received, own
        tracer.label(carry)
        steps: list[list[Kernel]] = []
        for phase, size in zip(fold.phases, sizes, strict=True):
            steps.append(tracer.begin_step(carry) if size else [])
            if size:
                batch = _batch(phase, size, given.shape)
                tracer.watch(batch.x, INPUT)
                tracer.watch(batch.y, INPUT)
                carry = _stepped(phase, carry, batch)
                del batch
                tracer.label(carry)
        finish = tracer.begin_step(carry)
        upload = fold.finished(carry, given.ctx, None)[0]
    return _Whole(start, steps, finish, tracer.peak(), upload)


def _fresh(leaf: Tensor) -> Tensor:
    # On the meta device, empty_like imports SymPy, which takes half a second.
    return torch.empty(leaf.shape, dtype=leaf.dtype)


def _batch(phase: Phase, size: int, shape: tuple[int, ...]) -> Batch:
    views = (phase.views,) if phase.views > 1 else ()
    # The batch exists before the step: allocating it is not the client's work.
    return Batch(torch.empty(*views, size, *shape), torch.empty(size, dtype=torch.int64))


def _carries(fold: Fold, given: _Given, sizes: Sequence[int]) -> Iterator[tuple[Phase, Carry]]:
    """Every phase with the carry that it begins with, where each takes a step of a size; 0 for none."""
    carry = fold.started(given.payload, given.state, given.ctx)
    for phase, size in zip(fold.phases, sizes, strict=True):
        yield phase, carry
        if size and phase is not fold.phases[-1]:
            carry = _stepped(phase, carry, _batch(phase, size, given.shape))


def traced_step(phase: Phase, carry: Carry, shape: tuple[int, ...], size: int) -> Tracer:
    """One step on a batch of ``size`` samples, with its kernels in order; all on the meta device."""
    batch = _batch(phase, size, shape)
    tracer = Tracer()
    with tracer:
        tracer.begin_step(carry)
        _stepped(phase, carry, batch)
    return tracer


@dataclass(frozen=True)
class LayerWork:
    """What one layer does, or work outside of all layers, in one client's share of an exchange.

    Attributes:
        what: "layer" or "other work".
        name: the module's dotted name, such as "body.conv1"; in words for other work.
        kind: the module's class; empty for other work.
        work: its kernels in all steps, by their role.
        parameter_bytes: of its weights and running statistics.
        gradient_bytes: of the gradients that a step's backward pass leaves for its weights.
        activation_bytes: of its results that a step keeps until the backward pass, at the largest batch.
    """

    what: str
    name: str
    kind: str
    work: Mapping[str, Work]
    parameter_bytes: int
    gradient_bytes: int
    activation_bytes: int

    @property
    def memory_bytes(self) -> int:
        """Weights, gradients and kept results, in fp32."""
        return self.parameter_bytes + self.gradient_bytes + self.activation_bytes


# Work outside of all layers.
_UPDATE, _BATCHES, _AROUND = "update", "making batches", "before and after"


def by_layer(
    method: Method, exchange: Exchange, net: Net, steps: Sequence[Mapping[int, int]], trace: Trace
) -> list[LayerWork]:
    """One client's share of an exchange: its layers, in the order of their first calls, and all other work.

    Together they have all kernels of the exchange; ``steps`` has each phase's number by batch size.
    """
    fold, whole, held = exchange.work, Tracer(), Counter[str]()
    # By place and role.
    found: dict[str, dict[str, Counter[Kernel]]] = defaultdict(lambda: defaultdict(Counter))
    with meta_device():
        given = _given(method, exchange, net)
        _run(fold, given, largest(steps), whole)
        if any(steps):
            weights = fold.start(given.payload, given.state, given.ctx).get("weights", {})
            for part, tensors in weights.items():
                for name, tensor in tensors.items():
                    owner = "body" if part == BUFFERS else part
                    held[".".join([owner, *name.split(".")[:-1]])] += nbytes(tensor)
        for place, work, times in _beside(trace, steps):
            for kernel, count in work:
                found[place][kernel.role][kernel] += count * times
        sizes = [min(one, default=0) for one in steps]
        for (phase, carry), taken in zip(_carries(fold, given, sizes), steps, strict=True):
            for size, count in taken.items():
                step = traced_step(phase, carry, given.shape, size)
                for layer, kernel in zip(step.layers, step.kernels, strict=True):
                    # Of a head without modules, products have the weights' part.
                    inside = kernel.part if layer == OUTSIDE and kernel.part in held else layer
                    found[_UPDATE if kernel.role == UPDATE else inside][kernel.role][kernel] += count
    gradients, activations = whole.kept(GRADIENTS), whole.kept(ACTIVATIONS)

    def one(what: str, name: str) -> LayerWork:
        work = {role: Work(kernels) for role, kernels in found.get(name, {}).items()}
        memory = held[name], gradients[name], activations[name]
        return LayerWork(what, name, whole.kinds.get(name, ""), work, *memory)

    layers = [one("layer", name) for name in dict.fromkeys([*whole.kinds, *held])]
    others = [one("other work", name) for name in (OUTSIDE, _UPDATE, _BATCHES, _AROUND) if name in found]
    return [layer for layer in layers if layer.work or layer.memory_bytes] + others


def _beside(trace: Trace, steps: Sequence[Mapping[int, int]]) -> Iterator[tuple[str, Work, int]]:
    """The work beside steps, each with its place and how often it is done."""
    yield from ((_AROUND, work, 1) for work in (trace.start, trace.finish))
    for phase, taken in zip(trace.phases, steps, strict=True):
        yield from ((_BATCHES, phase.batches[size], taken[size]) for size in taken if size in phase.batches)


def _stepped(phase: Phase, carry: Carry, batch: Batch) -> Carry:
    """One step.

    Raises:
        UserError: the model cannot train on a batch of this size, such as batch norm on one sample.
    """
    try:
        return phase.stepped(carry, batch)
    except ValueError as error:
        # torch's words; a method's own errors are told with their file and line.
        if "more than 1 value per channel" not in str(error):
            raise
        raise UserError(
            f"a step of {phase.name!r} on a batch of {len(batch.y)} fails: {error}",
            where="local.batch_size",
            hint="use another batch size",
        ) from error


def _by_size(
    step: Callable[[int], Tracer], sizes: set[int], seen: Mapping[int, list[Kernel]]
) -> dict[int, Work]:
    """The work of a step at every size, traced at three and interpolated where that is exact."""
    ordered = sorted(sizes)
    few = {ordered[0], ordered[len(ordered) // 2], ordered[-1]} if ordered else set()
    known = {size: seen[size] if size in seen else step(size).kernels for size in few}
    if len(ordered) > len(few):
        low, middle, high = ordered[0], ordered[len(ordered) // 2], ordered[-1]
        affine = between(known[low], known[high], low, high, middle) == known[middle]
        for size in sizes - few:
            straight = between(known[low], known[high], low, high, size) if affine else None
            known[size] = straight if straight is not None else step(size).kernels
    return {size: Work.of(known[size]) for size in ordered}
