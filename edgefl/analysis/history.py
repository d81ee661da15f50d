"""What a run had reached and spent at each of its evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edgefl.analysis.run import Floats, Ints, Run
from edgefl.core.steps import batch_sizes
from edgefl.store import read_traced

_SQL = """
SELECT model, version, round, t_s, down_bytes + up_bytes AS bytes, joules, energy_known, energy_clients,
  accuracy, loss
FROM evaluations ORDER BY version
"""


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


def histories(run: Run) -> dict[str, History]:
    """The history of each model that was evaluated: "global", "personal", both or none.

    In a run in progress or broken off, client-seconds are those of the jobs that have ended.

    Raises:
        UserError: the run is damaged.
    """
    by_model: dict[str, list[dict[str, Any]]] = {}
    for row in run.reader.query(_SQL):
        by_model.setdefault(row["model"], []).append(row)
    epochs = _epochs(run) if by_model else np.zeros(0)
    return {model: _history(model, mine, run, epochs) for model, mine in by_model.items()}


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


def _history(model: str, rows: list[dict[str, Any]], run: Run, epochs: Floats) -> History:
    def column(name: str, dtype: type[np.generic] = np.int64) -> Any:
        return np.array([row[name] for row in rows], dtype=dtype)

    t_s, took_part, jobs = column("t_s", np.float64), column("energy_clients"), run.jobs

    def until(station: str, values: Floats) -> Floats:
        """The sum of the values of the jobs that had passed a station or ended, at each time."""
        passed = np.where(np.isnan(jobs[station]), jobs.ended_s, jobs[station])
        place = np.searchsorted(t_s, passed, side="left")
        return np.cumsum(np.bincount(place, weights=values, minlength=len(t_s) + 1)[:-1])

    stages = (("received_s", jobs.receive_s), ("worked_s", jobs.work_s), ("arrived_s", jobs.transmit_s))
    return History(
        model=model,
        version=column("version"),
        round=column("round"),
        t_s=t_s,
        bytes=column("bytes"),
        joules=np.where(took_part == 0, 0.0, column("joules", np.float64)),
        energy_known=column("energy_known"),
        energy_clients=took_part,
        client_s=sum((until(*stage) for stage in stages), np.zeros(len(t_s))),
        epochs=until("worked_s", np.where(np.isnan(jobs.worked_s), 0, epochs)),
        accuracy=column("accuracy", np.float64),
        loss=column("loss", np.float64),
    )
