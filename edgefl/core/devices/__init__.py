"""Device records, each kind with a cost model; every number has a status and a source."""

from __future__ import annotations

from edgefl.core.devices.board import TRACED as TRACED
from edgefl.core.devices.board import WIDTHS as WIDTHS
from edgefl.core.devices.board import Board as Board
from edgefl.core.devices.board import Bounds as Bounds
from edgefl.core.devices.board import Clock as Clock
from edgefl.core.devices.board import DType as DType
from edgefl.core.devices.roofline import Roofline as Roofline
from edgefl.core.devices.sustained import Battery as Battery
from edgefl.core.devices.sustained import Throttling as Throttling
from edgefl.core.devices.systolic import Systolic as Systolic

KINDS: dict[str, type[Board]] = {"roofline": Roofline, "systolic": Systolic}
"""The cost models, by the name under ``kind`` in a device's file."""
