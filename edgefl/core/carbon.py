"""What a fleet's carbon emissions depend on: its regions, its network, its server and its hardware.

Planning completes the record with the shipped table's numbers. The server counts at its power times its PUE,
power usage effectiveness: the energy of the site over that of its computers. Hardware counts by the share of
its lifetime that is used, as the Green Software Foundation's Software Carbon Intensity specification has it
(ISO/IEC 21031, "Embodied emissions").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, model_validator
from typing_extensions import TypedDict

from edgefl.core.csv_rows import RowError, file_rows, read_csv
from edgefl.core.params import NonNegative, Strict
from edgefl.core.sourced import NEEDED, UNSOURCED, Costs, Sourced
from edgefl.core.units import Grams, KwhPerGb, Seconds, Watts
from edgefl.core.validation import item_at

# Stands for every link that is not named.
OTHERS = "others"

# Beyond any use, so that no sum is infinite.
_MOST = 1e12

# A year of lignite is 1,100 g/kWh; beyond the most it is a mistake in the unit.
_Intensity = Annotated[float, Field(ge=0, le=10_000, allow_inf_nan=False)]
_INTENSITIES: TypeAdapter[list[float]] = TypeAdapter(list[_Intensity])
# Of a region: ten years.
_MOST_HOURS = 87_840


class _GridRow(TypedDict):
    region: Annotated[str, Field(min_length=1)]
    hour: int
    g_per_kwh: _Intensity


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


def _of_csv(text: str) -> dict[str, list[float]]:
    """The regions of a CSV file, each with its intensities by hour, from 0 on."""
    table, found = read_csv(text, _GridRow), dict[str, list[float]]()
    for row, line in zip(table.rows, table.lines, strict=True):
        values = found.setdefault(row["region"], [])
        if row["hour"] != len(values):
            raise RowError(f"the next hour of {row['region']} must be {len(values)}", line)
        values.append(row["g_per_kwh"])
    return found


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
        grid, regions = item_at(value, ["grid"]), _records(item_at(value, ["regions"]))
        if not isinstance(grid, str) or not isinstance(regions, Mapping):
            return value
        own = file_rows(grid, _of_csv)
        if isinstance(where := item_at(value, ["server", "region"]), str) and where in own:
            regions = {**regions, where: regions.get(where, {"share": 0.0})}
        source = f"the user's file {grid}"
        found = {
            name: {"g_per_kwh": own[name], "source": source, **one} if name in own else one
            for name, one in regions.items()
        }
        return {**value, "grid": None, "regions": found}

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
