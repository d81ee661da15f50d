"""Codecs of payloads, one file each."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from torch import Tensor

from edgefl.core.params import Component
from edgefl.protocol.meta_device import without_compiler
from edgefl.protocol.trees import Payload, bytes_by_part, counterparts, leaves, rebuild


class Codec(Component):
    """The parameters of a codec, and what it does.

    It has ``carried``, or ``encode`` and ``decode``, unless it is lossless. It uses no random numbers and
    changes no argument.

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
        """Whether it is lossless, or has ``carried``, or both of ``encode`` and ``decode``."""
        whole, *halves = (
            getattr(cls, name) is not getattr(Codec, name) for name in ("carried", "encode", "decode")
        )
        return cls.LOSSLESS or whole or all(halves)


class TensorCodec(Codec):
    """A codec that sends other tensors in place of each of a payload's.

    Where it needs a reference, ``base`` is the tensor of the same path, shape and type in it, or None.
    """

    @abstractmethod
    def message(self, leaf: Tensor, base: Tensor | None) -> tuple[Tensor, ...] | None:
        """What is sent in place of a tensor; None to send it as it is."""

    @abstractmethod
    def restored(self, message: tuple[Tensor, ...], like: Tensor, base: Any) -> Tensor:
        """What the receiver makes of a message; ``like`` has the tensor's shape and type."""

    def sizes(self, payload: Payload, reference: Payload | None) -> dict[str, int]:
        def sent(leaf: Tensor, base: Tensor | None) -> Any:
            message = self.message(leaf, base)
            return leaf if message is None else message

        with without_compiler():
            return bytes_by_part(_each(sent, payload, reference))

    def carried(self, payload: Payload, reference: Payload | None) -> Payload:
        def received(leaf: Tensor, base: Tensor | None) -> Tensor:
            message = self.message(leaf, base)
            return leaf if message is None else self.restored(message, leaf, base)

        return _each(received, payload, reference)


def _each(
    change: Callable[[Tensor, Tensor | None], Any], payload: Payload, reference: Payload | None
) -> Payload:
    pairs = zip(leaves(payload), counterparts(payload, reference), strict=True)
    changed: Payload = rebuild(payload, [change(*pair) for pair in pairs])
    return changed


def coded(leaf: Tensor) -> bool:
    """Whether lossy codecs code a tensor: floating-point, not empty, not a scalar."""
    return leaf.is_floating_point() and leaf.dim() > 0 and leaf.numel() > 0
