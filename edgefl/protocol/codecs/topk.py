"""Top-k: the entries of largest magnitude of each tensor's change, which the receiver adds to what it has.

Aji and Heafield, "Sparse Communication for Distributed Gradient Descent" (EMNLP 2017), and Lin et al., "Deep
Gradient Compression" (ICLR 2018), for a model's update in place of a gradient, and without error feedback:
what is not sent is lost, not carried over.

It codes the difference of an upload from the payload that the client received, which the server has as well,
and so works on the way up only. Of a tensor of n numbers, k = ceil(share * n) are sent, each as its value in
the tensor's own type and its row-major index as an int32. With float32 this saves bytes if share is below
1/2.

Tensors without a counterpart of the same path, shape and type in the payload received, such as the sums of a
calibration, are sent whole. So are integers, scalars and empty tensors.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from edgefl.protocol import Payload
from edgefl.protocol.codecs import Codec
from edgefl.protocol.coding import by_part, coded, each, from_bytes, joined, plain_size, split, to_bytes

_INDEX_BYTES = 4


class Params(Codec):
    """How much is sent."""

    NEEDS_REFERENCE = True

    share: Annotated[float, Field(gt=0, le=1, description="share of each tensor's entries sent")] = 0.1

    def sizes(self, payload: Payload, reference: Payload | None) -> dict[str, int]:
        return by_part(lambda leaf, base: _size(self, leaf, base), payload, reference)

    def carried(self, payload: Payload, reference: Payload | None) -> Payload:
        return each(lambda leaf, base: _carried(self, leaf, base), payload, reference)

    def encode(self, payload: Payload, reference: Payload | None) -> bytes:
        """For every tensor its k values, then their indices."""
        return joined(lambda leaf, base: _write(self, leaf, base), payload, reference)

    def decode(self, data: bytes, like: Payload, reference: Payload | None) -> Payload:
        return split(
            lambda piece, leaf, base: _read(self, piece, leaf, base),
            lambda leaf, base: _size(self, leaf, base),
            data,
            like,
            reference,
        )


def _count(params: Params, leaf: Tensor) -> int:
    # As the decimal that was written: 100 times 0.07 is 7, not 7.000000000000001 with ceiling 8.
    return math.ceil(Fraction(str(params.share)) * leaf.numel())


def _size(params: Params, leaf: Tensor, base: Tensor | None) -> int:
    if base is None or not coded(leaf):
        return plain_size(leaf)
    return _count(params, leaf) * (leaf.element_size() + _INDEX_BYTES)


def _largest(params: Params, leaf: Tensor, base: Tensor) -> tuple[Tensor, Tensor]:
    """The (k,) values of the largest changes, and their (k,) places in the flat tensor."""
    change = (leaf - base).reshape(-1)
    places = change.abs().topk(_count(params, leaf), sorted=False).indices
    return change.gather(0, places), places


def _applied(base: Tensor, values: Tensor, places: Tensor) -> Tensor:
    return base + torch.zeros_like(base).reshape(-1).scatter(0, places, values).reshape(base.shape)


def _carried(params: Params, leaf: Tensor, base: Tensor | None) -> Tensor:
    return leaf if base is None or not coded(leaf) else _applied(base, *_largest(params, leaf, base))


def _write(params: Params, leaf: Tensor, base: Tensor | None) -> bytes:
    if base is None or not coded(leaf):
        return to_bytes(leaf)
    values, places = _largest(params, leaf, base)
    return to_bytes(values) + to_bytes(places.to(torch.int32))


def _read(params: Params, data: bytes, like: Tensor, base: Tensor | None) -> Tensor:
    if base is None or not coded(like):
        return from_bytes(data, like)
    count = _count(params, like)
    cut = count * like.element_size()
    values = from_bytes(data[:cut], torch.empty(count, dtype=like.dtype, device="meta"))
    places = from_bytes(data[cut:], torch.empty(count, dtype=torch.int32, device="meta"))
    return _applied(base.cpu(), values, places.long())
