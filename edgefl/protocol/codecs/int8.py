"""Eight bits: floating-point numbers quantised affinely per tensor, one byte each.

Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference"
(CVPR 2018), eq. 1: x = scale * (q - zero), here per tensor, with q an int8. A tensor is sent as its scale
(float32), its zero point (int32) and its q: 8 bytes plus one per number. The grid spans the tensor's own
range: scale = (max - min) / 255. Zero is on the grid but need not be in the range, so that numbers far from
zero, such as batch norm's variances, keep their precision. The error of a number is at most scale / 2; a
tensor of one repeated value is restored up to rounding.

Integers, scalars and empty tensors are sent unchanged.
"""

from __future__ import annotations

import torch
from torch import Tensor

from edgefl.protocol import Payload
from edgefl.protocol.codecs import Codec
from edgefl.protocol.coding import by_part, coded, each, from_bytes, joined, plain_size, split, to_bytes

_LOW, _HIGH = -128, 127
_GRID_BYTES = 8
# So that max / scale fits the zero point, and float64 holds every product exactly.
_MOST_STEPS = 2**23
# The finest grid, so that a tensor of zeros has one, too.
_FINEST = torch.finfo(torch.float32).tiny


class Params(Codec):
    """Eight bits have no parameters."""

    def sizes(self, payload: Payload, reference: Payload | None) -> dict[str, int]:
        return by_part(_size, payload, reference)

    def carried(self, payload: Payload, reference: Payload | None) -> Payload:
        return each(_carried, payload, reference)

    def encode(self, payload: Payload, reference: Payload | None) -> bytes:
        return joined(_write, payload, reference)

    def decode(self, data: bytes, like: Payload, reference: Payload | None) -> Payload:
        return split(_read, _size, data, like, reference)


def _size(leaf: Tensor, _: Tensor | None) -> int:
    return leaf.numel() + _GRID_BYTES if coded(leaf) else plain_size(leaf)


def _quantised(leaf: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A tensor's scale () of float32, zero point () of int32, and places on the grid, of int8."""
    # In float64, for exact grid positions: far from zero, float32 would be off by up to a step.
    values = leaf.double()
    low, high = values.aminmax()
    largest = torch.maximum(low.abs(), high.abs())
    step = torch.maximum((high - low) / (_HIGH - _LOW), largest / _MOST_STEPS)
    scale = step.clamp_min(_FINEST).float()
    lowest = (low / scale.double()).round()
    places = (values / scale.double()).round() - lowest + _LOW
    return scale, (_LOW - lowest).to(torch.int32), places.clamp(_LOW, _HIGH).to(torch.int8)


def _dequantised(scale: Tensor, zero: Tensor, places: Tensor, dtype: torch.dtype) -> Tensor:
    return ((places.double() - zero.double()) * scale.double()).to(dtype)


def _carried(leaf: Tensor, _: Tensor | None) -> Tensor:
    return _dequantised(*_quantised(leaf), leaf.dtype) if coded(leaf) else leaf


def _write(leaf: Tensor, _: Tensor | None) -> bytes:
    return b"".join(map(to_bytes, _quantised(leaf))) if coded(leaf) else to_bytes(leaf)


def _read(data: bytes, like: Tensor, _: Tensor | None) -> Tensor:
    if not coded(like):
        return from_bytes(data, like)
    scale = from_bytes(data[:4], torch.empty((), dtype=torch.float32))
    zero = from_bytes(data[4:_GRID_BYTES], torch.empty((), dtype=torch.int32))
    places = from_bytes(data[_GRID_BYTES:], torch.empty(like.shape, dtype=torch.int8, device="meta"))
    return _dequantised(scale, zero, places, like.dtype)
