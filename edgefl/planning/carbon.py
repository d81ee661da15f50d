"""What a fleet's carbon emissions depend on: its regions, its network, its server and its hardware.

A fleet has it as plain data, which planning reads and completes with the shipped table's numbers: emissions
are reckoned of a run's jobs and change nothing in it. The server counts at its power times its PUE, power
usage effectiveness: the energy of the site over that of its computers. Hardware counts by the share of its
lifetime that is used, as the Green Software Foundation's Software Carbon Intensity specification has it
(ISO/IEC 21031, "Embodied emissions").
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

from edgefl.core import catalogue
from edgefl.core.devices import Board
from edgefl.core.errors import UserError, nearest
from edgefl.core.fleet import Fleet
from edgefl.core.params import NonNegative, Strict
from edgefl.core.plan import Assumption
from edgefl.core.sourced import NEEDED, UNSOURCED, Costs, Sourced, sourced
from edgefl.core.units import Grams, KwhPerGb, Seconds, Watts
from edgefl.core.validation import validate
from edgefl.core.yamls import Document

_TABLE = Path(__file__).with_name("carbon.yaml")
_UNKNOWN = {"status": "unknown", "source": "no published figure was found"}


# Stands for every link that is not named.
OTHERS = "others"

# Beyond any use, so that no sum is infinite.
_MOST = 1e12

# A year of lignite is 1,100 g/kWh; beyond the most it is a mistake in the unit.
_Intensity = Annotated[float, Field(ge=0, le=10_000, allow_inf_nan=False)]
_INTENSITIES: TypeAdapter[list[float]] = TypeAdapter(list[_Intensity])
# Of a region: ten years.
_MOST_HOURS = 87_840


PerGb = Annotated[KwhPerGb, Field(le=_MOST)]
_Power = Annotated[Watts, Field(le=_MOST)]
Pue = Annotated[float, Field(ge=1, le=1000), Costs.MORE]
_Made = Annotated[Grams, Field(le=_MOST)]
_Lifetime = Annotated[Seconds, Field(ge=1), Costs.LESS]


def _written(given: Any) -> str:
    """One intensity, or one for each hour of whole days, as text."""
    texts = given.split() if isinstance(given, str) else given
    try:
        values = _INTENSITIES.validate_python(texts if isinstance(texts, list | tuple) else [texts])
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        raise ValueError(f"g_per_kwh {wrong['input']!r}: {wrong['msg']}") from None
    count = len(values)
    if count != 1 and (count % 24 or not 0 < count <= _MOST_HOURS):
        raise ValueError(f"give 1 intensity, or one for each hour of up to 3,660 whole days, not {count:,}")
    return " ".join(f"{value:.10g}" for value in values)


class Region(Strict):
    """A region's grid.

    Attributes:
        share: its weight among the regions; clients are dealt to them in these proportions. 0 is a region
            of the server alone.
        g_per_kwh: CO2e by energy: one number, or one for each hour of whole days, which repeat; kept as
            text. Null is from the table.
        status: as of ``Sourced``.
        source: where they were read.
    """

    share: NonNegative = 1.0
    g_per_kwh: Annotated[str, BeforeValidator(_written)] | None = None
    status: Literal["measured", "derived", "assumed"] | None = None
    source: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_a_source(cls, value: Any) -> Any:
        given = isinstance(value, Mapping) and value.get("g_per_kwh") is not None
        return {"status": "assumed", "source": UNSOURCED, **value} if given else value


class ServerPower(Strict):
    """The server, which is on from the start to the end of a run.

    Attributes:
        power: its mean power.
        pue: the power of its site over its own; null is from the table.
        region: where it is; by default the fleet's only region. It need not be one of the clients'.
    """

    power: Annotated[Sourced[_Power], NEEDED]
    pue: Annotated[Sourced[Pue], NEEDED] | None = None
    region: str | None = None


class Making(Strict):
    """What making a device emitted, and how long it is kept.

    Attributes:
        made: unknown makes its clients' embodied emissions unknown.
        lifetime: unknown likewise.
    """

    made: Sourced[_Made]
    lifetime: Sourced[_Lifetime]

    @property
    def grams_per_s(self) -> float | None:
        """Per second of the lifetime; None if unknown."""
        made, lifetime = self.made.value, self.lifetime.value
        return None if made is None or lifetime is None else made / lifetime


class Embodied(Strict):
    """What making the clients' devices emitted, by the share of their lifetime.

    Attributes:
        hours: what is the run's share: the time in which a client is "busy" receiving, working and sending,
            or all time in which it is "owned", from the start to the end of the run.
        devices: by device or by category; the table has some categories.
    """

    hours: Literal["busy", "owned"] = "busy"
    devices: dict[str, Making] = Field({})


_Network: TypeAlias = Literal["fixed", "mobile"] | Sourced[PerGb]


def _records(regions: Any) -> Any:
    """Regions in any form as a mapping to records."""
    if isinstance(regions, str):
        regions = [regions]
    if isinstance(regions, list | tuple) and all(isinstance(name, str) for name in regions):
        regions = dict.fromkeys(regions, 1.0)
    if not isinstance(regions, Mapping):
        return regions
    return {
        name: one if isinstance(one, Mapping | Region) else {"share": one} for name, one in regions.items()
    }


def _by_link(value: Any) -> Any:
    """A network's energy as a mapping of links."""
    by_link = isinstance(value, Mapping) and not Sourced.model_fields.keys() & value.keys()
    return {} if value is None else value if by_link else {OTHERS: value}


