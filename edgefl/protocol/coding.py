"""Building blocks of codecs: payloads coded tensor by tensor, and tensors as bytes.

A codec is a file with some of these functions: ``sizes``, and either ``carried`` or both ``encode`` and
``decode`` (see ``docs/extending.md``)::

    sizes(params, payload, reference) -> {part: bytes}       from shapes and types only: payload has no values
    carried(params, payload, reference) -> payload           what the receiver has after decoding
    encode(params, payload, reference) -> bytes              what travels
    decode(params, data, like, reference) -> payload         ``like`` has the payload's shapes and types

``reference`` is the payload that both ends already have: on the way up the one that the client received, on
the way down None. Most codecs work tensor by tensor, with ``by_part``, ``each``, ``joined`` and ``split``:
these call a function with a tensor and its counterpart, the reference's tensor of the same path, shape and
type, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import torch
from torch import Tensor

from edgefl.protocol.trees import Payload, Tree, leaves, paths, rebuild, shapes

Size: TypeAlias = Callable[[Tensor, Tensor | None], int]
Change: TypeAlias = Callable[[Tensor, Tensor | None], Tensor]
Write: TypeAlias = Callable[[Tensor, Tensor | None], bytes]
Read: TypeAlias = Callable[[bytes, Tensor, Tensor | None], Tensor]


def counterparts(payload: Tree, reference: Tree | None) -> list[Tensor | None]:
    """For each of ``leaves(payload)`` its counterpart in ``reference``, if it has one."""
    others = dict(paths(reference))
    pairs = ((leaf, others.get(path)) for path, leaf in paths(payload) if isinstance(leaf, Tensor))
    return [other if shapes(other) == shapes(leaf) else None for leaf, other in pairs]


def _pairs(payload: Tree, reference: Tree | None) -> Iterator[tuple[Tensor, Tensor | None]]:
    return zip(leaves(payload), counterparts(payload, reference), strict=True)


def by_part(size: Size, payload: Payload, reference: Payload | None) -> dict[str, int]:
    """Bytes by part of the payload: the sum of ``size`` over its tensors."""
    return {
        part: sum(size(*pair) for pair in _pairs(tree, None if reference is None else reference.get(part)))
        for part, tree in payload.items()
    }


def each(change: Change, payload: Payload, reference: Payload | None) -> Payload:
    """The payload with every tensor changed."""
    changed: Payload = rebuild(payload, [change(*pair) for pair in _pairs(payload, reference)])
    return changed


def joined(write: Write, payload: Payload, reference: Payload | None) -> bytes:
    """Every tensor's bytes, one after another in the payload's order."""
    return b"".join(write(*pair) for pair in _pairs(payload, reference))


def split(read: Read, size: Size, data: bytes, like: Payload, reference: Payload | None) -> Payload:
    """The payload whose ``joined`` is ``data``.

    Raises:
        ValueError: the number of bytes does not match the shapes.
    """
    found, start = [], 0
    for leaf, counterpart in _pairs(like, reference):
        end = start + size(leaf, counterpart)
        found.append(read(data[start:end], leaf, counterpart))
        start = end
    if start != len(data):
        raise ValueError(f"received {len(data)} bytes, expected {start}")
    payload: Payload = rebuild(like, found)
    return payload


def coded(leaf: Tensor) -> bool:
    """Whether lossy codecs code a tensor: floating-point, not empty, not a scalar."""
    return leaf.is_floating_point() and leaf.dim() > 0 and leaf.numel() > 0


def plain_size(leaf: Tensor) -> int:
    """A tensor's bytes, uncoded."""
    return leaf.numel() * leaf.element_size()


def to_bytes(leaf: Tensor) -> bytes:
    """A tensor's values in row-major order."""
    if not leaf.numel():
        return b""
    data: bytes = leaf.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return data


def from_bytes(data: bytes, like: Tensor) -> Tensor:
    """The tensor of the shape and type of ``like`` whose ``to_bytes`` is ``data``."""
    if not data:
        return torch.empty(like.shape, dtype=like.dtype)
    return torch.frombuffer(bytearray(data), dtype=like.dtype).reshape(like.shape)
