"""What a fleet's carbon emissions depend on: its regions, its network, its server and its hardware.

Each number has a status and a source. Those that a fleet leaves out are from the shipped table; a completed
record, which a run's directory keeps, has them all, so that the table may change.

The server counts at its power times its PUE, power usage effectiveness: the energy of the site over that of
its computers. Hardware counts by the share of its lifetime that is used, as the Green Software Foundation's
Software Carbon Intensity specification has it (ISO/IEC 21031, "Embodied emissions").
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from edgefl.core.errors import UserError, nearest, short
from edgefl.core.params import NonNegative, Strict
from edgefl.core.sourced import UNSOURCED, Costs, Sourced
from edgefl.core.units import Grams, KwhPerGb, Seconds, Watts, parse
from edgefl.core.user_files import found
from edgefl.core.yamls import Document, by_hand, text_of

# Stands for every link that is not named.
OTHERS = "others"

_NETWORKS = ("fixed", "mobile")
_INCOMPLETE = "a carbon record was used before it was completed"

# Beyond any use, so that no sum is infinite.
_MOST = 1e12

# A year of lignite is 1,100 g/kWh; beyond this it is a mistake in the unit.
MOST_G_PER_KWH = 10_000.0
# Of a file, and of a region: ten years.
_MOST_BYTES = 50_000_000
_MOST_HOURS = 87_840
_COLUMNS = ["region", "hour", "g_per_kwh"]

_TABLE = Path(__file__).with_name("carbon.yaml")

_PerGb = Annotated[KwhPerGb, Field(le=_MOST)]
_Power = Annotated[Watts, Field(le=_MOST)]
_Pue = Annotated[float, Field(ge=1, le=1000), Costs.MORE]
_Made = Annotated[Grams, Field(le=_MOST)]
_Lifetime = Annotated[Seconds, Field(ge=1), Costs.LESS]


@lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    """The shipped table as plain data."""
    return dict(Document.read(_TABLE).data)


def shipped(name: str, *, hourly: bool) -> dict[str, Any]:
    """A region of the shipped table: "g_per_kwh", "status" and "source" of a ``Region``.

    Args:
        name: the country's two letters (ISO 3166-1), one of the table's.
        hourly: take the means by hour where there are any, and the year's mean elsewhere.
    """
    found = table()
    sources, mean = found["sources"], found["means"][name]
    by_hour = found["hours"].get(name) if hourly else None
    if by_hour is None:
        source = f"mean of {mean['year']}: {sources['mix']}"
        return {"g_per_kwh": f"{mean['mean']}", "status": "derived", "source": source}
    source = f"{by_hour['file']}, {by_hour['year']}: {sources['hours']}"
    return {"g_per_kwh": by_hour["hours"], "status": "derived", "source": source}


def numbers(hours: str) -> list[float]:
    """The intensities of a text, g CO2e/kWh.

    Raises:
        ValueError: one of them is no number between 0 and ``MOST_G_PER_KWH``, or their number is not 1 or of
            whole days.
    """
    found = [_intensity(word) for word in hours.split()]
    count = len(found)
    if count != 1 and (count % 24 or not 0 < count <= _MOST_HOURS):
        raise ValueError(f"give 1 intensity, or one for each hour of up to 3,660 whole days, not {count:,}")
    return found


def _intensity(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MOST_G_PER_KWH:
        raise ValueError(f"{short(word)!r} must be g CO2e/kWh, between 0 and {MOST_G_PER_KWH:,.0f}")
    return value


def _written(values: Iterable[float]) -> str:
    return " ".join(f"{value:.10g}" for value in values)


@lru_cache(maxsize=4)
def _of_csv(path: Path, text: str) -> dict[str, str]:
    """The regions of a CSV file: their intensities by hour.

    Raises:
        UserError: a line is wrong.
    """
    lines = csv.reader(text.splitlines(), strict=True)
    found: dict[str, list[float]] = {}
    try:
        _check_columns(next(lines, []))
        for fields in filter(None, lines):
            _add(fields, found)
    except (csv.Error, ValueError) as error:
        raise UserError(str(error), where=f"{path}:{max(lines.line_num, 1)}") from None
    if not found:
        raise UserError("there are no intensities", where=str(path))
    by_region = {region: _written(values) for region, values in found.items()}
    for region, hours in by_region.items():
        try:
            numbers(hours)
        except ValueError as error:
            raise UserError(f"region {short(region)!r}: {error}", where=str(path)) from None
    return by_region


def _check_columns(names: list[str]) -> None:
    if [name.strip() for name in names] != _COLUMNS:
        raise ValueError(f"the first line must be {','.join(_COLUMNS)}")


def _add(fields: list[str], found: dict[str, list[float]]) -> None:
    """Adds a row; the hours of a region come in order, from 0."""
    if len(fields) != len(_COLUMNS):
        raise ValueError(f"{short(','.join(fields))!r} must be a region, an hour and g CO2e/kWh")
    region, hour, word = (field.strip() for field in fields)
    if not region:
        raise ValueError("the region has no name")
    values = found.setdefault(region, [])
    if hour != str(len(values)):
        raise ValueError(
            f"region {short(region)!r}: its next hour must be {len(values)}, not {short(hour)!r}"
        )
    values.append(_intensity(word))


def _unknown(what: str, name: str, known: Iterable[str]) -> PydanticCustomError:
    context = {"what": f"unknown {what} {name!r}", "hint": nearest(name, known)}
    return PydanticCustomError("unknown_name", "{what}", context)


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
    g_per_kwh: str | None = None
    status: Literal["measured", "derived", "assumed"] | None = None
    source: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        if value.get("g_per_kwh") is not None:
            return {"status": "assumed", "source": UNSOURCED, **value}
        if value.get("status") is not None or value.get("source") is not None:
            raise ValueError("'status' and 'source' belong to 'g_per_kwh', which is missing")
        return value

    @field_validator("g_per_kwh", mode="before")
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            value = " ".join(map(str, value))
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        return _written(numbers(str(value))) if plain or isinstance(value, str) else value


class ServerPower(Strict):
    """The server, which is on from the start to the end of a run.

    Attributes:
        power: its mean power.
        pue: the power of its site over its own; null is from the table.
        region: where it is; by default the fleet's only region. It need not be one of the clients'.
    """

    power: Sourced[_Power]
    pue: Sourced[_Pue] | None = None
    region: str | None = None

    @model_validator(mode="after")
    def _is_known(self) -> Self:
        if self.power.value is None or (self.pue is not None and self.pue.value is None):
            raise ValueError("a server needs the values of its power and its PUE")
        return self

    @property
    def site_w(self) -> float:
        """The power of the server and its site, of a completed record."""
        if self.pue is None:
            raise AssertionError(_INCOMPLETE)
        return self.power.known * self.pue.known


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


_Network: TypeAlias = Literal["fixed", "mobile"] | Sourced[_PerGb]


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


def _from_file(regions: Any, file: str) -> Any:
    """Regions with the intensities that a file has.

    Raises:
        UserError: a line of it is wrong.
        PydanticCustomError: there is no such file, or neither it nor the table has a region.
    """
    path = found(file)
    own = _of_csv(path, text_of(path, _MOST_BYTES))
    if not isinstance(regions, Mapping):
        return regions
    return {name: _region(str(name), one, own, file) for name, one in regions.items()}


def _region(name: str, record: Any, own: Mapping[str, str], file: str) -> Any:
    if isinstance(record, Region) or record.get("g_per_kwh") is not None:
        return record
    if name in own:
        return {"g_per_kwh": own[name], "source": f"the user's file {file}", **record}
    if name not in table()["means"]:
        raise _unknown("region", name, {*own, *table()["means"]})
    return record


def _by_link(value: Any) -> Any:
    """A network's energy as a mapping of links."""
    if value is None:
        return {}
    if isinstance(value, Mapping) and not {"value", "status", "source"} & value.keys():
        return {link: _network(one) for link, one in value.items()}
    return {OTHERS: _network(value)}


