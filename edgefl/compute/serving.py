"""What an exchange's merge asks of the server: its own functions run on tensors without data.

A merge is run at a few numbers of uploads, each with the payload that the server made for its client, and its
kernels are checked to be affine or quadratic in their number. Where a merge looks at values, it is run on real
ones in place of those, all 1: no class is empty, and nothing that is skipped for a zero is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

import torch
from torch import Tensor

from edgefl.compute.kernels import tensors
from edgefl.compute.meta import payloads
from edgefl.compute.tracer import INPUT, PARAMETERS, Tracer
from edgefl.core.cost import Kernel
from edgefl.core.errors import UserError
from edgefl.core.serving import MergeTrace, through
from edgefl.protocol import Arrival, Ctx, Exchange, Method, Net, Payload, Tree, tree_map
from edgefl.protocol.chance import drawing

_AT, _ONE_MORE = (2, 3, 5), 7


def merge_trace(method: Method, exchange: Exchange, net: Net, clients: int) -> MergeTrace:
    """The work of an exchange's merge by its number of uploads.

    Args:
        method: the method, built on ``net``.
        exchange: one of its exchanges.
        net: the clients' model.
        clients: how many there are.

    Raises:
        UserError: an operator has no cost yet, the merge does not run without training, or its work is
            neither affine nor quadratic in the number of uploads.
    """
    with torch.device("meta"):
        state = method.initial(net.on_meta())
    upload = payloads(method, exchange, net)[1]

    def run(uploads: int) -> tuple[list[Kernel], int]:
        numbers = islice(cycle(range(clients)), uploads)
        try:
            return _merged(exchange, state, upload, net.classes, numbers, _empty)
        except (RuntimeError, NotImplementedError):
            return _merged(exchange, state, upload, net.classes, islice(cycle(range(clients)), uploads), _ones)

    found = {uploads: run(uploads) for uploads in _AT}
    kernels = {uploads: each for uploads, (each, _) in found.items()}
    peaks = tuple(peak for _, peak in found.values())
    fitted = _fitted(kernels, _AT[::2], _AT[1]) or _fitted(kernels | {_ONE_MORE: run(_ONE_MORE)[0]}, _AT, _ONE_MORE)
    if fitted is None:
        raise UserError(
            f"the server's work in {exchange.name!r} is neither affine nor quadratic in the number of uploads",
        )
    return MergeTrace(_AT, *fitted, peaks)


def _fitted(
    kernels: Mapping[int, Sequence[Kernel]], through_: Sequence[int], check: int
) -> tuple[tuple[tuple[Kernel, tuple[int, ...]], ...], tuple[tuple[Kernel, ...], ...]] | None:
    """Kernels by how they grow (see ``MergeTrace``), if polynomials through some numbers of uploads fit."""

    def fits(values: Callable[[int], int]) -> bool:
        return through(through_, [values(one) for one in through_], check) == values(check)

    counts = {uploads: Counter(each) for uploads, each in kernels.items()}
    regular = {
        kernel: tuple(counts[one][kernel] for one in _AT)
        for kernel in dict.fromkeys(kernel for each in kernels.values() for kernel in each)
        if fits(lambda one, kernel=kernel: counts[one][kernel])  # type: ignore[misc]
    }
    rest = {one: [kernel for kernel in each if kernel not in regular] for one, each in kernels.items()}
    names = {tuple(kernel[:4] for kernel in each) for each in rest.values()}
    if len(names) > 1:
        return None
    for place in range(len(rest[check])):
        for side in range(4, len(Kernel._fields)):
            if not fits(lambda one, at=(place, side): rest[one][at[0]][at[1]]):  # type: ignore[misc]
                return None
    return tuple(regular.items()), tuple(zip(*(rest[one] for one in _AT), strict=True))


class _ServerTracer(Tracer):  # type: ignore[no-untyped-call]
    """Follows a merge, also where it asks which values are not 0: all of them."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """See ``Tracer``."""
        if func is torch.ops.aten.nonzero.default and args[0].device.type == "meta":
            args = (torch.ones(args[0].shape),)
        return super().__torch_dispatch__(func, types, args, kwargs)


def _empty(leaf: Tensor) -> Tensor:
    return torch.empty(leaf.shape, dtype=leaf.dtype, device=leaf.device)


def _ones(leaf: Tensor) -> Tensor:
    return leaf if leaf.device.type != "meta" else torch.ones(leaf.shape, dtype=leaf.dtype)


def _merged(
    exchange: Exchange,
    state: Tree,
    upload: Payload,
    classes: int,
    clients: Iterable[int],
    fill: Callable[[Tensor], Tensor],
) -> tuple[list[Kernel], int]:
    """The kernels of one merge and of its clients' payloads, and the memory at the worst moment."""
    tracer = _ServerTracer()
    # Numbers that are there are kept: a method may read them.
    server = tree_map(lambda leaf: fill(leaf) if leaf.device.type == "meta" else leaf, state)
    uploads = [(client, tree_map(fill, upload)) for client in clients]
    counts = fill(torch.empty(classes, device="meta"))
    with torch.no_grad(), drawing(counts), tracer:
        for tree, part in ((server, PARAMETERS), ([one for _, one in uploads], INPUT)):
            for tensor in tensors(tree):
                tracer.watch(tensor, part)
        arrivals = [
            Arrival(one, exchange.down(server, client), Ctx(client, 0, 0.1, 1, 1, counts), 0, 1.0)
            for client, one in uploads
        ]
        del uploads
        merged = exchange.merge(server, arrivals)
    del merged
    return tracer.kernels, sum(tracer.peak().values())
