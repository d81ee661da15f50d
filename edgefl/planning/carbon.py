"""What a fleet's carbon emissions depend on, completed from the fleet's devices and links, and its notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from edgefl.core.carbon import Carbon, completed
from edgefl.core.devices import Board
from edgefl.core.fleet import Fleet
from edgefl.core.sourced import sourced


def with_carbon(fleet: Fleet, devices: Mapping[str, Board]) -> Fleet:
    """The fleet with its carbon record complete; the fleet as it is if it has none."""
    if fleet.carbon is None:
        return fleet
    categories = {name: device.category for name, device in devices.items()}
    start_h = getattr(fleet.availability, "start", 0.0)
    return fleet.model_copy(update={"carbon": completed(fleet.carbon, fleet.links, categories, start_h)})


def carbon_notes(carbon: Carbon | None) -> Iterator[str]:
    """A line for each number of a completed record that is unknown, and one for those that are assumed."""
    if carbon is None:
        return
    for name, link in carbon.network.items():
        if link.value is None:
            yield f"link {name}: network unknown, so its clients' network emissions are unknown"
    for name, making in carbon.embodied.devices.items() if carbon.embodied else ():
        if making.grams_per_s is None:
            yield f"{name}: embodied unknown, so its clients' embodied emissions are unknown"
    regions = [f"regions.{name}" for name, region in carbon.regions.items() if region.status == "assumed"]
    guesses = [*regions, *(name for name, number in sourced(carbon) if number.status == "assumed")]
    if guesses:
        yield f"carbon assumes {', '.join(guesses).replace('embodied.devices', 'embodied')}"
