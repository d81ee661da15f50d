"""Uncoded tensors: every value in its own type, without overhead or loss."""

from __future__ import annotations

from torch import Tensor

from edgefl.core.params import Component
from edgefl.protocol import Payload, bytes_by_part
from edgefl.protocol.coding import from_bytes, joined, plain_size, split, to_bytes, unchanged

carried = unchanged


class Params(Component):
    """Raw has no parameters."""


def sizes(params: Params, payload: Payload, reference: Payload | None) -> dict[str, int]:  # noqa: ARG001 - every codec is asked the same way
    """The bytes of the values, by part."""
    return bytes_by_part(payload)


def encode(params: Params, payload: Payload, reference: Payload | None) -> bytes:  # noqa: ARG001
    """Every tensor's values, one after another."""
    return joined(lambda leaf, _: to_bytes(leaf), payload, reference)


def decode(params: Params, data: bytes, like: Payload, reference: Payload | None) -> Payload:  # noqa: ARG001
    """The tensors again."""
    return split(_read, _size, data, like, reference)


def _size(leaf: Tensor, _: Tensor | None) -> int:
    return plain_size(leaf)


def _read(data: bytes, like: Tensor, _: Tensor | None) -> Tensor:
    return from_bytes(data, like)
