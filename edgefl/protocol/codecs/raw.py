"""Uncoded tensors: every value in its own type, without overhead or loss."""

from __future__ import annotations

from torch import Tensor

from edgefl.protocol import Payload, bytes_by_part
from edgefl.protocol.codecs import Codec
from edgefl.protocol.coding import from_bytes, joined, plain_size, split, to_bytes


class Params(Codec):
    """Raw has no parameters."""

    LOSSLESS = True

    def sizes(self, payload: Payload, reference: Payload | None) -> dict[str, int]:  # noqa: ARG002
        return bytes_by_part(payload)

    def encode(self, payload: Payload, reference: Payload | None) -> bytes:
        return joined(lambda leaf, _: to_bytes(leaf), payload, reference)

    def decode(self, data: bytes, like: Payload, reference: Payload | None) -> Payload:
        return split(_read, _size, data, like, reference)


def _size(leaf: Tensor, _: Tensor | None) -> int:
    return plain_size(leaf)


def _read(data: bytes, like: Tensor, _: Tensor | None) -> Tensor:
    return from_bytes(data, like)
