"""What a client does around training that is no part of the method: it makes batches, and codes payloads.

All of it is elementwise work, which costs the bytes it moves. A batch is read in the dataset's type, such as
bytes, and written as floats, normalised on the way, in one kernel. An augmentation works in between, once for
each view, and each view is then normalised in a kernel of its own. Since an augmentation treats each sample
alone, two small batches tell its kernels for all sizes. One that does what no table has is a single kernel,
which reads and writes the view. A codec reads each part of a payload and writes it.

Not counted: reading from storage, the memory of an augmentation's intermediate results, and evaluation, which
is a measurement of the emulator's and no work of the protocol.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import prod

import torch

from edgefl.compute.kernels import UnknownOperatorError
from edgefl.compute.tracer import Tracer
from edgefl.core.cost import Kernel, between
from edgefl.data.batching import Augment
from edgefl.protocol import Payload, Phase, bytes_by_part
from edgefl.protocol.chance import drawing
from edgefl.protocol.codecs import Codec

_FLOAT = 4
# Batches that an augmentation is watched on.
_FEW, _MORE = 2, 3


def batch_kernels(
    phase: Phase, augment: Augment | None, shape: Sequence[int], sizes: Iterable[int], value_bytes: int = 1
) -> dict[int, list[Kernel]]:
    """The kernels that make a phase's batches by size, of samples of a shape and so many bytes a number."""
    sizes, views = set(sizes), phase.views
    if augment is None or phase.data != "train" or not sizes:
        moved = prod(shape) * (value_bytes + _FLOAT * views)
        return {size: [Kernel.moving("load", size * moved)] for size in sizes}
    few, more = (_augmented(augment, shape, size) for size in (_FEW, _MORE))
    found = {}
    for size in sizes:
        view = size * prod(shape) * _FLOAT
        kernels = between(few, more, _FEW, _MORE, size) or [Kernel.moving("augment", 2 * view)]
        load = Kernel.moving("load", size * prod(shape) * (value_bytes + _FLOAT))
        found[size] = [load, *[*kernels, Kernel.moving("normalise", 2 * view)] * views]
    return found


def _augmented(augment: Augment, shape: Sequence[int], size: int) -> list[Kernel]:
    """The kernels of an augmentation's code on a few samples; none if the cost of one is unknown."""
    # With values, which a user's code may read.
    with torch.device("cpu"), torch.no_grad():
        x, generator = torch.zeros(size, *shape), torch.Generator().manual_seed(0)
        try:
            with drawing(x), Tracer() as tracer:
                augment(x, generator)
        except UnknownOperatorError:
            return []
    return tracer.kernels


def coding_kernels(op: str, codec: Codec, payload: Payload, coded: Mapping[str, int]) -> list[Kernel]:
    """A codec's kernels on one way, one for each part of a payload; ``coded`` are its bytes on the wire."""
    plain = {} if codec.LOSSLESS else bytes_by_part(payload)
    return [Kernel.moving(op, size + coded.get(part, 0)) for part, size in plain.items() if size]
