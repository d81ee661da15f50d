"""Codecs at work: how large payloads are on the wire, and what the receiver gets."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from inspect import getfile
from typing import Any, TypeVar

import torch
from torch import Tensor

from edgefl.core.errors import EdgeflError, RunError, UserError, in_one_line
from edgefl.core.user_code import raised_at, returned, traced
from edgefl.protocol.codecs import Codec
from edgefl.protocol.trees import Payload, identical, leaves, nbytes, shapes, tree_map, unstacked

E = TypeVar("E", bound=EdgeflError)
_SIZELESS = (
    "time is known before training, when tensors have no values: have the codec pad its messages to a size "
    "that does not depend on them"
)
# How many payloads are coded together at most, and up to which size.
_TOGETHER = 64
_SMALL_BYTES = 1 << 20


@dataclass
class Channel:
    """One direction, with its codec.

    Attributes:
        where: the scenario's line that names it.
    """

    codec: Codec
    where: str
    _last: tuple[Payload, Payload] | None = field(default=None, repr=False)
    _apart: bool = field(default=False, repr=False)

    def _reference(self, reference: Payload | None) -> Payload | None:
        return reference if self.codec.NEEDS_REFERENCE else None

    def sizes(self, payload: Payload, reference: Payload | None = None) -> dict[str, int]:
        """The bytes on the wire, by part of the payload; empty if it has no tensors.

        Args:
            payload: on the meta device: time is known before training, so sizes depend on shapes and types
                only.
            reference: the payload that both ends already have; None on the way down.

        Raises:
            UserError: the codec needs values for it.
        """
        if not leaves(payload):
            return {}
        try:
            found: Any = self.codec.sizes(payload, self._reference(reference))
        except EdgeflError:
            raise
        except Exception as error:
            raise self._sizeless(in_one_line(error), error) from error
        returned(found, Mapping, self.codec.sizes, "bytes by part (a dict)")
        for part, size in found.items():
            if type(size) is not int or size < 0:
                kind = "a tensor without a value" if isinstance(size, Tensor) else repr(size)
                raise self._sizeless(f"sizes() returned {kind} for the part {part!r}, not a number of bytes")
        return dict(found)

    def _told(self, failure: type[E], what: str, hint: str, error: BaseException | None = None) -> E:
        """An error at the scenario's line and the codec's file, with the line in it that raised one."""
        place = None if error is None else raised_at(error)
        where = f"{self.where}; {place or getfile(type(self.codec))}"
        return traced(failure(f"the codec {self.codec.name!r} {what}", where=where, hint=hint), error)

    def _sizeless(self, why: str, error: BaseException | None = None) -> UserError:
        what = f"cannot size a payload from shapes and types alone: {why}"
        return self._told(UserError, what, _SIZELESS, error)

    def _failed(self, why: str, error: BaseException | None = None) -> RunError:
        return self._told(RunError, f"fails: {why}", "see docs/extending.md for what a codec must do", error)

    def carried(self, payload: Payload, reference: Payload | None = None) -> Payload:
        """What the receiver has after decoding; a payload without tensors is not coded.

        Raises:
            RunError: the codec fails, or changes a key, a shape or a type.
        """
        if self.codec.LOSSLESS or not leaves(payload):
            return payload
        with torch.no_grad():
            try:
                found = self.codec.carried(payload, self._reference(reference))
            except EdgeflError:
                raise
            except Exception as error:
                raise self._failed(in_one_line(error), error) from error
        if shapes(found) != shapes(payload):
            raise self._failed("the decoded payload has other keys, shapes or types than the one sent")
        return found

    def carried_all(self, payloads: Sequence[Payload], references: Sequence[Payload | None]) -> list[Payload]:
        """``carried`` of each payload.

        Small payloads with one reference are coded together under ``vmap``, with the same results: one by
        one, 64 uploads of a small model would take longer than their training. Which are coded together
        depends on the merge alone, never on the engine.
        """
        if self.codec.LOSSLESS:
            return list(payloads)
        pairs = list(zip(payloads, references, strict=True))
        if self._apart or not _stackable(payloads, references):
            return [self.carried(*pair) for pair in pairs]
        reference = self._reference(references[0])
        try:
            return [
                found
                for start in range(0, len(payloads), _TOGETHER)
                for found in self._together(payloads[start : start + _TOGETHER], reference)
            ]
        except Exception:  # noqa: BLE001 - a user's codec may do what vmap cannot: it is then called one by one
            self._apart = True
            return [self.carried(*pair) for pair in pairs]

    def _together(self, payloads: Sequence[Payload], reference: Payload | None) -> list[Payload]:
        first, *others = payloads
        stacked = tree_map(lambda *same: torch.stack(same), first, *others)
        with torch.no_grad(), warnings.catch_warnings():
            # vmap warns if it would run an operator client by client, which is no faster than one by one.
            warnings.simplefilter("error")
            found = torch.vmap(lambda payload: self.codec.carried(payload, reference))(stacked)
        if shapes(found) != shapes(stacked):
            raise ValueError("the decoded payload has other keys, shapes or types")
        return unstacked(found, len(payloads))

    def received(self, payload: Payload) -> Payload:
        """What clients have after decoding the server's payload.

        The last tensors are not coded again: clients that are sent the same tensors, such as those of a
        version, receive the same tensors, which an engine can then keep once for all of them.
        """
        if self.codec.LOSSLESS:
            return payload
        if self._last is None or not identical(self._last[0], payload):
            self._last = payload, self.carried(payload)
        return self._last[1]


def _stackable(payloads: Sequence[Payload], references: Sequence[Payload | None]) -> bool:
    """Whether payloads are small, of equal shapes, and share one reference."""
    first, *others = payloads or [{}]
    return (
        bool(others)
        and 0 < nbytes(first) <= _SMALL_BYTES
        and all(shapes(payload) == shapes(first) for payload in others)
        and all(identical(reference, references[0]) for reference in references)
    )
