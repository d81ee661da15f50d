"""Device records, each kind with a cost model; every number has a status and a source."""

from __future__ import annotations

from edgefl.core.devices.board import TRACED, WIDTHS, Board, Bounds, Clock, DType
from edgefl.core.devices.measured import Measured
from edgefl.core.devices.roofline import Roofline
from edgefl.core.devices.systolic import Systolic

KINDS: dict[str, type[Board]] = {"roofline": Roofline, "systolic": Systolic, "measured": Measured}
"""The cost models, by the name under ``kind`` in a device's file."""

__all__ = [
    "KINDS",
    "TRACED",
    "WIDTHS",
    "Board",
    "Bounds",
    "Clock",
    "DType",
    "Measured",
    "Roofline",
    "Systolic",
]
