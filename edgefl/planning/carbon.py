"""What a fleet's carbon emissions depend on, completed from the shipped table, and its notes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

from edgefl.core import catalogue
from edgefl.core.carbon import OTHERS, Carbon, Making, PerGb, Pue, Region
from edgefl.core.devices import Board
from edgefl.core.errors import UserError, nearest
from edgefl.core.fleet import Fleet
from edgefl.core.plan import Assumption
from edgefl.core.sourced import Sourced, sourced
from edgefl.core.yamls import Document

_TABLE = Path(__file__).with_name("carbon.yaml")
_UNKNOWN = {"status": "unknown", "source": "no published figure was found"}


@cache
def table() -> dict[str, Any]:
    """The shipped table as plain data."""
    return dict(Document.read(_TABLE).data)


def shipped(name: str, *, hourly: bool) -> dict[str, Any]:
    """What a ``Region`` has of the table: the means by hour, where wanted and there, or the year's mean."""
    sources, mean = table()["sources"], table()["means"][name]
    by_hour = table()["hours"].get(name) if hourly else None
    if by_hour is None:
        source = f"mean of {mean['year']}: {sources['mix']}"
        return {"g_per_kwh": f"{mean['mean']}", "status": "derived", "source": source}
    source = f"{by_hour['file']}, {by_hour['year']}: {sources['hours']}"
    return {"g_per_kwh": by_hour["hours"], "status": "derived", "source": source}


def with_carbon(fleet: Fleet, devices: Mapping[str, Board]) -> Fleet:
    """The fleet with its carbon record complete; the fleet as it is if it has none.

    Raises:
        UserError: the record names a region, a link or a device that there is not.
    """
    carbon = fleet.carbon
    if carbon is None:
        return fleet
    regions = [name for name, region in carbon.regions.items() if region.g_per_kwh is None]
    if carbon.server and carbon.server_region not in carbon.regions:
        regions.append(carbon.server_region)
    links = {*fleet.links, *catalogue.entries("links"), OTHERS}
    kept = {*devices, *catalogue.entries("devices"), *get_args(Board.model_fields["category"].annotation)}
    made = carbon.embodied.devices if carbon.embodied else {}
    for given, known, what, key in (
        (regions, set(table()["means"]), "region", "regions"),
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


def completed(carbon: Carbon, links: Iterable[str], devices: Mapping[str, str], start_h: float) -> Carbon:
    """With all that the fleet leaves out, so that the table may change.

    Args:
        carbon: the fleet's.
        links: the names of its links.
        devices: its devices' categories by name.
        start_h: the hour at which the fleet's availability begins.
    """
    regions, server, embodied = dict(carbon.regions), carbon.server, carbon.embodied
    if server is not None:
        name = carbon.server_region
        regions.setdefault(name, Region(share=0.0))
        pue = server.pue or Sourced[Pue].model_validate(table()["pue"])
        server = server.model_copy(update={"pue": pue, "region": name})
    if embodied is not None:
        known = {kind: Making.model_validate(made) for kind, made in table()["embodied"].items()}
        known |= embodied.devices
        nothing = Making.model_validate({"made": _UNKNOWN, "lifetime": _UNKNOWN})
        made = {name: known.get(name) or known.get(kind, nothing) for name, kind in devices.items()}
        embodied = embodied.model_copy(update={"devices": made})
    for name, region in regions.items():
        if region.g_per_kwh is None:
            regions[name] = Region(share=region.share, **shipped(name, hourly=carbon.hourly))
    network = {}
    for link in links:
        one = carbon.network.get(link) or carbon.network.get(OTHERS) or table()["links"].get(link, "fixed")
        number = table()["network"][one] if isinstance(one, str) else one
        network[link] = Sourced[PerGb].model_validate(number)
    start = start_h if carbon.start is None else carbon.start
    update = {"regions": regions, "start": start, "network": network, "server": server, "embodied": embodied}
    return carbon.model_copy(update=update)


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
