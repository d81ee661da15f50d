"""Trees as Ray's object store carries them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from edgefl.compute.tensor_store import Skeleton, join_tensors, split_tensors


class Packed(NamedTuple):
    """A tree as Ray carries it; readers on one computer share the arrays' memory.

    Attributes:
        skeleton: the tree without its tensors.
        buffers: each one's bytes, type and shape; NumPy knows fewer types than torch.
    """

    skeleton: Skeleton
    buffers: list[tuple[Any, torch.dtype, torch.Size]]


def packed(tree: Any) -> Packed:
    """A tree to be sent."""
    skeleton, buffers = split_tensors(tree)
    return Packed(skeleton, [(_bytes(buffer), buffer.dtype, buffer.shape) for buffer in buffers])


def _bytes(buffer: Tensor) -> Any:
    return buffer.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()


def unpacked(sent: Packed) -> Any:
    """The tree in memory of its own, so that writing to it by mistake has no effect elsewhere."""
    buffers = [torch.tensor(array).view(dtype).view(shape) for array, dtype, shape in sent.buffers]
    return join_tensors(sent.skeleton, buffers)


def borrowed(sent: Packed) -> Any:
    """The tree in the object store's own memory, for what is too large to copy; not to be written to."""
    lent = ((np.asarray(_Lent(array)), dtype, shape) for array, dtype, shape in sent.buffers)
    buffers = [torch.from_numpy(array).view(dtype).view(shape) for array, dtype, shape in lent]
    return join_tensors(sent.skeleton, buffers)


class _Lent:
    """A read-only array for torch, which has no such tensors and would warn."""

    def __init__(self, array: Any) -> None:
        self._array = array
        address = array.__array_interface__["data"][0]
        self.__array_interface__ = {**array.__array_interface__, "data": (address, False)}
