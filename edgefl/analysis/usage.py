"""What a run's jobs cost, useful and wasted, and who took part, in one pass over its jobs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from edgefl.core.event import JOULES, Kind
from edgefl.core.ledger import EnergyTotal
from edgefl.store import Reader

ENDINGS = (Kind.MERGED, Kind.LATE, Kind.LOST, Kind.CUT)
_PHASES = ("receive", "compute", "transmit", "tail", "idle")
_COUNTS = ("down_bytes", "up_bytes", "flops")
# SQLite's sums of integers end at 2^63, which a large fleet's operations pass: the halves are summed apart.
HALF = 31
_HALVES = ", ".join(
    f"SUM({name} >> {HALF}) AS {name}_high, SUM({name} & {(1 << HALF) - 1}) AS {name}_low" for name in _COUNTS
)
_SUMS = ", ".join(f"SUM({name}_{half}) AS {name}_{half}" for name in _COUNTS for half in ("high", "low"))

# Clients first, since an energy counts only if all energies of its client are known.
_SQL = f"""
WITH spent AS MATERIALIZED (
  SELECT client, exchange, ending, COUNT(*) AS jobs,
    COUNT(received_s) AS received, COUNT(arrived_s) AS arrived,
    {_HALVES},
    SUM(receive_s + work_s + transmit_s) AS client_s, MAX(ended_s) AS ended_s,
    SUM(receive_j) AS receive, SUM(work_j) AS compute, SUM(transmit_j) AS transmit,
    SUM(work_tail_j + earlier_tail_j) AS tail,
    SUM(receive_idle_j + work_idle_j + transmit_idle_j) AS idle, SUM(waiting_j) AS waiting,
    COUNT(*) = COUNT({" + ".join(JOULES)}) AS known
  FROM jobs GROUP BY client, exchange, ending),
settled AS MATERIALIZED (
  SELECT client, exchange, ending, joules FROM settled_tails JOIN jobs USING (client, job)),
by_client AS MATERIALIZED (
  SELECT client, MIN(known) AND client NOT IN (SELECT client FROM settled WHERE joules IS NULL) AS all_known,
    IFNULL(SUM(jobs) FILTER (WHERE ending = 'merged' AND at = 'round'), 0) AS merged
  FROM spent JOIN exchanges USING (exchange) GROUP BY client)
SELECT exchange, model, ending, device, MIN(all_known) AS every_known,
  SUM(jobs) AS jobs, SUM(received) AS received, SUM(arrived) AS arrived,
  {_SUMS},
  SUM(client_s) AS client_s, MAX(ended_s) AS ended_s,
  SUM(receive) FILTER (WHERE all_known) AS receive, SUM(compute) FILTER (WHERE all_known) AS compute,
  SUM(transmit) FILTER (WHERE all_known) AS transmit,
  SUM(tail + IFNULL(settled.joules, 0.0)) FILTER (WHERE all_known) AS tail,
  SUM(idle) FILTER (WHERE all_known) AS idle, SUM(waiting) FILTER (WHERE all_known) AS waiting,
  (SELECT COUNT(*) FROM by_client) AS energy_clients,
  (SELECT COUNT(*) FROM by_client WHERE all_known) AS energy_known,
  (SELECT COUNT(*) FROM by_client WHERE merged) AS merged_clients,
  (SELECT SUM(merged) FROM by_client) AS merged,
  (SELECT SUM(merged * merged) FROM by_client) AS merged_squares
