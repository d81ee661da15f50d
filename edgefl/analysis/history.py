"""What a run had reached and spent at each of its evaluations, and when it reached its target."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgefl.analysis.run import Run
from edgefl.analysis.sums import MERGED, sums
from edgefl.core.arrays import Floats, Ints
from edgefl.core.corners import Interval
from edgefl.core.documents import INLINE, OPTIONAL
from edgefl.core.event import EnergyTotal
from edgefl.core.steps import batch_sizes
from edgefl.store.plans import read_traced

_SQL = """
SELECT model = 'personal', version, round, down_bytes + up_bytes, energy_known, energy_clients,
  t_s, joules, accuracy, loss
FROM evaluations ORDER BY version
"""
_COLUMNS: Mapping[str, type[np.generic]] = {
    **dict.fromkeys(("personal", "version", "round", "bytes", "energy_known", "energy_clients"), np.int64),
    **dict.fromkeys(("t_s", "joules", "accuracy", "loss"), np.float64),
}


@dataclass(frozen=True, eq=False)
class History:
    """One model's evaluations in one run: columns (n,) in the order of versions.

    What is spent counts from the start of the run, of all clients, whatever became of their jobs.

    Attributes:
        round: the round it was evaluated after, from 0; the number of rounds after the exchanges at the end.
        bytes: traffic in both directions, with the part of each transfer in progress that had moved.
        joules: energy until then, also of jobs in flight, of the clients whose energy is known in full; 0
            where nobody had taken part, NaN where no energy is known.
        energy_known, energy_clients: how many clients the energy is of, and how many had taken part.
        client_s: client-seconds of receiving, working and sending; a stage counts, as a whole, once it is
            over or broken off. At the run's end it is ``Summary.client_s``.
        epochs: passes over all clients' data in training, of the work that was over: the samples of its
            batches over those that all clients have. Phases that train nothing on them, or report nothing,
            such as distillation, do not count.
        accuracy, loss: on test data; see ``Summary.evaluated_on``. Of personal models, means over clients.
    """

    model: str
    version: Ints
    round: Ints
    t_s: Floats
    bytes: Ints
    joules: Floats
    energy_known: Ints
    energy_clients: Ints
    client_s: Floats
    epochs: Floats
    accuracy: Floats
    loss: Floats

    def __len__(self) -> int:
        return len(self.version)


def histories(run: Run) -> dict[str, History]:
    """The history of each model that was evaluated: "global", "personal", both or none.

    In a run in progress or broken off, client-seconds are those of the jobs that have ended.
    """
    rows = run.reader.arrays(_SQL, **_COLUMNS)
    personal, epochs = rows.pop("personal"), _epochs(run) if len(rows["version"]) else np.zeros(0)
    found = {}
    for place in dict.fromkeys(personal.tolist()):
        mine = {name: column[personal == place] for name, column in rows.items()}
        model = "personal" if place else "global"
        found[model] = _history(model, mine, run, epochs)
    return found


def _epochs(run: Run) -> Floats:
    """The share of all clients' samples that each job trained on, (n,); more than 1 where repeated."""
    kind, jobs = run.clients.kind, run.jobs
    samples = np.array([row["samples"] for row in run.kinds])[kind]
    size, steps = run.reader.meta["batch_size"], jobs.steps.copy()
    batch = {count: count / max(1, len(batch_sizes(count, size))) for count in np.unique(samples).tolist()}
    mean = np.array([batch[count] for count in samples.tolist()])
    for place, name in enumerate(run.names):
        traced, mine = read_traced(run.reader, name), jobs.exchange == place
        trains = [phase.trains for phase in traced.traces[0].phases] if traced else []
        if traced and not all(trains) and mine.any():
            lengths = np.array([[one.total() for one in each] for each in traced.steps])
            lengths = lengths[kind[jobs.client[mine]]]
            # Phases follow each other, also those of a job that was cut short.
            done = np.clip(jobs.steps[mine, None] - lengths.cumsum(1) + lengths, 0, lengths)
            steps[mine] = done[:, trains].sum(1)
    epochs: Floats = steps * mean[jobs.client] / max(1, samples.sum())
    return epochs


def _history(model: str, rows: Mapping[str, Any], run: Run, epochs: Floats) -> History:
    t_s, jobs = rows["t_s"], run.jobs

    def until(station: str, values: Floats) -> Floats:
        """The sum of the values of the jobs that had passed a station or ended, at each time."""
        place = np.searchsorted(t_s, run.over_s(station), side="left")
        return np.cumsum(np.bincount(place, weights=values, minlength=len(t_s) + 1)[:-1])

    stages = (("received_s", jobs.receive_s), ("worked_s", jobs.work_s), ("arrived_s", jobs.transmit_s))
    return History(
        model,
        **{**rows, "joules": np.where(rows["energy_clients"] == 0, 0.0, rows["joules"])},
        client_s=sum((until(*stage) for stage in stages), np.zeros(len(t_s))),
        epochs=until("worked_s", np.where(np.isnan(jobs.worked_s), 0, epochs)),
    )


@dataclass(frozen=True)
class Waste:
    """What the jobs cost that had ended by an evaluation without being merged: late, lost or cut.

    A job that is in flight, or waits to be merged, is not wasted yet. One that ended at the evaluation's very
    time counts if it ended before the server evaluated. The tail that a job's last transfer leaves open is
    that of the job which closes it, as in ``events``.

    Bytes, joules and client-seconds are those of ``sums.Spent``.
    """

    bytes: int
    joules: float | None
    client_s: float


@dataclass(frozen=True)
class Evaluated:
    """What all clients had spent, and wasted of it, when a model was evaluated.

    That was after ``round``, from 0, when ``rounds`` were over.
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

    It took at least what was spent by the last one below; there may be none.
    """

    last_below: Evaluated | None


@dataclass(frozen=True)
class Target:
    """A target accuracy and what it took each model to reach it; None where it was not reached."""

    accuracy: float
    global_: Reached | None
    personal: Reached | None

    def of(self, model: str) -> Reached | None:
        return self.personal if model == "personal" else self.global_


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
    over = run.over_s("worked_s") <= t_s
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
