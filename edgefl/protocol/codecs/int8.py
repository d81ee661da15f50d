"""Eight bits: floating-point numbers quantised affinely per tensor, one byte each.

Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference"
(CVPR 2018), eq. 1: x = scale * (q - zero), here per tensor, with q an int8. A tensor is sent as its scale
(float32), its zero point (int32) and its q: 8 bytes plus one per number. The grid spans the tensor's own
range: scale = (max - min) / 255. Zero is on the grid but need not be in the range, so that numbers far from
zero, such as batch norm's variances, keep their precision. The error of a number is at most scale / 2; a
tensor of one repeated value is restored up to rounding.

Integers, scalars and empty tensors are sent unchanged.
"""

from typing import Any

import torch
from torch import Tensor

from edgefl.protocol.codecs import TensorCodec, coded

_LOW, _HIGH = -128, 127
# So that max / scale fits the zero point, and float64 holds every product exactly.
_MOST_STEPS = 2**23
# The finest grid, so that a tensor of zeros has one, too.
_FINEST = torch.finfo(torch.float32).tiny


class Params(TensorCodec):
    def message(self, leaf: Tensor, base: Tensor | None) -> tuple[Tensor, ...] | None:  # noqa: ARG002
        """A tensor's scale () of float32, zero point () of int32, and places on the grid, of int8."""
        if not coded(leaf):
            return None
        # In float64, for exact grid positions: far from zero, float32 would be off by up to a step.
        values = leaf.double()
        low, high = values.aminmax()
        largest = torch.maximum(low.abs(), high.abs())
        step = torch.maximum((high - low) / (_HIGH - _LOW), largest / _MOST_STEPS)
        scale = step.clamp_min(_FINEST).float()
        lowest = (low / scale.double()).round()
        places = (values / scale.double()).round() - lowest + _LOW
        return scale, (_LOW - lowest).to(torch.int32), places.clamp(_LOW, _HIGH).to(torch.int8)

    def restored(self, message: tuple[Tensor, ...], like: Tensor, base: Any) -> Tensor:  # noqa: ARG002
        scale, zero, places = (each.double() for each in message)
        return ((places - zero) * scale).to(like.dtype)
