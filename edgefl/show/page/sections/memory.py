"""Memory that exchanges need, and that devices have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from edgefl.planning.fleets import recorded_devices
from edgefl.show.page.frames import Block, Frame, FrameColumn, Plot
from edgefl.show.page.records import Read, Section, Told

# A kind's refusal is by the first exchange that its device cannot do.
_SQL = """
SELECT device, model, priced.exchange AS exchange, SUM(clients) AS clients,
  IFNULL(SUM(clients) FILTER (WHERE refused.exchange = priced.exchange), 0) AS refused,
  MAX(peak_bytes) AS peak_bytes,
  IFNULL(MAX(refused.reason) FILTER (WHERE refused.exchange = priced.exchange), '') AS reason
FROM prices AS priced JOIN exchanges USING (exchange) JOIN kinds USING (kind)
JOIN (SELECT kind, COUNT(*) AS clients FROM fleet GROUP BY kind) USING (kind)
LEFT JOIN refused_kinds AS refused USING (kind)
GROUP BY device, model, place ORDER BY MIN(kind), place
"""
_LIMIT, _REFUSED = "limit of the device", "refused: needs more than it may use"
_COLUMNS = {
    "device": FrameColumn("device"),
    "what": FrameColumn("what"),
    "bytes": FrameColumn("memory of a client", "B"),
    "share": FrameColumn("share of the limit", "share"),
    "clients": FrameColumn("clients"),
    "reason": FrameColumn("refused because"),
}


def section(told: Told, read: Sequence[Block]) -> Section:
    """Needs beside limits."""
    del told
    blocks = [block for block in read if block["what"]]
    plot = Plot(
        "memory",
        "Memory against each device's limit",
        "The most memory that each exchange needs at once, and what the device has.",
        "no memory need is known of these runs.",
        "points",
        Frame(_COLUMNS, blocks),
        x=["bytes"],
        runs="one",
        series="what",
        row="device",
        log="X",
        looks={
            _LIMIT: {"symbol": "line-ns-open", "color": "--ink"},
            _REFUSED: {"symbol": "x-thin-open", "color": "#d55e00"},
        },
    )
    return Section("memory", "Memory", [plot])


def read(one: Read) -> Block:
    """A run's clients by device and model: the largest need of any in each exchange, and the device's limit.

    The limit is the usable memory by which planning admits. Some are refused because of an exchange; for want
    of memory, or for the reason that is told: what the device cannot do.

    Raises:
        UserError: ``plan.yaml`` is damaged.
    """
    rooms = {name: device.usable_memory_bytes for name, device in recorded_devices(one.run.reader).items()}
    found = [dict(row) for row in one.run.reader.query(_SQL)]
    found.sort(key=lambda row: rooms[row["device"]] or float("inf"))
    several = len({row["model"] for row in found}) > 1
    rows: list[Mapping[str, Any]] = []
    refusals: list[str] = []
    for row in found:
        room = rooms[row["device"]]
        name = f"{row['device']}, {row['model']}" if several else row["device"]
        limit = {"device": name, "what": _LIMIT, "bytes": room and int(room), "clients": row["clients"]}
        need = {**limit, "what": f"need of {row['exchange']}", "bytes": row["peak_bytes"]}
        need["share"] = row["peak_bytes"] / room if room else None
        rows.append(need)
        if row["refused"]:
            rows.append({**need, "what": _REFUSED, "clients": row["refused"], "reason": row["reason"]})
            refusals.append(
                f"{row['refused']:,} clients ({row['device']}, {row['model']}: {row['exchange']})"
            )
        if room and limit not in rows:
            rows.append(limit)
    unknown = sorted({row["device"] for row in found if not rooms[row["device"]]})
    notes = f"Refused: {'; '.join(refusals)}." if refusals else "Nobody was refused."
    notes += f" The limit is unknown of {', '.join(unknown)}." if unknown else ""
    columns = {name: [row.get(name) for row in rows] for name in _COLUMNS}
    return {"run": one.place, **columns, "notes": {"": notes}}
