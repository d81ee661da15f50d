"""Codecs of payloads, one file each."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from edgefl.core.params import Component
from edgefl.protocol.trees import Payload, leaves, rebuild


class Codec(Component):
    """The parameters of a codec, and what it does.

    It has ``carried``, or ``encode`` and ``decode``. It uses no random numbers and changes no argument.

    Attributes:
        NEEDS_REFERENCE: whether it codes the difference from a payload that both ends already have, which
            for uploads is the one that the client received; otherwise ``reference`` is None.
        LOSSLESS: whether the receiver gets exactly what was sent, so that coding can be skipped.
    """

    NEEDS_REFERENCE: ClassVar[bool] = False
    LOSSLESS: ClassVar[bool] = False

    @abstractmethod
    def sizes(self, payload: Payload, reference: Payload | None) -> dict[str, int]:
        """Bytes on the wire by part of a payload without data: sizes depend on shapes and types alone."""

    def carried(self, payload: Payload, reference: Payload | None) -> Payload:
        """What the receiver has after decoding: the same keys, shapes and types."""
        if self.LOSSLESS:
            return payload
        decoded = self.decode(self.encode(payload, reference), payload, reference)
        moved = (leaf.to(like.device) for leaf, like in zip(leaves(decoded), leaves(payload), strict=True))
        found: Payload = rebuild(decoded, moved)
        return found

    def encode(self, payload: Payload, reference: Payload | None) -> bytes:
        """What is sent."""
        raise NotImplementedError

    def decode(self, data: bytes, like: Payload, reference: Payload | None) -> Payload:
        """What was sent; ``like`` has the payload's keys, shapes and types."""
        raise NotImplementedError

    @classmethod
    def codes(cls) -> bool:
        """Whether it has ``carried``, or both of ``encode`` and ``decode``."""
        whole, *halves = (
            getattr(cls, name) is not getattr(Codec, name) for name in ("carried", "encode", "decode")
        )
        return whole or all(halves)
