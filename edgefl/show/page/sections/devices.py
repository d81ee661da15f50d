"""Energy and batteries by class of devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgefl.analysis.device_use import DeviceUse
from edgefl.core.corners import Interval
from edgefl.show.averages import Compared, mean
from edgefl.show.batteries import BatteryUse
from edgefl.show.summary import Summary


@dataclass(frozen=True)
class DeviceEnergy:
    """What the clients of one device took: means over those of a group's runs that know the figure.

    Attributes:
        group: its place.
        device: the device.
        clients: how many were admitted.
        joules: of all their jobs; None if unknown.
        joules_per_round: of one of them that takes part in a round; None if unknown, or none took part.
        has_battery: whether the device has a battery whose capacity is known, and is no laptop.
        battery_share_per_round: ``joules_per_round`` as a share of a full battery; None without one, too.
        battery_share_between: the means of its bounds; None where no number is an interval, or there is none.
        battery_share_per_day: what a day takes, in the mean over all these clients; may be above 1.
    """

    group: int
    device: str
    clients: float
    joules: float | None
    joules_per_round: float | None
    has_battery: bool
    battery_share_per_round: float | None
    battery_share_between: Interval | None
    battery_share_per_day: float | None


def devices(groups: Sequence[Compared]) -> list[DeviceEnergy]:
    """The energies of each group's devices, by name."""
    return [
        _energy(place, one, device)
        for place, one in enumerate(groups)
        for device in sorted({device for run in one.runs for device in run.devices})
    ]


def _energy(group: int, one: Compared, device: str) -> DeviceEnergy:
    def use(run: Summary) -> DeviceUse | None:
        return run.devices.get(device)

    def battery(run: Summary) -> BatteryUse | None:
        return run.batteries.get(device)

    return DeviceEnergy(
        group=group,
        device=device,
        clients=mean(one, lambda run: getattr(use(run), "clients", None)) or 0.0,
        joules=mean(one, lambda run: getattr(use(run), "joules", None)),
        joules_per_round=mean(one, lambda run: getattr(use(run), "joules_per_round", None)),
        has_battery=any(battery(run) for run in one.runs),
        battery_share_per_round=mean(one, lambda run: getattr(battery(run), "per_round", None)),
        battery_share_between=one.between(lambda run: getattr(battery(run), "per_round_between", None)),
        battery_share_per_day=mean(one, lambda run: getattr(battery(run), "per_day", None)),
    )
