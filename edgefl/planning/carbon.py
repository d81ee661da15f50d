"""What a fleet's carbon emissions depend on, completed from the fleet's devices and links, and its notes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import get_args

from edgefl.core import catalogue
from edgefl.core.carbon import OTHERS, Carbon, completed
from edgefl.core.devices import Board
from edgefl.core.errors import UserError, nearest
from edgefl.core.fleet import Fleet
from edgefl.core.plan import Assumption
from edgefl.core.sourced import Sourced, sourced


def with_carbon(fleet: Fleet, devices: Mapping[str, Board]) -> Fleet:
    """The fleet with its carbon record complete; the fleet as it is if it has none.

    Raises:
        UserError: the record has numbers of a link or a device that there is not.
    """
    carbon = fleet.carbon
    if carbon is None:
        return fleet
    links = {*fleet.links, *catalogue.entries("links"), OTHERS}
    kept = {*devices, *catalogue.entries("devices"), *get_args(Board.model_fields["category"].annotation)}
    made = carbon.embodied.devices if carbon.embodied else {}
    for given, known, what, key in (
        (carbon.network, links, "link", "network"),
        (made, kept, "device or category", "embodied.devices"),
    ):
        for name in given:
            if name not in known:
                raise UserError(
                    f"unknown {what} {name!r}", where=f"fleet.carbon.{key}", hint=nearest(name, known)
                )
    categories = {name: device.category for name, device in devices.items()}
    start_h = fleet.availability.start_h()
    return fleet.model_copy(update={"carbon": completed(carbon, fleet.links, categories, start_h)})


def carbon_notes(carbon: Carbon | None) -> Iterator[str]:
    """A line for each number of a completed record that is unknown, and one for those that are assumed."""
    if carbon is None:
        return
    numbers = list(sourced(carbon))
    for link, number in carbon.network.items():
        if isinstance(number, Sourced) and number.status == "unknown":
            unknown = "network unknown, so its clients' network emissions are unknown"
            yield Assumption("carbon", f"link {link}", unknown)
    for device, making in carbon.embodied.devices.items() if carbon.embodied else ():
        if "unknown" in {making.made.status, making.lifetime.status}:
            unknown = "embodied unknown, so its clients' embodied emissions are unknown"
            yield Assumption("carbon", device, unknown)
    regions = [f"regions.{name}" for name, region in carbon.regions.items() if region.status == "assumed"]
    assumed = [name for name, number in numbers if number.status == "assumed"]
    if regions or assumed:
        # Of a device, its making and its lifetime are one.
        short = (re.sub(r"\.devices|\.(made|lifetime)$", "", name) for name in (*regions, *assumed))
        names = dict.fromkeys(short)
        yield f"carbon assumes {', '.join(names)}"