def _network(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    if not isinstance(value, str) or not value.isalpha():
        parse(value, "energy per byte")
        return {"value": value}
    if value.lower() not in _NETWORKS:
        raise _unknown("network", value, _NETWORKS)
    return value.lower()


def _embodied(value: Any) -> Any:
    return {"hours": value} if isinstance(value, str) else value


class Carbon(Strict):
    """What a fleet's carbon emissions depend on.

    Attributes:
        regions: where the clients are: one, a list of equal shares, or a mapping to shares or to records.
        hourly: take the table's means by hour for the regions that have them, not the year's mean.
        grid: a CSV file with the intensities of regions, in place of the table's.
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
    grid: str | None = None
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

    @model_validator(mode="before")
    @classmethod
    def _content_of_the_file(cls, value: Any) -> Any:
        # It, and not the file's name, is what a run depends on.
        if not isinstance(value, Mapping) or not isinstance(value.get("grid"), str):
            return value
        regions, server = _records(value.get("regions")), value.get("server")
        where = server.get("region") if isinstance(server, Mapping) else None
        if isinstance(regions, Mapping) and isinstance(where, str):
            regions = {**regions, where: regions.get(where, {"share": 0.0})}
        return {**value, "grid": None, "regions": _from_file(regions, value["grid"])}

    @model_validator(mode="after")
    def _regions_are_known(self, info: ValidationInfo) -> Self:
        # A record that is read back may name regions of an older table: a completed one is beside it.
        own = {name for name, region in self.regions.items() if region.g_per_kwh is not None}
        known = {*own, *table()["means"]}
        for name in [*self.regions, *([self.server_region] if self.server else [])]:
            if name not in known and by_hand(info.context):
                raise _unknown("region", name, known)
        return self

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
        if isinstance(number, Sourced):
            return number.value
        raise AssertionError(_INCOMPLETE)


def completed(carbon: Carbon, links: Iterable[str], devices: Mapping[str, str], start_h: float) -> Carbon:
    """All that the fleet leaves out, from the table, so that the record says it all.

    Args:
        carbon: the fleet's.
        links: the names of its links.
        devices: its devices' categories by name.
        start_h: the hour at which the fleet's availability begins.
    """
    regions = dict(carbon.regions)
    server, embodied = carbon.server, carbon.embodied
    if server is not None:
        name = carbon.server_region
        regions.setdefault(name, Region(share=0.0))
        pue = server.pue or Sourced[_Pue].model_validate(table()["pue"])
        server = server.model_copy(update={"pue": pue, "region": name})
    if embodied is not None:
        own = embodied.devices
        made = {name: own.get(name) or own.get(kind) or _made(kind) for name, kind in devices.items()}
        embodied = embodied.model_copy(update={"devices": made})
    return carbon.model_copy(
        update={
            "regions": {name: _filled(name, one, hourly=carbon.hourly) for name, one in regions.items()},
            "start": start_h if carbon.start is None else carbon.start,
            "network": {link: _network_of(carbon, link) for link in links},
            "server": server,
            "embodied": embodied,
        }
    )


def _filled(name: str, region: Region, *, hourly: bool) -> Region:
    """A region with its intensities."""
    if region.g_per_kwh is not None:
        return region
    return Region(share=region.share, **shipped(name, hourly=hourly))


def _network_of(carbon: Carbon, link: str) -> Sourced[_PerGb]:
    by_default = table()["links"].get(link, "fixed")
    given = carbon.network.get(link) or carbon.network.get(OTHERS) or by_default
    return given if isinstance(given, Sourced) else Sourced[_PerGb].model_validate(table()["network"][given])


def _made(category: str) -> Making:
    """A category's making, from the table; unknown where it has none."""
    nothing = {"status": "unknown", "source": "no published figure was found"}
    return Making.model_validate(table()["embodied"].get(category, {"made": nothing, "lifetime": nothing}))
