"""Uncoded tensors: every value in its own type, without overhead or loss."""

from edgefl.protocol import Payload, bytes_by_part
from edgefl.protocol.codecs import Codec


class Params(Codec):
    LOSSLESS = True

    def sizes(self, payload: Payload, reference: Payload | None) -> dict[str, int]:  # noqa: ARG002
        return bytes_by_part(payload)
