"""Half precision: floating-point numbers as IEEE 754 binary16, two bytes each; everything else unchanged.

Rounds to the nearest, with a relative error of at most 2^-11 from 2^-14 (6.1e-5) on and an absolute one of at
most 2^-25 below. Numbers beyond +-65504, the largest in half precision, saturate (as in ONNX's Cast by
default and CUDA's ``cvt.satfinite``), so that results stay finite.
"""

from __future__ import annotations

import torch
from torch import Tensor

from edgefl.protocol import Payload
from edgefl.protocol.codecs import Codec
from edgefl.protocol.coding import by_part, each, from_bytes, joined, plain_size, split, to_bytes

_LARGEST = 65504.0
_BYTES = 2


class Params(Codec):
    """Half precision has no parameters."""

    def sizes(self, payload: Payload, reference: Payload | None) -> dict[str, int]:
        return by_part(_size, payload, reference)

    def carried(self, payload: Payload, reference: Payload | None) -> Payload:
        return each(lambda leaf, _: _halved(leaf).to(leaf.dtype), payload, reference)

    def encode(self, payload: Payload, reference: Payload | None) -> bytes:
        return joined(lambda leaf, _: to_bytes(_halved(leaf)), payload, reference)

    def decode(self, data: bytes, like: Payload, reference: Payload | None) -> Payload:
        return split(_read, _size, data, like, reference)


def _wide(leaf: Tensor) -> bool:
    """Whether half precision makes a tensor smaller."""
    return leaf.is_floating_point() and leaf.element_size() > _BYTES


def _size(leaf: Tensor, _: Tensor | None) -> int:
    return leaf.numel() * _BYTES if _wide(leaf) else plain_size(leaf)


def _halved(leaf: Tensor) -> Tensor:
    return leaf.clamp(-_LARGEST, _LARGEST).half() if _wide(leaf) else leaf


def _read(data: bytes, like: Tensor, _: Tensor | None) -> Tensor:
    if not _wide(like):
        return from_bytes(data, like)
    return from_bytes(data, torch.empty(like.shape, dtype=torch.float16, device="meta")).to(like.dtype)
