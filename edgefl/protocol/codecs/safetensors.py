"""The safetensors file format: uncoded tensors behind a header that names them.

https://github.com/huggingface/safetensors#format: 8 bytes of the header's length; the header, JSON with each
tensor's type, shape and offsets, padded with blanks to a multiple of 8; the values. The bytes are those that
``safetensors.torch.save`` writes for the payload, with paths joined by "/" as names. Everything but the
values is the part "header". A payload without tensors sends nothing.
"""

import json
from typing import Any

import torch
from torch import Tensor

from edgefl.protocol import Payload, bytes_by_part, flatten
from edgefl.protocol.codecs import Codec

HEADER = "header"
_LENGTH_BYTES = 8
_ALIGNMENT = 8
# The format's names, in the order in which the library lays types out: the widest first.
_TYPES = {
    torch.uint64: "U64",
    torch.int64: "I64",
    torch.float64: "F64",
    torch.complex64: "C64",
    torch.float32: "F32",
    torch.uint32: "U32",
    torch.int32: "I32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.uint16: "U16",
    torch.int16: "I16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_ORDER = {kind: place for place, kind in enumerate(_TYPES)}


class Params(Codec):
    LOSSLESS = True

    def sizes(self, payload: Payload, reference: Payload | None) -> dict[str, int]:  # noqa: ARG002
        found, tensors = bytes_by_part(payload), flatten(payload)
        if not tensors:
            return found
        return {**found, HEADER: found.get(HEADER, 0) + _header_bytes(tensors)}


def _header_bytes(tensors: dict[str, Tensor]) -> int:
    """The bytes before the values, from names, shapes and types."""
    described: dict[str, Any] = {}
    start = 0
    for name in sorted(tensors, key=lambda name: (_ORDER[tensors[name].dtype], name)):
        leaf = tensors[name]
        end = start + leaf.numel() * leaf.element_size()
        described[name] = {
            "dtype": _TYPES[leaf.dtype],
            "shape": list(leaf.shape),
            "data_offsets": [start, end],
        }
        start = end
    text = json.dumps(described, separators=(",", ":"), ensure_ascii=False).encode()
    return _LENGTH_BYTES + -(-len(text) // _ALIGNMENT) * _ALIGNMENT
