"""Traces: a method's own functions run on meta tensors, and what they cost.

Bytes are the payload's, kernels are the operators that autograd really calls, memory is what is alive. A step
is traced at the clients' batch sizes; where kernels are affine in the batch size (a third size is checked),
the sizes between are interpolated.

A server's merge is run at a few numbers of uploads, each with the payload that the server makes for its
client, and its kernels are checked to be affine or quadratic in that number. A merge that looks at values is
run on real ones, all 1: no class is empty, and nothing that is skipped for a zero is left out.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import cycle
from typing import NamedTuple

import torch
from torch import Tensor

from edgefl.compute.kernels import tensors
from edgefl.compute.loading import coding_kernels
from edgefl.compute.tracer import ACTIVATIONS, GRADIENTS, INPUT, OUTSIDE, PARAMETERS, Tracer
from edgefl.core.cost import UPDATE, Kernel, PhaseTrace, Trace, Work, between, largest
from edgefl.core.errors import UserError
from edgefl.core.merging import AT, CHECK, COUNTS, MergeTrace, through
from edgefl.core.user_code import returned
from edgefl.protocol import (
    BUFFERS,
    Arrival,
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
    nbytes,
    tree_map,
)
from edgefl.protocol.chance import drawing
from edgefl.protocol.codec import Channel
from edgefl.protocol.codecs.raw import Params as Raw
from edgefl.protocol.meta_device import meta_device

_UNCODED = Channel(Raw(), "")


def trace(
    method: Method,
    exchange: Exchange,
    net: Net,
    steps: Sequence[Sequence[Mapping[int, int]]],
    wire: tuple[Channel, Channel] = (_UNCODED, _UNCODED),
    batches: Callable[[Phase, Iterable[int]], Mapping[int, list[Kernel]]] | None = None,
) -> Trace:
    """The cost of one exchange for the clients of one model, ``net``, which the method is built on.

    ``steps`` are, for each kind of client and each phase, how many of each batch size it takes; ``wire`` is
    to the client and to the server; ``batches`` has the kernels that make a phase's batches of some sizes.
    """
    with meta_device():
        job = _job(method, exchange, net)
        # A model without clients still has a payload.
        kinds = {largest(one) for one in steps} or {(0,) * len(job.fold.phases)}
        wholes = {most: _run(job, most) for most in sorted(kinds)}
        # Every phase's steps, from the carry that the phases before it leave.
        sizes = [{size for one in steps for size in one[place]} for place in range(len(job.fold.phases))]
        phases = []
        for place, (phase, carry) in enumerate(_carries(job, sizes)):
            seen = {most[place]: whole.steps[place] for most, whole in wholes.items() if most[place]}
            works = _by_size(partial(traced_step, phase, carry, job.shape), sizes[place], seen)
            made = batches(phase, works) if batches else {}
            making = {size: Work.of(kernels) for size, kernels in made.items()}
            trains = phase.reports and phase.data == "train"
            phases.append(PhaseTrace(phase.name, works, making, trains))
    some, (to_client, to_server) = next(iter(wholes.values())), wire
    down, up = to_client.sizes(job.payload), to_server.sizes(some.upload, job.payload)
    return Trace(
        exchange=exchange.name,
        down=down,
        up=up,
        start=Work.of([*coding_kernels("decode", to_client.codec, job.payload, down), *some.start]),
        phases=tuple(phases),
        finish=Work.of([*some.finish, *coding_kernels("encode", to_server.codec, some.upload, up)]),
        peaks={most: whole.tracer.peak() for most, whole in wholes.items()},
    )


class _Job(NamedTuple):
    fold: Fold
    payload: Payload
    state: Tree | None
    ctx: Ctx
    shape: tuple[int, ...]  # of one sample


def _job(method: Method, exchange: Exchange, net: Net) -> _Job:
    initial = net.on_meta()
    ctx = Ctx(client=0, round=0, lr=0.1, steps=1, samples=1, class_counts=torch.empty(net.classes))
    state = method.client(initial)
    return _Job(
        exchange.work,
        returned(exchange.down(method.initial(initial), 0), dict, exchange.down, "a payload (a dict)"),
        returned(state, (dict, type(None)), method.client, "a client state (a dict) or None"),
        exchange.context(Assignment(ctx)),
        net.shape,
    )


def payloads(method: Method, exchange: Exchange, net: Net) -> tuple[Payload, Payload]:
    """What a client receives and sends in one exchange, on the meta device."""
    with meta_device():
        job = _job(method, exchange, net)
        return job.payload, _run(job, (0,) * len(job.fold.phases)).upload


class _Whole(NamedTuple):
    start: list[Kernel]
    steps: list[list[Kernel]]
    finish: list[Kernel]
    upload: Payload
    tracer: Tracer


def _run(job: _Job, sizes: Sequence[int]) -> _Whole:
    """The fold from start to finish with one step of each phase, at its largest batch."""
    # Copies that nothing else holds, so that memory is freed when the fold drops it.
    received = tree_map(torch.clone, job.payload)
    own = None if job.state is None else tree_map(torch.clone, job.state)
    with Tracer() as tracer:
        tracer.label({"weights": {"received": received, "own": own}})
        start = tracer.kernels
        carry = job.fold.started(received, own, job.ctx)
        del received, own
        steps: list[list[Kernel]] = []
        for phase, size in zip(job.fold.phases, sizes, strict=True):
            steps.append(tracer.begin_step(carry) if size else [])
            if size:
                batch = _batch(phase, size, job.shape)
                tracer.watch(batch.x, INPUT)
                tracer.watch(batch.y, INPUT)
                carry = _stepped(phase, carry, batch)
                del batch
        finish = tracer.begin_step(carry)
        upload = job.fold.finished(carry, job.ctx, None)[0]
    return _Whole(start, steps, finish, upload, tracer)


def _batch(phase: Phase, size: int, shape: tuple[int, ...]) -> Batch:
    views = (phase.views,) if phase.views > 1 else ()
    # The batch exists before the step: allocating it is not the client's work.
    return Batch(torch.empty(*views, size, *shape), torch.empty(size, dtype=torch.int64))


def _carries(job: _Job, sizes: Sequence[Collection[int]]) -> Iterator[tuple[Phase, Carry]]:
    """Every phase with the carry that it begins with, where each before it takes a step, if it has any."""
    carry = job.fold.started(job.payload, job.state, job.ctx)
    for phase, of_phase in zip(job.fold.phases, sizes, strict=True):
        yield phase, carry
        if of_phase and phase is not job.fold.phases[-1]:
            carry = _stepped(phase, carry, _batch(phase, min(of_phase), job.shape))


def traced_step(phase: Phase, carry: Carry, shape: tuple[int, ...], size: int) -> Tracer:
    """One step on a batch of ``size`` samples, with its kernels in order; all on the meta device."""
    batch = _batch(phase, size, shape)
    with Tracer() as tracer:
        tracer.begin_step(carry)
        _stepped(phase, carry, batch)
    return tracer


@dataclass(frozen=True)
class LayerWork:
    """What one layer does, or work outside of all layers, in one client's share of an exchange.

    ``memory`` is bytes of its weights and running statistics, of the gradients that a step's backward pass
    leaves for its weights, and of its results that a step keeps until then, at the largest batch.
    """

    what: str  # "layer" or "other work"
    name: str  # the module's dotted name, such as "body.conv1"; in words for other work
    kind: str  # the module's class; empty for other work
    work: Mapping[str, Work]  # in all steps, by role
    memory: Mapping[str, int]


# Work outside of all layers.
_UPDATE, _BATCHES, _AROUND = "update", "making batches", "before and after"


def by_layer(
    method: Method, exchange: Exchange, net: Net, steps: Sequence[Mapping[int, int]], trace: Trace
) -> list[LayerWork]:
    """One client's share of an exchange: its layers, in the order of first calls, and all other work."""
    held = Counter[str]()
    # By place and role.
    found: dict[str, dict[str, Counter[Kernel]]] = defaultdict(lambda: defaultdict(Counter))
    with meta_device():
        job = _job(method, exchange, net)
        tracer = _run(job, largest(steps)).tracer
        if any(steps):
            weights = job.fold.start(job.payload, job.state, job.ctx).get("weights", {})
            for part, named in weights.items():
                for name, tensor in named.items():
                    owner = "body" if part == BUFFERS else part
                    held[".".join([owner, *name.split(".")[:-1]])] += nbytes(tensor)
        for place, work, times in _beside(trace, steps):
            for kernel, count in work:
                found[place][kernel.role][kernel] += count * times
        for (phase, carry), taken in zip(_carries(job, steps), steps, strict=True):
            for size, count in taken.items():
                step = traced_step(phase, carry, job.shape, size)
                for layer, kernel in zip(step.layers, step.kernels, strict=True):
                    # Of a head without modules, products have the weights' part.
                    inside = kernel.part if layer == OUTSIDE and kernel.part in held else layer
                    found[_UPDATE if kernel.role == UPDATE else inside][kernel.role][kernel] += count
    memory = {
        "parameter_bytes": held,
        "gradient_bytes": tracer.kept(GRADIENTS),
        "activation_bytes": tracer.kept(ACTIVATIONS),
    }

    def one(what: str, name: str) -> LayerWork:
        work = {role: Work(kernels) for role, kernels in found.get(name, {}).items()}
        own = {kind: of_layer[name] for kind, of_layer in memory.items()}
        return LayerWork(what, name, tracer.kinds.get(name, ""), work, own)

    layers = [one("layer", name) for name in dict.fromkeys([*tracer.kinds, *held])]
    others = [one("other work", name) for name in (OUTSIDE, _UPDATE, _BATCHES, _AROUND) if name in found]
    return [layer for layer in layers if layer.work or any(layer.memory.values())] + others