FROM spent JOIN by_client USING (client) JOIN fleet USING (client) JOIN kinds USING (kind)
LEFT JOIN settled USING (client, exchange, ending)
GROUP BY exchange, model, ending, device
"""  # noqa: S608 - our own names


class Moved(NamedTuple):
    """Bytes that moved in each direction."""

    down: int
    up: int


@dataclass(frozen=True)
class Spent:
    """What jobs cost, as far as they got.

    Attributes:
        jobs: how many there are.
        bytes: their traffic, which is the sum of
        down_bytes, up_bytes: that of each direction.
        flops: their operations.
        client_s: client-seconds: the time spent receiving, working and sending, summed over jobs.
        joules: their energy, and that of the tails that they left open at the run's end, of those clients
            whose energy in the whole run is known in full, so that parts add up to
            the run's ``EnergyTotal``; None if the jobs are of no such client.
    """

    jobs: int
    bytes: int
    down_bytes: int
    up_bytes: int
    flops: int
    client_s: float
    joules: float | None


@dataclass(frozen=True)
class Usage:
    """What a run's jobs cost, and who took part.

    Attributes:
        spent: by ending: "merged" (useful), "late", "lost" and "cut" (wasted).
        wasted: the sum of what was not merged.
        total: the sum of all.
        energy: of all clients.
        joules_by_phase: the same energy by what it was used for; empty if no energy is known.
        by_device: what the jobs of its clients cost, by device and exchange.
        unknown: devices with a client whose energy is not known in full.
        waiting_joules: what these clients draw at idle power while uploads of theirs wait to be merged and
            they have nothing else to do; no part of the energy. None if no energy is known.
        bytes_by_part: traffic by part of the payload, of transfers that were completed.
        ended_s: the last job's end, in virtual seconds.
        jobs: how many each exchange had, by their ending.
        merged_clients: how many clients had a job merged in a round; exchanges before and after the rounds,
            in which all take part, do not count.
        fairness: Jain's index of the jobs x merged in rounds per admitted client, (sum x)^2 / (n sum x^2):
            1 if all have the same number, 1/n if one has them all; None if there are none. Jain, Chiu and
            Hawe, "A quantitative measure of fairness and discrimination for resource allocation in shared
            computer systems", DEC-TR-301 (1984).
    """

    spent: Mapping[str, Spent]
    wasted: Spent
    total: Spent
    energy: EnergyTotal
    joules_by_phase: Mapping[str, float]
    by_device: Mapping[str, Mapping[str, Spent]]
    unknown: frozenset[str]
    waiting_joules: float | None
    bytes_by_part: Mapping[str, Moved]
    ended_s: float
    jobs: Mapping[str, Mapping[str, int]]
    merged_clients: int
    fairness: float | None


def usage(reader: Reader, admitted: int) -> Usage:
    """Reads a run's jobs.

    Args:
        reader: the run.
        admitted: how many clients were admitted.
    """
    rows = reader.query(_SQL)
    endings = {str(kind): _spent([row for row in rows if row["ending"] == kind]) for kind in ENDINGS}
    total = _spent(rows)
    # Facts of the run, the same in each row.
    facts: Mapping[str, Any] = rows[0] if rows else defaultdict(int)
    known = facts["energy_known"]
    squares = facts["merged_squares"]
    return Usage(
        spent=endings,
        wasted=_spent([row for row in rows if row["ending"] != Kind.MERGED]),
        total=total,
        energy=EnergyTotal(total.joules if known else None, known, facts["energy_clients"]),
        joules_by_phase={phase: _sum(rows, phase) for phase in _PHASES} if known else {},
        by_device=_by_device(rows),
        unknown=frozenset(row["device"] for row in rows if not row["every_known"]),
        waiting_joules=_sum(rows, "waiting") if known else None,
        bytes_by_part=_by_part(reader, rows),
        ended_s=max((row["ended_s"] for row in rows), default=0.0),
        jobs=_jobs(rows),
        merged_clients=facts["merged_clients"],
        fairness=facts["merged"] ** 2 / (admitted * squares) if squares else None,
    )


def _spent(rows: Sequence[Mapping[str, Any]]) -> Spent:
    """The sum of groups of jobs."""
    known = not rows or any(row["receive"] is not None for row in rows)
    counts = {
        name: sum((row[f"{name}_high"] << HALF) + row[f"{name}_low"] for row in rows) for name in _COUNTS
    }
    return Spent(
        jobs=sum(row["jobs"] for row in rows),
        bytes=counts["down_bytes"] + counts["up_bytes"],
        **counts,
        client_s=_sum(rows, "client_s"),
        joules=math.fsum(_sum(rows, phase) for phase in _PHASES) if known else None,
    )


def _by_device(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Spent]]:
    grouped: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for row in rows:
        grouped.setdefault(row["device"], {}).setdefault(row["exchange"], []).append(row)
    return {
        device: {exchange: _spent(group) for exchange, group in groups.items()}
        for device, groups in grouped.items()
    }


def _jobs(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        counts[row["exchange"]][row["ending"]] += row["jobs"]
    return counts


def _sum(rows: Iterable[Mapping[str, Any]], key: str) -> float:
    """The sum of what is known."""
    return math.fsum(row[key] for row in rows if row[key] is not None)


def _by_part(reader: Reader, rows: Iterable[Mapping[str, Any]]) -> dict[str, Moved]:
    """Bytes by part and direction: what each job's payload holds, times the jobs that moved it."""
    moved: dict[tuple[str, str, str], int] = defaultdict(int)
    for row in rows:
        key = row["exchange"], row["model"]
        moved[*key, "down"] += row["received"]
        moved[*key, "up"] += row["arrived"]
    parts: dict[str, dict[str, int]] = {}
    for row in reader.rows("payloads", "part"):
        times = moved[row["exchange"], row["model"], row["direction"]]
        if times and row["bytes"]:
            part = parts.setdefault(row["part"], {"down": 0, "up": 0})
            part[row["direction"]] += row["bytes"] * times
    return {name: Moved(**part) for name, part in parts.items()}
