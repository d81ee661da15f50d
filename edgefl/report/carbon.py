"""What a run emitted, in grams of CO2e, from the rows of its jobs.

A stage's joules are spread evenly from its beginning to its end, and emit what the grid of the client's
region emits in the mean in that time; so does its traffic's network energy. The tail that a client's earlier
transfer left open counts with the receiving that follows it, one that is settled at the run's end when it is
over.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from edgefl.core.carbon import Carbon, dealt, intensities
from edgefl.core.corners import Corner, at_corner, has_interval
from edgefl.core.documents import OPTIONAL
from edgefl.core.draws import Floats
from edgefl.core.event import JOULES
from edgefl.core.intensity import Intensities, grams
from edgefl.core.plan import Ints
from edgefl.core.units import RESOLVED, show_grams
from edgefl.core.validation import validate
from edgefl.core.yamls import Document
from edgefl.report.tables import UNKNOWN
from edgefl.store import Reader

COMPONENTS = ("devices", "network", "server", "embodied")

# Rows of jobs that are read at a time.
_CHUNK = 1 << 17
_B_PER_GB = 1e9
_STAGES = ("receive", "work", "transmit")
_CHARGED = {"receive": ("receive", "earlier"), "work": ("work",), "transmit": ("transmit",)}
_BYTES = {"receive": "down_bytes", "work": "0", "transmit": "up_bytes"}


@dataclass(frozen=True)
class Amount:
    """A mass, and how many clients it covers.

    Attributes:
        grams: of the clients of which all numbers are known; None where there are none.
        known: how many clients those are.
        clients: how many there are; of the server it is 1, itself.
        low, high: bounds of the sum over all clients where numbers are intervals; None for no bound.
    """

    grams: float | None
    known: int
    clients: int
    low: float | None = field(default=None, metadata=OPTIONAL)
    high: float | None = field(default=None, metadata=OPTIONAL)

    def __str__(self) -> str:
        bounds = ""
        if self.low is not None or self.high is not None:
            least, most = (None if one is None else show_grams(one) for one in (self.low, self.high))
            if self.grams is None:
                return f"{least} to {most}" if self.low and most else f"at most {most}" if most else UNKNOWN
            bounds = f" ({least or 0} to {most})" if most else f" (at least {least})"
        partly = self.grams is not None and self.known < self.clients
        text = UNKNOWN if self.grams is None else show_grams(self.grams)
        return f"{text}{bounds}" + (f" ({self.known} of {self.clients} clients)" if partly else "")


@dataclass(frozen=True)
class Emissions:
    """What was emitted, by what emitted it.

    Attributes:
        devices: the energy of clients' jobs.
        network: the traffic.
        server: its energy; None where it is not counted.
        embodied: the share of devices' making; None where it is not counted.
        total: the sum.
        waiting: clients at idle power while they wait for the server; no part of the sum.
    """

    devices: Amount
    network: Amount
    server: Amount | None = field(metadata=OPTIONAL)
    embodied: Amount | None = field(metadata=OPTIONAL)
    total: Amount
    waiting: Amount


@dataclass(frozen=True)
class Footprint:
    """A run's carbon emissions.

    Attributes:
        emitted: in the whole run.
        to_target: until each model, "global" and "personal", reached the target; those that did.
        regions: how many clients each region has.
        boundary: what is counted, and what is not.
    """

    emitted: Emissions
    to_target: Mapping[str, Emissions]
    regions: Mapping[str, int]
    boundary: str


def footprint(reader: Reader, virtual_s: float, reached_s: Mapping[str, float]) -> Footprint | None:
    """A run's emissions; None where its fleet does not ask for them.

    Args:
        reader: the run.
        virtual_s: its length.
        reached_s: when each model reached the target.

    Raises:
        UserError: what it says of carbon is damaged.
    """
    found = reader.meta.get("carbon")
    if found is None:
        return None
    document = Document(reader.where, {"carbon": found}, context=RESOLVED)
    carbon = validate(Carbon, found, document, ["carbon"])
    whom = _Whom.read(reader, carbon)
    grid = intensities(carbon)
    until = [math.inf, *reached_s.values()]
    sums = _sums(reader, whom, grid, until)
    whole, *targets = (
        _emissions(carbon, whom, grid, each, end_s)
        for each, end_s in zip(sums, [virtual_s, *reached_s.values()], strict=True)
    )
    counts = np.bincount(whom.region, minlength=len(carbon.regions)).tolist()
    dealt_to = {name: count for name, count in zip(carbon.regions, counts, strict=True) if count}
    return Footprint(whole, dict(zip(reached_s, targets, strict=True)), dealt_to, boundary(carbon))


class _Whom(NamedTuple):
    """The clients, a column each, and the names that the columns refer to."""

    region: Ints
    link: Ints
    device: Ints
    admitted: Floats
    links: Sequence[str]
    devices: Sequence[str]

    @classmethod
    def read(cls, reader: Reader, carbon: Carbon) -> _Whom:
        fleet = reader.arrays(
            "SELECT kind, admitted FROM fleet ORDER BY client", kind=np.int64, admitted=np.float64
        )
        kinds = reader.rows("kinds", "kind")
        names = {key: list(dict.fromkeys(row[key] for row in kinds)) for key in ("link", "device")}
        places = {
            key: np.array([known.index(row[key]) for row in kinds], dtype=np.int64)[fleet["kind"]]
            for key, known in names.items()
        }
        region = dealt(carbon, len(fleet["kind"]), reader.meta["seed"])
        return cls(region, **places, admitted=fleet["admitted"], links=names["link"], devices=names["device"])


class _Sums(NamedTuple):
    """Sums over each client's jobs, (clients,).

    Attributes:
        jobs: how many.
        devices_g: of their energy; NaN where one is unknown.
        traffic: gigabytes times g/kWh.
        busy_s: receiving, working and sending.
        waiting_g: of their energy while they wait for the server; NaN where one is unknown.
    """

    jobs: Floats
    devices_g: Floats
    traffic: Floats
    busy_s: Floats
    waiting_g: Floats


def _sums(reader: Reader, whom: _Whom, grid: Intensities, until: Sequence[float]) -> list[_Sums]:
    """The sums over the stages that were over at given times."""
    clients = len(whom.region)
    sums = [_Sums(*(np.zeros(clients) for _ in _Sums._fields)) for _ in until]
    for rows in _chunks(reader):
        client, ended_s, ends = rows["client"], rows["ended_s"], [rows[f"{stage}_end"] for stage in _STAGES]
        waiting_g = grams(rows["waiting_joules"], grid.mean(whom.region[client], ends[-1], ended_s))
        for end_s, each in zip(until, sums, strict=True):
            each.jobs[:] += np.bincount(client[rows["dispatched_s"] <= end_s], minlength=clients)
            over = ended_s <= end_s
            each.waiting_g[:] += np.bincount(client[over], weights=waiting_g[over], minlength=clients)
        for stage, start, end in zip(_STAGES, [rows["dispatched_s"], *ends], ends, strict=False):
            intensity = grid.mean(whom.region[client], start, end)
            amounts = (
                grams(rows[f"{stage}_joules"], intensity),
                rows[f"{stage}_bytes"] / _B_PER_GB * intensity,
                rows[f"{stage}_busy"],
            )
            for end_s, each in zip(until, sums, strict=True):
                over = end <= end_s
                for total, amount in zip((each.devices_g, each.traffic, each.busy_s), amounts, strict=True):
                    total[:] += np.bincount(client[over], weights=amount[over], minlength=clients)
    _add_tails(sums, reader, whom, grid, until)
    return sums


def _add_tails(
    sums: Sequence[_Sums], reader: Reader, whom: _Whom, grid: Intensities, until: Sequence[float]
) -> None:
    """Adds the tails of radios that were settled at the run's end, to those sums of which it is."""
    sql = "SELECT client, t_s, IFNULL(joules, -1.0) FROM settled_tails"
    tails = reader.arrays(sql, client=np.int64, t_s=np.float64, joules=np.float64)
    client, t_s, joules = tails.values()
    emitted = grams(np.where(joules < 0, np.nan, joules), grid.mean(whom.region[client], t_s, t_s))
    for end_s, each in zip(until, sums, strict=True):
        np.add.at(each.devices_g, client[t_s <= end_s], emitted[t_s <= end_s])


