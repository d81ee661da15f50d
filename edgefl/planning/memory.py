"""The predicted memory of an exchange beside the measured one, with a verdict."""

from __future__ import annotations

from collections.abc import Iterable

from edgefl.core.devices.board import TRACED
from edgefl.core.units import show_bytes
from edgefl.planning.costs import DeviceCost, MemoryCheck

TOLERANCE = 0.25
"""The largest error of a prediction that agrees with the measurement."""

PROCESS_BYTES = 16_000_000
"""What a process may take besides its tensors. Measured: 4.4 MB for an MLP's steps, 10.4 MB for a CNN's."""


def memory_check(predicted: int, measured: int, rows: Iterable[DeviceCost]) -> MemoryCheck:
    """Compares the two, and each with what the devices have.

    Args:
        predicted: the traced peak in fp32, in bytes.
        measured: what the work added to a fresh process.
        rows: the exchange on each device.
    """
    limits = {
        row.device: _limit(predicted, measured, row.memory_bytes / row.memory_share)
        for row in rows
        if row.dtype == TRACED and row.memory_share
    }
    error = predicted / measured - 1 if measured else None
    return MemoryCheck(predicted, measured, error, _verdict(predicted, measured), limits)


def _verdict(predicted: int, measured: int) -> str:
    if measured and abs(predicted / measured - 1) <= TOLERANCE:
        return f"agree within {TOLERANCE:.0%}"
    apart = show_bytes(abs(measured - predicted))
    if predicted > measured:
        return f"{apart} less than predicted: the process used memory that it held already"
    if measured - predicted <= PROCESS_BYTES:
        return f"{apart} more than predicted: a process takes that much besides its tensors"
    return f"{apart} more than predicted: the library's own buffers, such as a convolution's, are not traced"


def _limit(predicted: int, measured: int, room: float) -> str:
    fitting = predicted <= room, measured <= room
    return {
        (True, True): "both fit",
        (True, False): "the predicted fits, the measured does not",
        (False, True): "the measured fits, the predicted does not",
        (False, False): "neither fits",
    }[fitting]
