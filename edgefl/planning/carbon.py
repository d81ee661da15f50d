"""What a fleet's carbon emissions depend on, completed from the fleet's devices and links, and its notes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from edgefl.core.carbon import Carbon, completed
from edgefl.core.devices import Board
from edgefl.core.fleet import Fleet
from edgefl.core.sourced import Sourced, sourced


def with_carbon(fleet: Fleet, devices: Mapping[str, Board]) -> Fleet:
    """The fleet with its carbon record complete; the fleet as it is if it has none."""
    if fleet.carbon is None:
        return fleet
    categories = {name: device.category for name, device in devices.items()}
    # A user's own model may call something else its start.
    start = getattr(fleet.availability, "start", 0.0)
    start_h = start if isinstance(start, float) else 0.0
    return fleet.model_copy(update={"carbon": completed(fleet.carbon, fleet.links, categories, start_h)})


def carbon_notes(carbon: Carbon | None) -> Iterator[str]:
    """A line for each number of a completed record that is unknown, and one for those that are assumed."""
    if carbon is None:
        return
    numbers = list(sourced(carbon))
    for link, number in carbon.network.items():
        if isinstance(number, Sourced) and number.status == "unknown":
            yield f"link {link}: network unknown, so its clients' network emissions are unknown"
    for device, making in carbon.embodied.devices.items() if carbon.embodied else ():
        if "unknown" in {making.made.status, making.lifetime.status}:
            yield f"{device}: embodied unknown, so its clients' embodied emissions are unknown"
    regions = [f"regions.{name}" for name, region in carbon.regions.items() if region.status == "assumed"]
    assumed = [name for name, number in numbers if number.status == "assumed"]
    if regions or assumed:
        # Of a device, its making and its lifetime are one.
        short = (re.sub(r"\.devices|\.(made|lifetime)$", "", name) for name in (*regions, *assumed))
        names = dict.fromkeys(short)
        yield f"carbon assumes {', '.join(names)}"