def _chunks(reader: Reader) -> Iterator[Mapping[str, Any]]:
    """The jobs: where each stage ends, its busy seconds, bytes and joules, NaN for an unknown energy."""
    stations = {"receive": "received_s", "work": "worked_s", "transmit": "arrived_s"}
    columns = {"client": "client", "dispatched_s": "dispatched_s", "ended_s": "ended_s"}
    # No energy is negative, and SQLite has no NaN.
    columns["waiting_joules"] = "IFNULL(waiting_j, -1.0)"
    for stage in _STAGES:
        names = [name for name in JOULES if name.startswith(_CHARGED[stage])]
        columns[f"{stage}_end"] = f"IFNULL({stations[stage]}, ended_s)"
        columns[f"{stage}_busy"] = f"{stage}_s"
        columns[f"{stage}_bytes"] = _BYTES[stage]
        columns[f"{stage}_joules"] = f"IFNULL({' + '.join(names)}, -1.0)"
    types = {name: np.int64 if name == "client" else np.float64 for name in columns}
    (last,) = reader.query("SELECT IFNULL(MAX(job), -1) AS job FROM jobs")
    for first in range(0, last["job"] + 1, _CHUNK):
        sql = (
            f"SELECT {', '.join(columns.values())} FROM jobs WHERE job >= {first} AND job < {first + _CHUNK}"  # noqa: S608 - our own names
        )
        rows = reader.arrays(sql, **types)
        for name in types:
            if name.endswith("_joules"):
                rows[name][rows[name] < 0] = np.nan
        yield rows


