"""Memory that exchanges need, and that devices have."""

from __future__ import annotations

from dataclasses import dataclass

from edgefl.planning.recorded import recorded_devices
from edgefl.store import Reader

# A kind's refusal is by the first exchange that its device cannot do.
_SQL = """
SELECT device, model, priced.exchange AS exchange, SUM(clients) AS clients,
  IFNULL(SUM(clients) FILTER (WHERE refused.exchange = priced.exchange), 0) AS refused,
  MAX(peak_bytes) AS peak_bytes, MAX(peak_bytes) FILTER (WHERE refused.exchange IS NULL) AS admitted_bytes,
  IFNULL(MAX(refused.reason) FILTER (WHERE refused.exchange = priced.exchange), '') AS reason
FROM prices AS priced JOIN exchanges USING (exchange) JOIN kinds USING (kind)
JOIN (SELECT kind, COUNT(*) AS clients FROM fleet GROUP BY kind) USING (kind)
LEFT JOIN refused_kinds AS refused USING (kind)
GROUP BY device, model, place ORDER BY MIN(kind), place
"""


@dataclass(frozen=True)
class Memory:
    """Of the clients of one run that have one device and one model, in one exchange.

    Attributes:
        run: its place.
        device: the device.
        model: the model.
        exchange: the exchange.
        peak_bytes: the largest need of any of the clients at its worst moment, be it refused or not.
        admitted_bytes: the largest need of those that were not refused; None where all were.
        limit_bytes: the device's usable memory, by which planning admits; None if unknown.
        clients: how many clients.
        refused: how many of them were refused because of this exchange.
        reason: why, where it is not for want of memory: what the device cannot do; empty otherwise.
    """

    run: int
    device: str
    model: str
    exchange: str
    peak_bytes: int
    admitted_bytes: int | None
    limit_bytes: int | None
    clients: int
    refused: int
    reason: str


def memory(reader: Reader, run: int) -> list[Memory]:
    """Those of a run, whose place is ``run``.

    Raises:
        UserError: ``plan.yaml`` is damaged.
    """
    rooms = {name: device.usable_memory_bytes for name, device in recorded_devices(reader).items()}
    limits = {name: None if room is None else int(room) for name, room in rooms.items()}
    return [Memory(run=run, limit_bytes=limits[row["device"]], **row) for row in reader.query(_SQL)]
