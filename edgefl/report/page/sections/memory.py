"""Memory that exchanges need, and that devices have."""

from __future__ import annotations

from dataclasses import dataclass

from edgefl.store import Reader


@dataclass(frozen=True)
class Memory:
    """Of one run.

    Attributes:
        run: its place.
        device: the device.
        model: the clients' model.
        exchange: the exchange.
        peak_bytes: the largest need.
        limit_bytes: what the device has; None if unknown.
        clients: how many clients.
        refused: how many of them were refused.
    """

    run: int
    device: str
    model: str
    exchange: str
    peak_bytes: int
    limit_bytes: int | None
    clients: int
    refused: int


def memory(reader: Reader, run: int) -> list[Memory]:
    """Those of a run, whose place is ``run``."""
    del reader, run
    return []
