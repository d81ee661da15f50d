"""Devices that lack numbers, which no shipped one does."""

import json
from pathlib import Path
from typing import Any

from edgefl.core import catalogue
from edgefl.core.yamls import Document

UNPRICED = "unpriced-board"
UNPOWERED = "unpowered-phone"

_UNKNOWN = {"status": "unknown", "source": "not measured yet"}


def _without_bounds(data: Any) -> Any:
    """Its numbers alone, which have no bounds where those of the launch overhead are not known."""
    if not isinstance(data, dict):
        return data
    bare = "value" in data
    return {key: _without_bounds(one) for key, one in data.items() if not bare or key not in {"low", "high"}}


def write(folder: Path) -> Path:
    """Writes both into a folder for EDGEFL_PATH.

    ``UNPRICED`` has no bandwidth, so no times; ``UNPOWERED`` no launch overhead and no power, so times that
    are lower bounds and no energy.
    """
    (folder / "devices").mkdir(parents=True, exist_ok=True)
    board, phone = (
        dict(Document.read(catalogue.find("devices", name).path).data) for name in ("pynq-z2", "phone-high")
    )
    board["memory_bandwidth"] = _UNKNOWN
    phone = _without_bounds(phone)
    phone["launch_overhead"] = {"value": "0 s", "status": "assumed", "source": "the rate holds it already"}
    phone["power"] = {"idle": _UNKNOWN, "active": _UNKNOWN}
    for name, data in ((UNPRICED, board), (UNPOWERED, phone)):
        (folder / "devices" / f"{name}.yaml").write_text(json.dumps(data), encoding="utf-8")
    return folder
