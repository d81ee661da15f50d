"""Energy and batteries by class of devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgefl.core.corners import Interval
from edgefl.report.averages import Compared


@dataclass(frozen=True)
class DeviceEnergy:
    """Means over a group's runs of what the clients of one device took.

    Attributes:
        group: its place.
        device: the device.
        clients: how many were admitted.
        joules: of all their jobs; None if unknown.
        joules_per_round: of one of them that takes part in a round; None if unknown.
        battery_share_per_round: the same as a share of a full battery; None without one.
        battery_share_between: its bounds.
    """

    group: int
    device: str
    clients: int
    joules: float | None
    joules_per_round: float | None
    battery_share_per_round: float | None
    battery_share_between: Interval | None


def devices(groups: Sequence[Compared]) -> list[DeviceEnergy]:
    """The energies of each group's devices."""
    del groups
    return []
