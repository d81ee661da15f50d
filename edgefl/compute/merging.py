"""What an exchange's merge asks of the server: its own functions run on tensors without data.

A merge is run at a few numbers of uploads, each with the payload that the server makes for its client, and
its kernels are checked to be affine or quadratic in that number. A merge that looks at values is run on real
ones, all 1: no class is empty, and nothing that is skipped for a zero is left out.
"""

from collections import Counter
from collections.abc import Callable
from itertools import cycle

import torch
from torch import Tensor

from edgefl.compute.kernels import tensors
from edgefl.compute.meta import payloads
from edgefl.compute.tracer import INPUT, PARAMETERS, Tracer
from edgefl.core.cost import Kernel
from edgefl.core.errors import UserError
from edgefl.core.merging import AT, CHECK, COUNTS, MergeTrace, through
from edgefl.protocol import Arrival, Ctx, Exchange, Method, Net, tree_map
from edgefl.protocol.chance import drawing
from edgefl.protocol.meta_device import meta_device


def merge_trace(method: Method, exchange: Exchange, net: Net, clients: int) -> MergeTrace:
    """The work of an exchange's merge; its arguments are those of ``one_merge``.

    Raises:
        UserError: an operator has no cost yet, or the work grows faster than with the uploads' square.
    """
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
    growing = list(zip(*rest[:-1], strict=True))
    return MergeTrace(list(regular.items()), growing, peaks)


def one_merge(
    method: Method, exchange: Exchange, net: Net, clients: int, uploads: int
) -> tuple[list[Kernel], int]:
    """The kernels of a merge, those of its clients' payloads included, and its memory at the worst moment.

    ``uploads`` are merged of ``clients`` in all; the method was built on ``net``, the clients' model.
    """
    with meta_device():
        given = method.initial(net.on_meta()), payloads(method, exchange, net)[1], torch.empty(net.classes)

    def run(fill: Callable[[Tensor], Tensor]) -> tuple[list[Kernel], int]:
        tracer = Tracer(nonzero=True)
        server, upload, counts = (tree_map(fill, one) for one in given)
        sent = [tree_map(torch.clone, upload) for _ in range(uploads)]
        with torch.no_grad(), drawing(counts), tracer:
            for tree, part in ((server, PARAMETERS), (sent, INPUT)):
                for tensor in tensors(tree):
                    tracer.watch(tensor, part)
            arrivals = [
                Arrival(one, exchange.down(server, client), Ctx(client, 0, 0.1, 1, 1, counts), 0, 1.0)
                for client, one in zip(cycle(range(clients)), sent, strict=False)
            ]
            merged = exchange.merge(server, arrivals)
        del merged
        return tracer.kernels, sum(tracer.peak().values())

    try:
        return run(lambda leaf: leaf)
    except RuntimeError:
        return run(lambda leaf: torch.ones(leaf.shape, dtype=leaf.dtype) if leaf.is_meta else leaf)
