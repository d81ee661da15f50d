"""What a run had spent when its models reached a target accuracy, and what of it was wasted by then."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgefl.analysis.run import Run
from edgefl.analysis.sums import MERGED, sums
from edgefl.core.corners import Interval
from edgefl.core.documents import INLINE, OPTIONAL
from edgefl.core.ledger import EnergyTotal


@dataclass(frozen=True)
class Waste:
    """What the jobs cost that had ended by an evaluation without being merged: late, lost or cut.

    A job that is in flight, or waits to be merged, is not wasted yet. One that ended at the evaluation's very
    time counts if it ended before the server evaluated. The tail that a job's last transfer leaves open is
    that of the job which closes it, as in ``events``.

    Attributes:
        bytes: their traffic, both directions.
        joules: the energy of those jobs whose client's energy in the whole run is known in full, as in
            ``sums.Spent``; None if the jobs are of no such client.
        client_s: the time that they spent receiving, working and sending.
    """

    bytes: int
    joules: float | None
    client_s: float


@dataclass(frozen=True)
class Evaluated:
    """What was spent until a model was evaluated.

    Attributes:
        t_s: virtual seconds.
        round: the round it was evaluated after, from 0.
        rounds: how many rounds were over.
        bytes: traffic of all clients, both directions.
        flops: operations of all clients.
        energy: of all clients.
        accuracy: the model's.
        wasted: what of it had been wasted by then.
        t_s_between, joules_between: bounds, as in ``Summary``.
    """

    t_s: float
    round: int
    bytes: int
    flops: int
    energy: EnergyTotal = field(metadata={INLINE: EnergyTotal})
    accuracy: float
    wasted: Waste
    rounds: int = field(default=0, kw_only=True)
    t_s_between: Interval | None = field(default=None, kw_only=True, metadata=OPTIONAL)
    joules_between: Interval | None = field(default=None, kw_only=True, metadata=OPTIONAL)


@dataclass(frozen=True)
class Reached(Evaluated):
    """The first evaluation of a model at or above a target accuracy: what it took at most to reach it.

    Attributes:
        last_below: the evaluation before, and so what it took at least; None where there is none.
    """

    last_below: Evaluated | None


@dataclass(frozen=True)
class Target:
    """A target accuracy and what it took each model to reach it; None where it was not reached."""

    accuracy: float
    global_: Reached | None
    personal: Reached | None


# The first evaluation at or above a target and the one before it.
_EVALUATIONS = """
WITH first AS (SELECT model, MIN(version) AS version FROM evaluations WHERE accuracy >= ? GROUP BY model)
SELECT one.*, down_bytes + up_bytes AS bytes, IFNULL(turn, 0) AS turn
FROM evaluations AS one JOIN first ON one.model = first.model AND one.version IN (first.version,
  (SELECT MAX(version) FROM evaluations WHERE model = one.model AND version < first.version))
LEFT JOIN (SELECT version, MAX(turn) AS turn FROM server_events WHERE kind = 'evaluated' GROUP BY version)
  USING (version)
ORDER BY one.version
"""


def until_target(run: Run, target: float) -> Target:
    """What it took each model to reach a target accuracy."""
    before: dict[str, Evaluated] = {}
    reached: dict[str, Reached] = {}
    for row in run.reader.query(_EVALUATIONS, target):
        spent = _spent(run, row)
        if row["accuracy"] >= target:
            reached[row["model"]] = Reached(**spent, last_below=before.get(row["model"]))
        else:
            before[row["model"]] = Evaluated(**spent)
    return Target(target, reached.get("global"), reached.get("personal"))


def _spent(run: Run, row: Mapping[str, Any]) -> dict[str, Any]:
    """What had been spent until one evaluation, as the fields of ``Evaluated``."""
    jobs, t_s = run.jobs, row["t_s"]
    # What a job's work was charged counts from when its work ended, as its bytes count from when they moved.
    over = np.where(np.isnan(jobs.worked_s), jobs.ended_s, jobs.worked_s) <= t_s
    ended = (jobs.ended_s < t_s) | ((jobs.ended_s == t_s) & (jobs.ended_turn <= row["turn"]))
    (done,) = sums(run, np.where(over, 0, -1))
    (wasted,) = sums(run, np.where(ended & (jobs.ending != MERGED), 0, -1), tails=False)
    return {
        **{key: row[key] for key in ("t_s", "round", "bytes", "accuracy")},
        # An evaluation after the exchanges at the end has the number of rounds as its own.
        "rounds": min(row["round"] + 1, run.reader.meta.get("rounds") or math.inf),
        "flops": done.flops,
        "energy": EnergyTotal(row["joules"], row["energy_known"], row["energy_clients"]),
        "wasted": Waste(wasted.bytes, wasted.joules, wasted.client_s),
        "t_s_between": run.between_s(t_s, row["version"]),
        "joules_between": run.between_j(t_s, row["version"]),
    }