def _embodied(value: Any) -> Any:
    return {"hours": value} if isinstance(value, str) else value


class Carbon(Strict):
    """What a fleet's carbon emissions depend on.

    Attributes:
        regions: where the clients are: one, a list of equal shares, or a mapping to shares or to records.
        hourly: take the table's means by hour for the regions that have them, not the year's mean.
        start: the hour in UTC, of the first day, at which the virtual clock begins; by default that of
            ``availability``, or 0.
        network: energy by traffic: "fixed", "mobile" or a number for all links, or a mapping of links to
            these. By default by link: the network classes of mobile networks are mobile, others fixed.
        server: null leaves it out.
        embodied: null leaves it out; "busy" or "owned" is short for its hours.
    """

    regions: Annotated[
        dict[str, Region],
        Field(min_length=1),
        BeforeValidator(_records, json_schema_input_type=str | list[str] | dict[str, float | Region]),
    ]
    hourly: bool = True
    start: Annotated[float, Field(ge=0, le=87_840)] | None = None
    network: Annotated[
        dict[str, _Network],
        BeforeValidator(_by_link, json_schema_input_type=str | _Network | dict[str, str | _Network] | None),
    ] = Field({})
    server: ServerPower | None = None
    embodied: Annotated[
        Embodied | None,
        BeforeValidator(_embodied, json_schema_input_type=Literal["busy", "owned"] | Embodied | None),
    ] = None

    @model_validator(mode="after")
    def _everybody_is_somewhere(self) -> Self:
        populated = [name for name, region in self.regions.items() if region.share]
        if not populated:
            raise ValueError("at least one of the regions must have a share above 0")
        if self.server is not None and self.server.region is None and len(populated) > 1:
            raise ValueError("the server needs a region, since the fleet has several")
        return self

    @property
    def server_region(self) -> str:
        """Where the server is: its own region, or the fleet's only one."""
        own = self.server.region if self.server else None
        return own or max(self.regions, key=lambda name: self.regions[name].share)

    def kwh_per_gb(self, link: str) -> float | None:
        """The network's energy behind a link, of a completed record; None if unknown."""
        number = self.network[link]
        return number.value if isinstance(number, Sourced) else None


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


def carbon_of(fleet: Fleet, document: Document, path: Sequence[str | int] = ()) -> Carbon | None:
    """What a fleet that was read from ``path`` in a document has of it; None for nothing.

    Raises:
        UserError: it is wrong, or names a region, a link or a device that there is not.
    """
    if fleet.carbon is None:
        return None
    above = [*path, "carbon"]
    carbon = validate(Carbon, fleet.carbon, document, above)
    asked = {name: ["regions", name] for name, region in carbon.regions.items() if region.g_per_kwh is None}
    if carbon.server and carbon.server_region not in carbon.regions:
        asked[carbon.server_region] = ["server", "region"]
    links = {name: ["network", name] for name in carbon.network}
    made = {
        name: ["embodied", "devices", name] for name in (carbon.embodied.devices if carbon.embodied else ())
    }
    categories = get_args(Board.model_fields["category"].annotation)
    for what, given, known in (
        ("region", asked, table()["means"]),
        ("link", links, {*fleet.links, *catalogue.entries("links"), OTHERS}),
        ("device or category", made, {*catalogue.entries("devices"), *categories}),
    ):
        for wrong in (name for name in given if name not in known):
            where = document.place([*above, *given[wrong]])
            raise UserError(f"unknown {what} {wrong!r}", where=where, hint=nearest(wrong, known))
    return carbon


def with_carbon(fleet: Fleet, carbon: Carbon | None) -> Fleet:
    """A fleet with a record of it, in base units, however it was written."""
    given = None if carbon is None else carbon.model_dump(mode="json", exclude_none=True)
    return fleet.model_copy(update={"carbon": given})


def completed(carbon: Carbon, links: Iterable[str], devices: Mapping[str, str], start_h: float) -> Carbon:
    """With all that the fleet leaves out, so that the table may change.

    Devices are given by their categories; ``start_h`` is the hour at which the fleet's availability begins.
    """
    regions, server, embodied = dict(carbon.regions), carbon.server, carbon.embodied
    if server is not None:
        name = carbon.server_region
        regions.setdefault(name, Region(share=0.0))
        pue = server.pue or Sourced[Pue].model_validate(table()["pue"])
        server = server.model_copy(update={"pue": pue, "region": name})
    if embodied is not None:
        made = {kind: Making.model_validate(one) for kind, one in table()["embodied"].items()}
        made |= embodied.devices
        nothing = Making.model_validate({"made": _UNKNOWN, "lifetime": _UNKNOWN})
        made = {name: made.get(name) or made.get(kind, nothing) for name, kind in devices.items()}
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


def carbon_notes(carbon: Carbon) -> Iterator[str]:
    """A line for each number of a completed record that is unknown, and one for those that are assumed."""
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
