"""What a run had reached and spent at each of its evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edgefl.analysis.timeline import Floats, Ints, Jobs, jobs_of
from edgefl.core.steps import batch_sizes
from edgefl.store import Reader, read_traced

_SQL = """
SELECT model, version, round, t_s, down_bytes + up_bytes AS bytes, joules, energy_known, energy_clients,
  accuracy, loss
FROM evaluations ORDER BY version
"""
_STAGES = ("receive", "work", "transmit")
_STATIONS = ("received_s", "worked_s", "arrived_s")


@dataclass(frozen=True, eq=False)
class History:
    """One model's evaluations in one run: columns (n,) in the order of versions.

    What is spent counts from the start of the run, of all clients, whatever became of their jobs.

    Attributes:
        model: "global" or "personal".
        version: the server version that was evaluated.
        round: the round it was evaluated after, from 0; the number of rounds after the exchanges at the end.
        t_s: virtual seconds.
        bytes: traffic in both directions, with the part of each transfer in progress that had moved.
        joules: energy until then, also of jobs in flight, of the clients whose energy is known in full; 0
            where nobody had taken part, NaN where no energy is known.
        energy_known: how many clients the energy is of.
        energy_clients: how many had taken part.
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


def histories(reader: Reader, jobs: Jobs | None = None) -> dict[str, History]:
    """The history of each model that was evaluated: "global", "personal", both or none.

    In a run in progress or broken off, client-seconds are those of the jobs that have ended.

    Args:
        reader: the run.
        jobs: its jobs, if they are read already.

    Raises:
        UserError: the run is damaged.
    """
    rows = reader.query(_SQL)
    if not rows:
        return {}
    jobs = jobs_of(reader) if jobs is None else jobs
    epochs = _epochs(reader, jobs)
    by_model: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_model.setdefault(row["model"], []).append(row)
    return {model: _history(model, mine, jobs, epochs) for model, mine in by_model.items()}


def _epochs(reader: Reader, jobs: Jobs) -> Floats:
    """The share of all clients' samples that each job trained on, (n,); more than 1 where repeated."""
    sql = "SELECT kind, samples FROM fleet JOIN kinds USING (kind) ORDER BY client"
    kind, samples = reader.arrays(sql, kind=np.int64, samples=np.int64).values()
    size, steps = reader.meta["batch_size"], jobs.steps.copy()
    batch = {count: count / max(1, len(batch_sizes(count, size))) for count in np.unique(samples).tolist()}
    mean = np.array([batch[count] for count in samples.tolist()])
    for row in reader.rows("exchanges"):
        traced, mine = read_traced(reader, row["exchange"]), jobs.place == row["place"]
        trains = [phase.trains for phase in traced.traces[0].phases] if traced else []
        if traced and not all(trains) and mine.any():
            lengths = np.array([[one.total() for one in each] for each in traced.steps])
            lengths = lengths[kind[jobs.client[mine]]]
            # Phases follow each other, also those of a job that was cut short.
            done = np.clip(jobs.steps[mine, None] - lengths.cumsum(1) + lengths, 0, lengths)
            steps[mine] = done[:, trains].sum(1)
    epochs: Floats = steps * mean[jobs.client] / max(1, samples.sum())
    return epochs


def _history(model: str, rows: list[dict[str, Any]], jobs: Jobs, epochs: Floats) -> History:
    def column(name: str, dtype: type[np.generic] = np.int64) -> Any:
        return np.array([row[name] for row in rows], dtype=dtype)

    t_s, took_part = column("t_s", np.float64), column("energy_clients")
    return History(
        model=model,
        version=column("version"),
        round=column("round"),
        t_s=t_s,
        bytes=column("bytes"),
        joules=np.where(took_part == 0, 0.0, column("joules", np.float64)),
        energy_known=column("energy_known"),
        energy_clients=took_part,
        client_s=_client_s(jobs, t_s),
        epochs=_sums(jobs, "worked_s", np.where(np.isnan(jobs.worked_s), 0, epochs), t_s),
        accuracy=column("accuracy", np.float64),
        loss=column("loss", np.float64),
    )


def _client_s(jobs: Jobs, t_s: Floats) -> Floats:
    """The client-seconds of stages that were over at some times, (n,) ascending."""
    stages = zip(_STAGES, _STATIONS, strict=True)
    return sum(
        (_sums(jobs, at, getattr(jobs, f"{stage}_s"), t_s) for stage, at in stages), np.zeros(len(t_s))
    )


def _sums(jobs: Jobs, station: str, values: Floats, t_s: Floats) -> Floats:
    """The sum of the values of the jobs that had passed a station or ended, at some times (n,) ascending."""
    counted = np.bincount(_first_at(jobs, station, t_s), weights=values, minlength=len(t_s) + 1)
    return np.cumsum(counted[:-1])


def _first_at(jobs: Jobs, station: str, t_s: Floats) -> Ints:
    """The place of the first of some ascending times at which each job had passed a station or ended."""
    passed: Floats = getattr(jobs, station)
    return np.searchsorted(t_s, np.where(np.isnan(passed), jobs.ended_s, passed), side="left")
