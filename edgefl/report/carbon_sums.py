"""What a run's jobs emitted and used, by client: sums over their rows.

A stage's joules are spread evenly from its beginning to its end, and emit what the grid of the client's
region emits in the mean in that time; so does its traffic's network energy. The tail that a client's earlier
transfer left open counts with the receiving that follows it, one that is settled at the run's end when it is
over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from edgefl.core.carbon import Carbon, dealt
from edgefl.core.draws import Floats
from edgefl.core.event import JOULES
from edgefl.core.intensity import Intensities, grams
from edgefl.core.plan import Ints
from edgefl.core.repricing import Jobs, Taken
from edgefl.report.bounds import Bounds
from edgefl.store import Reader

# Rows of jobs that are read at a time.
_CHUNK = 1 << 17
_B_PER_GB = 1e9
_STAGES = ("receive", "work", "transmit")
_CHARGED = {"receive": ("receive", "earlier"), "work": ("work",), "transmit": ("transmit",)}
_BYTES = {"receive": "down_bytes", "work": "0", "transmit": "up_bytes"}


class Whom(NamedTuple):
    """The clients, a column each, and the names that the columns refer to."""

    region: Ints
    link: Ints
    device: Ints
    admitted: Floats
    links: Sequence[str]
    devices: Sequence[str]

    @classmethod
    def read(cls, reader: Reader, carbon: Carbon) -> Whom:
        """Those of a run, dealt to the record's regions."""
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


class Sums(NamedTuple):
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


def sums_of(reader: Reader, whom: Whom, grid: Intensities, until: Sequence[float]) -> list[Sums]:
    """The sums over the stages that were over at given times."""
    clients = len(whom.region)
    sums = [Sums(*(np.zeros(clients) for _ in Sums._fields)) for _ in until]
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
    sums: Sequence[Sums], reader: Reader, whom: Whom, grid: Intensities, until: Sequence[float]
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


def at_corners(
    sums: Sequence[Sums],
    reader: Reader,
    bounds: Bounds,
    whom: Whom,
    grid: Intensities,
    until: Sequence[float],
    end_s: float,
) -> list[tuple[Sums, Sums]]:
    """The sums at the cheap and at the costly corner of the devices' and links' numbers.

    Hours stay those of the run, at which its jobs began and ended.

    Args:
        sums: those of the run, at given times.
        reader: the run.
        bounds: of the run.
        whom: the clients.
        grid: the intensities.
        until: the times.
        end_s: the run's end.
    """
    jobs, clients, settled_s = bounds.jobs, len(whom.region), _settled_s(reader, end_s)
    found = []
    for corner in bounds.by_job(end_s):
        ends = [own._replace(devices_g=np.zeros(clients), busy_s=np.zeros(clients)) for own in sums]
        for places, taken in corner:
            _add_jobs(ends, jobs.taken(places), taken, settled_s[places], whom, grid, until)
        found.append(ends)
    return list(zip(*found, strict=True))


def _add_jobs(
    sums: Sequence[Sums],
    jobs: Jobs,
    taken: Taken,
    settled_s: Floats,
    whom: Whom,
    grid: Intensities,
    until: Sequence[float],
) -> None:
    """Adds what jobs took at a corner, in the hours of the run, to those sums at whose times it was over."""
    reached = (jobs.received_s, jobs.worked_s, jobs.arrived_s)
    ends = [np.where(np.isnan(one), jobs.ended_s, one) for one in reached]
    starts, ends = [jobs.dispatched_s, *ends[:-1], settled_s], [*ends, settled_s]
    busy_s = (*taken.busy_s, np.zeros(len(settled_s)))
    for start, end, joules, seconds in zip(starts, ends, (*taken.stage_j, taken.open_j), busy_s, strict=True):
        emitted = grams(joules, grid.mean(whom.region[jobs.client], start, end))
        for end_s, each in zip(until, sums, strict=True):
            over = end <= end_s
            for total, amount in ((each.devices_g, emitted), (each.busy_s, seconds)):
                total[:] += np.bincount(jobs.client[over], weights=amount[over], minlength=len(total))


def _settled_s(reader: Reader, end_s: float) -> Floats:
    """When the tail that each job left open was over, by job; the run's end where it left none."""
    sql = "SELECT IFNULL(t_s, -1.0) FROM jobs LEFT JOIN settled_tails USING (client, job) ORDER BY job"
    (t_s,) = reader.arrays(sql, t_s=np.float64).values()
    return np.where(t_s < 0, end_s, t_s)
