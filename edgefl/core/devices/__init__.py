"""Device records, each kind with a cost model; every number has a status and a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from edgefl.core.components import OfKind
from edgefl.core.devices._board import TRACED as TRACED
from edgefl.core.devices._board import WIDTHS as WIDTHS
from edgefl.core.devices._board import Board as Board
from edgefl.core.devices._board import Bounds as Bounds
from edgefl.core.devices._board import DType as DType
from edgefl.core.devices._board import KernelClock as KernelClock
from edgefl.core.devices._board import Power as Power
from edgefl.core.devices._sustained import Battery as Battery
from edgefl.core.devices._sustained import Throttling as Throttling
from edgefl.core.devices.roofline import Roofline as Roofline
from edgefl.core.devices.systolic import Systolic as Systolic
from edgefl.core.validation import validate
from edgefl.core.yamls import Document


def board_of(data: Mapping[str, Any], document: Document, prefix: Sequence[str] = ()) -> Board:
    """A device's record, found at ``prefix`` in ``document``; its ``kind`` names the file of its cost model.

    Raises:
        UserError: its kind is unknown, or the record is wrong.
    """
    one: Any = Annotated[Board, OfKind("boards", "roofline", "kind")]
    board: Board = validate(one, data, document, prefix)
    return board
