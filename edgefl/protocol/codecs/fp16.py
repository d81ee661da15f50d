"""Half precision: floating-point numbers as IEEE 754 binary16, two bytes each; everything else unchanged.

Rounds to the nearest, with a relative error of at most 2^-11 from 2^-14 (6.1e-5) on and an absolute one of at
most 2^-25 below. Numbers beyond +-65504, the largest in half precision, saturate (as in ONNX's Cast by
default and CUDA's ``cvt.satfinite``), so that results stay finite.
"""

from typing import Any

from torch import Tensor

from edgefl.protocol.codecs import TensorCodec

_LARGEST = 65504.0
_BYTES = 2


class Params(TensorCodec):
    def message(self, leaf: Tensor, base: Tensor | None) -> tuple[Tensor, ...] | None:  # noqa: ARG002
        if not leaf.is_floating_point() or leaf.element_size() <= _BYTES:
            return None
        return (leaf.clamp(-_LARGEST, _LARGEST).half(),)

    def restored(self, message: tuple[Tensor, ...], like: Tensor, base: Any) -> Tensor:  # noqa: ARG002
        return message[0].to(like.dtype)
