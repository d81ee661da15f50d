"""Whether a device holds an exchange, and the predicted memory beside the measured one.

The traced peak is of tensors. Libraries take memory of their own while an operator runs: oneDNN keeps a
convolution's weights and their gradient in a layout of its own, and pads channels to blocks. What they take
depends on library, processor and version, so it is a margin on the peak instead of a term in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from edgefl.core.devices import Board
from edgefl.core.devices.board import TRACED
from edgefl.core.plan import Clients, Prices
from edgefl.core.units import show_bytes
from edgefl.planning.costs import Row

TOLERANCE = 0.25
"""The largest error of a prediction that agrees with the measurement."""

PROCESS_BYTES = 16_000_000
"""What a process may take besides its tensors, mostly code that libraries generate.

Measured as ``MARGIN``: 7.6 MB for an MLP's steps, 14.7 MB for a CNN's.
"""

MARGIN = 0.2
"""The share of the traced peak that libraries may take besides.

Measured by ``edgefl profile --measure-memory`` on shipped networks in batches of 8 to 512 (torch 2.13.0 with
oneDNN, AMD EPYC, one thread): up to 16% of the traced peak, apart from what a process takes; rounded up. The
figures are in ``docs/costs.md``, with those of convolutions of one channel, which took 111%.
"""


def fits(needs: float, room: float | None) -> bool | None:
    """Whether a device can hold the traced peak; None if its memory is unknown."""
    return None if room is None else needs <= room


def fits_with_margin(needs: float, room: float | None) -> bool | None:
    """Whether it can also hold what libraries may take besides; see ``MARGIN``."""
    return None if room is None else needs <= without_margin(room)


def without_margin(room: float) -> float:
    """The largest traced peak that memory of a size holds with its margin, in bytes."""
    return room / (1 + MARGIN)


def tight(clients: Clients, table: Sequence[Prices], devices: Mapping[str, Board]) -> list[str]:
    """The admitted clients that hold an exchange, but not with its margin, in words; nothing where all do."""
    rooms = [devices[name].usable_memory_bytes for name in clients.devices]
    most = np.array([np.inf if room is None else without_margin(room) for room in rooms])
    peaks = np.max([prices.peak_bytes for prices in table], axis=0)
    found = clients.admitted & (peaks[clients.kind] > most[clients.device])
    if not found.any():
        return []
    names = ", ".join(clients.devices[place] for place in np.unique(clients.device[found]))
    count = "1 client" if found.sum() == 1 else f"{found.sum():,} clients"
    return [f"memory of {count} ({names}) holds the traced peak, but not {MARGIN:.0%} more for libraries"]


def memory_check(predicted: int, measured: int, rows: Iterable[Row]) -> dict[str, Any]:
    """Holds the traced peak in fp32 against what the work added to a process, and both against the devices.

    Returns:
        Both; ``error``, predicted over measured, less 1, None where nothing was added; ``verdict``, whether
        they agree, or what explains the difference; ``limits``, by device that computes in fp32, which of the
        two fits its memory.
    """
    rooms = {
        row["device"]: row["peak_bytes"] / row["memory_share"]
        for row in rows
        if row["dtype"] == TRACED and row["memory_share"]
    }
    limits = {name: _FITTING[predicted <= room, measured <= room] for name, room in rooms.items()}
    error = predicted / measured - 1 if measured else None
    both = {"predicted_bytes": predicted, "measured_bytes": measured, "error": error}
    return {**both, "verdict": _verdict(predicted, measured), "limits": limits}


def _verdict(predicted: int, measured: int) -> str:
    if measured and abs(predicted / measured - 1) <= TOLERANCE:
        return f"agree within {TOLERANCE:.0%}"
    apart = show_bytes(abs(measured - predicted))
    if predicted > measured:
        return f"{apart} less than predicted: the process used memory that it held already"
    if measured - predicted <= PROCESS_BYTES:
        return f"{apart} more than predicted: a process takes that much besides its tensors"
    return f"{apart} more than predicted: the library's own buffers, such as a convolution's, are not traced"


_FITTING = {
    (True, True): "both fit",
    (True, False): "the predicted fits, the measured does not",
    (False, True): "the measured fits, the predicted does not",
    (False, False): "neither fits",
}