def _beside(trace: Trace, steps: Sequence[Mapping[int, int]]) -> Iterator[tuple[str, Work, int]]:
    """The work beside steps, each with its place and how often it is done."""
    yield from ((_AROUND, work, 1) for work in (trace.start, trace.finish))
    for phase, taken in zip(trace.phases, steps, strict=True):
        yield from ((_BATCHES, phase.batches[size], taken[size]) for size in taken if size in phase.batches)


def _stepped(phase: Phase, carry: Carry, batch: Batch) -> Carry:
    """A step; a ``UserError`` if the model cannot train on so few samples, such as batch norm on one."""
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
    kernels = cache(lambda size: seen[size] if size in seen else step(size).kernels)
    ordered, straight = sorted(sizes), dict[int, list[Kernel] | None]()
    if len(ordered) > 1:
        low, middle, high = ordered[0], ordered[len(ordered) // 2], ordered[-1]
        line = partial(between, kernels(low), kernels(high), low, high)
        if line(middle) == kernels(middle):
            straight = {size: line(size) for size in ordered}
    return {size: Work.of(straight.get(size) or kernels(size)) for size in ordered}


def merge_trace(method: Method, exchange: Exchange, net: Net, clients: int) -> MergeTrace:
    """The work of an exchange's merge; a ``UserError`` if it grows faster than with its uploads' square."""
    found = {uploads: one_merge(method, exchange, net, clients, uploads) for uploads in COUNTS}
    peaks = [peak for _, peak in found.values()]
    # One upload alone may take another way, such as no sum.
    del found[1]
    counts = {uploads: Counter(kernels) for uploads, (kernels, _) in found.items()}
    every = {one: [counts[uploads][one] for uploads in AT] for each in counts.values() for one in each}
    regular = {one: at for one, at in every.items() if through(at, CHECK) == counts[CHECK][one]}
    rest = [[kernel for kernel in kernels if kernel not in regular] for kernels, _ in found.values()]
    same = len({tuple(kernel[:4] for kernel in each) for each in rest}) == 1
    numbers = (zip(*(one[4:] for one in each), strict=True) for each in zip(*rest, strict=False))
    if not same or any(through(at, CHECK) != last for each in numbers for *at, last in each):
        what = f"the server's work in {exchange.name!r} is neither affine nor quadratic in its uploads"
        raise UserError(what)
    return MergeTrace(list(regular.items()), list(zip(*rest[:-1], strict=True)), peaks)


def one_merge(
    method: Method, exchange: Exchange, net: Net, clients: int, uploads: int
) -> tuple[list[Kernel], int]:
    """The kernels of a merge, those of its clients' payloads included, and its memory at the worst moment."""
    with meta_device():
        given = method.initial(net.on_meta()), payloads(method, exchange, net)[1], torch.empty(net.classes)

    def run(fill: Callable[[Tensor], Tensor]) -> tuple[list[Kernel], int]:
        server, upload, counts = (tree_map(fill, one) for one in given)
        sent = [tree_map(torch.clone, upload) for _ in range(uploads)]
        with torch.no_grad(), drawing(counts), Tracer(nonzero=True) as tracer:
            for tree, part in ((server, PARAMETERS), (sent, INPUT)):
                for tensor in tensors(tree):
                    tracer.watch(tensor, part)
            arrivals = [
                Arrival(one, exchange.down(server, client), Ctx(client, 0, 0.1, 1, 1, counts), 0, 1.0)
                for client, one in zip(cycle(range(clients)), sent, strict=False)
            ]
            exchange.merge(server, arrivals)
        return tracer.kernels, sum(tracer.peak().values())

    try:
        return run(lambda leaf: leaf)
    except RuntimeError:
        return run(lambda leaf: torch.ones(leaf.shape, dtype=leaf.dtype) if leaf.is_meta else leaf)
