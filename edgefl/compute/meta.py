"""Traces: a method's own functions run on meta tensors, and what they cost.

Bytes are the payload's, kernels are the operators that autograd really calls, memory is what is alive. A step
is traced at the clients' batch sizes; where kernels are affine in the batch size (a third size is checked),
the sizes between are interpolated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from edgefl.compute.tracer import INPUT, Tracer
from edgefl.core.cost import Kernel, PhaseTrace, Trace, Work, largest
from edgefl.core.errors import UserError
from edgefl.protocol import (
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


def _values(payload: Payload, received: Payload | None) -> dict[str, int]:  # noqa: ARG001 - the signature of codecs
    return bytes_by_part(payload)


class Sizes(NamedTuple):
    """Payloads on the wire: (payload, reference that both ends have) -> bytes by part, each way."""

    down: Callable[[Payload, Payload | None], dict[str, int]] = _values
    up: Callable[[Payload, Payload | None], dict[str, int]] = _values


_PLAIN = Sizes()


def trace(
    method: Method,
    exchange: Exchange,
    net: Net,
    steps: Sequence[Sequence[Mapping[int, int]]],
    wire: Sizes = _PLAIN,
) -> Trace:
    """The cost of one exchange for the clients of one model.

    Args:
        method: the method, built on ``net``.
        exchange: one of its exchanges.
        net: the clients' model.
        steps: for each kind of client and each phase, how many steps of each batch size it takes.
        wire: the bytes of payloads on the wire.

    Raises:
        UnknownOperatorError: an operator has no cost yet.
    """
    fold = exchange.work
    with torch.device("meta"):
        given = _given(method, exchange, net)
        # A model without clients still has a payload.
        kinds = {largest(one) for one in steps} or {(0,) * len(fold.phases)}
        wholes = {sizes: _run(fold, given, sizes) for sizes in sorted(kinds)}
        seen: list[dict[int, list[Kernel]]] = [
            {sizes[place]: whole.steps[place] for sizes, whole in wholes.items() if sizes[place]}
            for place in range(len(fold.phases))
        ]
        phases = _phases(fold, given, steps, seen)
    some = next(iter(wholes.values()))
    return Trace(
        exchange=exchange.name,
        down=wire.down(given.payload, None),
        up=wire.up(some.upload, given.payload),
        start=Work.of(some.start),
        phases=phases,
        finish=Work.of(some.finish),
        peaks={sizes: whole.peak for sizes, whole in wholes.items()},
        resident=nbytes(given.state) if given.state is not None else 0,
    )


class _Given(NamedTuple):
    """The inputs of a job, and the shape of one sample."""

    payload: Payload
    state: Tree | None
    ctx: Ctx
    shape: tuple[int, ...]


def _given(method: Method, exchange: Exchange, net: Net) -> _Given:
    initial = net.init(0)
    ctx = Ctx(client=0, round=0, lr=0.1, steps=1, samples=1, class_counts=torch.empty(net.classes))
    return _Given(
        exchange.down(method.server(initial), 0),
        method.client(initial),
        exchange.context(Assignment(ctx)),
        net.shape,
    )


def peak_bytes(method: Method, exchange: Exchange, net: Net, batch_size: int) -> int:
    """The peak memory of one exchange with batches of one size, in bytes."""
    with torch.device("meta"):
        sizes = (batch_size,) * len(exchange.work.phases)
        return sum(_run(exchange.work, _given(method, exchange, net), sizes).peak.values())


@dataclass(frozen=True)
class _Whole:
    start: list[Kernel]
    steps: list[list[Kernel]]
    finish: list[Kernel]
    peak: dict[str, int]
    upload: Payload


def _run(fold: Fold, given: _Given, sizes: Sequence[int]) -> _Whole:
    """The fold from start to finish with one step of each phase, at its largest batch."""
    tracer = Tracer()
    # Copies that nothing else holds, so that memory is freed when the fold drops it.
    received = tree_map(_fresh, given.payload)
    own = None if given.state is None else tree_map(_fresh, given.state)
    with tracer:
        tracer.label({"weights": {"received": received, "own": own}})
        start = tracer.kernels
        carry = fold.start(received, own, given.ctx)
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
        upload, _ = fold.finish(carry, given.ctx)
    return _Whole(start, steps, finish, tracer.peak(), upload)


def _fresh(leaf: Tensor) -> Tensor:
    # On the meta device, empty_like imports SymPy, which takes half a second.
    return torch.empty(leaf.shape, dtype=leaf.dtype)


def _batch(phase: Phase, size: int, shape: tuple[int, ...]) -> Batch:
    views = (phase.views,) if phase.views > 1 else ()
    # The batch exists before the step: allocating it is not the client's work.
    return Batch(torch.empty(*views, size, *shape), torch.empty(size, dtype=torch.int64))


def _phases(
    fold: Fold,
    given: _Given,
    steps: Sequence[Sequence[Mapping[int, int]]],
    seen: Sequence[Mapping[int, list[Kernel]]],
) -> tuple[PhaseTrace, ...]:
    """Every phase's steps, from the carry that the phases before it leave; ``seen`` has some already."""
    carry = fold.start(given.payload, given.state, given.ctx)
    found = []
    for place, phase in enumerate(fold.phases):
        sizes = {size for one in steps for size in one[place]}
        kernels = partial(step_kernels, phase, carry, given.shape)
        found.append(PhaseTrace(phase.name, _by_size(kernels, sizes, seen[place])))
        if sizes and phase is not fold.phases[-1]:
            carry = _stepped(phase, carry, _batch(phase, min(sizes), given.shape))
    return tuple(found)


def step_kernels(phase: Phase, carry: Carry, shape: tuple[int, ...], size: int) -> list[Kernel]:
    """The kernels of one step on a batch of ``size`` samples, in order; all on the meta device."""
    batch = _batch(phase, size, shape)
    tracer = Tracer()
    with tracer:
        found = tracer.begin_step(carry)
        _stepped(phase, carry, batch)
    return found


def _stepped(phase: Phase, carry: Carry, batch: Batch) -> Carry:
    """One step.

    Raises:
        UserError: the model cannot train on a batch of this size, such as batch norm on one sample.
    """
    try:
        return phase.step(carry, batch)
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
    kernels: Callable[[int], list[Kernel]], sizes: set[int], seen: Mapping[int, list[Kernel]]
) -> dict[int, Work]:
    """The work of a step at every size, traced at three and interpolated where that is exact."""
    ordered = sorted(sizes)
    few = {ordered[0], ordered[len(ordered) // 2], ordered[-1]} if ordered else set()
    known = {size: seen[size] if size in seen else kernels(size) for size in few}
    if len(ordered) > len(few):
        low, middle, high = ordered[0], ordered[len(ordered) // 2], ordered[-1]
        affine = between(known[low], known[high], low, high, middle) == known[middle]
        for size in sizes - few:
            straight = between(known[low], known[high], low, high, size) if affine else None
            known[size] = straight if straight is not None else kernels(size)
    return {size: Work.of(known[size]) for size in ordered}


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


def forward_kernels(net: Net, size: int) -> list[Kernel]:
    """The kernels of an evaluation of ``size`` samples, in order."""
    with torch.device("meta"):
        weights, x = net.init(0), torch.empty(size, *net.shape)
        tracer = Tracer()
        with tracer, torch.no_grad():
            net.logits(weights, x)
    return tracer.kernels
