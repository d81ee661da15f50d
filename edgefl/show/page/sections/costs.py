"""What groups of runs took: means over seeds, by part of the payload, phase, ending and class of devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgefl.analysis.groups import Group, spreads
from edgefl.show.compare import energy_of


@dataclass(frozen=True)
class Costs:
    """Means over those of a group's runs that have the figure.

    Attributes:
        group: its place.
        bytes_by_part: bytes "down" and "up" by part of the payload, of transfers that were completed; empty
            if nothing was sent.
        joules_by_phase: joules by "receive", "compute", "transmit", "tail" and "idle"; empty if no energy is
            known.
        waiting_joules: at idle power while uploads wait to be merged, no part of the energy; None if unknown.
        energy_of: of how many clients the energy is, and what all clients' may be; empty where it is of all.
        endings: by "merged" (useful), "late", "lost" and "cut" (wasted): the figures of ``usage.Spent``.
        devices: by device, the figures of ``DeviceUse`` and of ``BatteryUse``, without unknown ones.
    """

    group: int
    bytes_by_part: Mapping[str, Mapping[str, float]]
    joules_by_phase: Mapping[str, float]
    waiting_joules: float | None
    energy_of: str
    endings: Mapping[str, Mapping[str, float]]
    devices: Mapping[str, Mapping[str, float]]


def costs(groups: Sequence[Group]) -> list[Costs]:
    """The costs of each group."""
    return [_costs(place, one) for place, one in enumerate(groups)]


def _costs(group: int, one: Group) -> Costs:
    means = {key: found.mean for key, found in spreads(one.runs).items()}

    def within(start: str, depth: int) -> dict[str, Any]:
        """The figures whose keys begin so, as mappings within each other."""
        found: dict[str, Any] = {}
        for key, mean in means.items():
            if key.startswith(start):
                name, *rest = key.removeprefix(start).rsplit(".", depth - 1)
                if rest:
                    found.setdefault(name, {})[rest[0]] = mean
                else:
                    found[name] = mean
        return found

    taken = within("devices.", 2)
    for device in taken:
        battery = f"batteries.{device}."
        taken[device] |= {key.removeprefix(battery): means[key] for key in means if key.startswith(battery)}
    return Costs(
        group,
        within("bytes_by_part.", 2),
        within("joules_by_phase.", 1),
        means.get("waiting_joules"),
        energy_of(one),
        within("spent.", 2),
        dict(sorted(taken.items())),
    )
