"""Device records, each kind with a cost model; every number has a status and a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
from edgefl.core.errors import UserError, nearest
from edgefl.core.validation import validate
from edgefl.core.yamls import Document

KINDS: dict[str, type[Board]] = {"roofline": Roofline, "systolic": Systolic}
"""The cost models, by the name under ``kind`` in a device's file."""


def board_of(data: Mapping[str, Any], document: Document, prefix: Sequence[str] = ()) -> Board:
    """A device's record, found at ``prefix`` in ``document``.

    Raises:
        UserError: its kind is unknown, or the record is wrong.
    """
    kind = str(data.get("kind", "roofline"))
    if kind not in KINDS:
        raise UserError(
            f"unknown kind of device {kind!r}",
            where=str(document.place([*prefix, "kind"])),
            hint=nearest(kind, KINDS),
        )
    return validate(KINDS[kind], data, document, prefix)