def _emissions(carbon: Carbon, whom: _Whom, grid: Intensities, sums: _Sums, end_s: float) -> Emissions:
    records = [carbon]
    if has_interval(carbon):
        records += [at_corner(carbon, Corner.CHEAP), at_corner(carbon, Corner.COSTLY)]
    every = [_components(one, whom, grid, sums, end_s) for one in records]
    found = {name: _amount(*(each[name] for each in every)) for name in every[0]}
    return Emissions(
        **{name: found.get(name) for name in COMPONENTS},  # type: ignore[arg-type]  # two are always there
        total=_sum(list(found.values())),
        waiting=_amount(sums.waiting_g[np.flatnonzero(sums.jobs)]),
    )


def _components(
    carbon: Carbon, whom: _Whom, grid: Intensities, sums: _Sums, end_s: float
) -> dict[str, Floats]:
    """What each component emitted, by client, NaN for unknown; the server's is one number."""
    took_part = np.flatnonzero(sums.jobs)
    per_gb = _floats([carbon.kwh_per_gb(name) for name in whom.links])[whom.link]
    traffic = np.where(sums.traffic != 0, per_gb * sums.traffic, 0.0)
    found = {"devices": sums.devices_g[took_part], "network": traffic[took_part]}
    if carbon.server is not None:
        joules = carbon.server.site_w * np.array([end_s])
        region = np.array([grid.regions[carbon.server_region]])
        intensity = grid.mean(region, np.zeros(1), np.array([end_s]))
        found["server"] = grams(joules, intensity)
    if carbon.embodied is not None:
        per_s = _floats([carbon.embodied.devices[name].grams_per_s for name in whom.devices])[whom.device]
        if carbon.embodied.hours == "busy":
            found["embodied"] = (per_s * sums.busy_s)[took_part]
        else:
            found["embodied"] = (per_s * end_s)[np.flatnonzero(whom.admitted)]
    return found


def _floats(values: Sequence[float | None]) -> Floats:
    return np.array([math.nan if value is None else value for value in values])


def _amount(values: Floats, *corners: Floats) -> Amount:
    """The sum of what is known, with bounds of the sum of all where they differ from it."""
    known = values[~np.isnan(values)]
    grams_ = math.fsum(known.tolist()) if len(known) or not len(values) else None
    low = high = None
    if corners:
        least, most = math.fsum(np.nan_to_num(corners[0]).tolist()), math.fsum(corners[1].tolist())
        if not least == grams_ == most:
            low, high = least, None if math.isnan(most) else most
    return Amount(grams_, len(known), len(values), low, high)


def _sum(amounts: Sequence[Amount]) -> Amount:
    """The sum of components; unknown where one is. It covers the clients of the one that lacks most."""
    worst = max(amounts, key=lambda each: each.clients - each.known)
    low = high = None
    if any(each.low is not None or each.high is not None for each in amounts):
        low = _total([each.grams if each.low is None else each.low for each in amounts])
        high = _total([each.grams if each.low is None else each.high for each in amounts])
    return Amount(_total([each.grams for each in amounts]), worst.known, worst.clients, low, high)


def _total(terms: Sequence[float | None]) -> float | None:
    known = [term for term in terms if term is not None]
    return math.fsum(known) if len(known) == len(terms) else None


def boundary(carbon: Carbon) -> str:
    """What is counted and what is not, in a line."""
    hours = carbon.embodied.hours if carbon.embodied else ""
    parts = {
        "the server": carbon.server is not None,
        f"{hours} hours of devices' making" if hours else "making of devices": bool(hours),
    }
    counted = ["energy of jobs", "network", *(name for name, is_in in parts.items() if is_in)]
    left_out = [name for name, is_in in parts.items() if not is_in]
    return (
        f"CO2e at the grid's average intensity, not the marginal one; counted: {', '.join(counted)}; "
        f"not counted: {', '.join(['waiting and idle time between jobs', 'home routers', *left_out])}"
    )
