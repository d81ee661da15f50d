"""Tensors as they are: every value in its own type, nothing added."""

from __future__ import annotations

from edgefl.core.params import Strict
from edgefl.protocol import Payload, bytes_by_part


class Params(Strict):
    """Raw has no parameters."""


def sizes(params: Params, payload: Payload) -> dict[str, int]:  # noqa: ARG001 - every codec is asked the same way
    """The bytes on the wire, by part of the payload; they depend on shapes and types only."""
    return bytes_by_part(payload)


def carried(params: Params, payload: Payload) -> Payload:  # noqa: ARG001
    """What the receiver gets: here, exactly what was sent."""
    return payload
