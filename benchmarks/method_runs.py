"""The runs of ``methods.py``: what is compared, how a run is done, and the file of those that are done."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import torch

import edgefl
from edgefl.core.host import processor

_TUNING_SEED = 11
_DIVERGED = "training diverged"

Run: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Scale:
    """What the runs of a table have in common.

    Attributes:
        common: the scenario without method, partition, rate and seed.
        partitions: by name.
        rates: the grid, ascending: one for all methods.
        seeds: of the runs that count.
        tuning_rounds: of the runs that choose a rate.
    """

    common: Mapping[str, Any]
    partitions: Mapping[str, Any]
    rates: tuple[float, ...]
    seeds: tuple[int, ...]
    tuning_rounds: int


CIFAR10 = Scale(
    common={
        "task": {
            "dataset": {"name": "cifar10_part", "train": 5000, "test": 2000},
            "clients": 20,
            "personal_test": 1.0,
        },
        "model": {"name": "cnn2", "hidden": 128},
        "local": {"epochs": 1, "batch_size": 25, "optimizer": {"name": "sgd", "schedule": "cosine"}},
        "fleet": "city-phones",
        "server": {"participants": 10, "rounds": 60},
        "evaluate": {"every": 2},
    },
    partitions={
        "shards, s = 2": {"name": "shards", "shards_per_client": 2},
        "Dirichlet, alpha = 0.1": {"name": "dirichlet", "alpha": 0.1},
    },
    rates=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
    seeds=(1, 2, 3),
    tuning_rounds=30,
)

# The model that is scored -> name in the table -> method; all are compared with the first. FedBABU's global
# model is not fine-tuned, a FedRep client trains its head for as long as its body, and FedProto's strength is
# near 1 / l, as in its authors' code.
METHODS: dict[str, dict[str, Any]] = {
    "global": {
        "FedAvg": {"name": "fedavg"},
        "FedProx": {"name": "fedprox", "mu": 0.01},
        "SCAFFOLD": {"name": "scaffold"},
        "FedNova": {"name": "fednova"},
        "FedAdam": {"name": "fedopt", "optimizer": "adam"},
        "MOON": {"name": "moon"},
        "FedNTD": {"name": "fedntd"},
        "FedCKA": {"name": "fedcka"},
        "FLex&Chill, T = 4": {"name": "flexchill", "temperature": 4.0},
        "FLex&Chill, T = 0.25": {"name": "flexchill", "temperature": 0.25},
        "FLex&Chill, T = 0.05": {"name": "flexchill", "temperature": 0.05},
        "SphereFed + FFC": {"name": "spherefed"},
        "FedBABU": {"name": "fedbabu", "fine_tune": 0},
        "CCVR": {"name": "ccvr"},
    },
    "personal": {
        "local": {"name": "local"},
        "FedClassAvg": {"name": "fedclassavg"},
        "FedProto": {"name": "fedproto", "strength": 0.01},
        "FedRep": {"name": "fedrep", "head_epochs": 1},
        "LG-FedAvg": {"name": "lg_fedavg"},
        "Ditto": {"name": "ditto"},
    },
}
SCORED = {name: model for model, methods in METHODS.items() for name in methods}


class Task(NamedTuple):
    """One run; one that chooses a rate is on held-out data and has fewer rounds."""

    method: str
    partition: str
    rate: float
    seed: int
    tuning: bool

    def scenario(self, scale: Scale) -> dict[str, Any]:
        """The run's scenario."""
        model = SCORED[self.method]
        found: dict[str, Any] = json.loads(json.dumps(scale.common))
        found |= {"name": self.method, "seed": self.seed, "method": METHODS[model][self.method]}
        found["task"]["partition"] = scale.partitions[self.partition]
        found["local"]["optimizer"]["lr"] = self.rate
        found["evaluate"]["models"] = [model]
        if self.tuning:
            found["server"]["rounds"] = scale.tuning_rounds
            found["evaluate"] |= {"on": "holdout", "every": scale.tuning_rounds}
        return found

    def key(self, scale: Scale) -> str:
        """A hash of the scenario."""
        text = json.dumps(self.scenario(scale), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def trained(scenario: Mapping[str, Any], data_dir: Path | None) -> Run:
    """Runs a scenario.

    Returns:
        ``curve``: [round, accuracy, virtual s, bytes, J, FLOPs] of each evaluation; empty where training
        diverged. ``before``: the accuracy before the exchanges at the end, null where there are none.
        ``cpu_s``: the processor's time.

    Raises:
        RuntimeError: the run failed, and not because training diverged.
    """
    start = time.process_time()
    (model,) = scenario["evaluate"]["models"]
    with tempfile.TemporaryDirectory() as folder:
        result = edgefl.run(
            scenario, engine="loop", data_dir=data_dir, out=Path(folder) / "run", progress=False
        )
        (run,) = result.runs
        if run.status != "done" and not run.reason.startswith(_DIVERGED):
            raise RuntimeError(f"{scenario['name']}: {run.reason}")
        done = run.status == "done"
        return {
            "curve": list(_curve(run)) if done else [],
            "before": run.summary().accuracy[model].before if done else None,
            "cpu_s": round(time.process_time() - start, 1),
        }


def _curve(run: edgefl.RunResult) -> Iterator[list[float | None]]:
    jobs = [(job["worked_s"] or job["ended_s"], job["flops"]) for job in run.table("jobs")]
    for row in run.table("evaluations"):
        known = row["energy_known"] == row["energy_clients"]
        yield [
            row["round"] + 1,
            round(row["accuracy"], 4),
            round(row["t_s"], 3),
            row["down_bytes"] + row["up_bytes"],
            round(row["joules"], 3) if known else None,
            sum(flops for end, flops in jobs if end <= row["t_s"]),
        ]


class Results:
    """The runs of a scale that have been done, in a file."""

    def __init__(self, scale: Scale, file: Path) -> None:
        self.scale = scale
        self._file = file
        self._runs: dict[str, Run] = (
            json.loads(file.read_text(encoding="utf-8"))["runs"] if file.exists() else {}
        )

    def __contains__(self, task: Task) -> bool:
        return task.key(self.scale) in self._runs

    def of(self, task: Task) -> Run | None:
        """What is known of a task."""
        return self._runs.get(task.key(self.scale))

    def add(self, task: Task, run: Run) -> None:
        """Writes the file with one run more."""
        self._runs[task.key(self.scale)] = {**task._asdict(), **run}
        self._write()

    def forget(self, methods: Iterable[str]) -> None:
        """Leaves out the runs of some methods."""
        gone = set(methods)
        self._runs = {key: run for key, run in self._runs.items() if run["method"] not in gone}

    def _write(self) -> None:
        """A line for each run."""
        made = {
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "processor": processor(),
            "torch": torch.__version__,
        }
        lines = (f"{json.dumps(key)}: {json.dumps(run)}" for key, run in sorted(self._runs.items()))
        text = f'{{"made": {json.dumps(made)},\n"runs": {{\n' + ",\n".join(lines) + "\n}}\n"
        new = self._file.with_suffix(".tmp")
        new.write_text(text, encoding="utf-8")
        new.replace(self._file)

    def tuning(self, method: str, partition: str) -> list[Task]:
        """The runs that choose a method's rate, up to the first rate at which training diverged."""
        tasks = [Task(method, partition, rate, _TUNING_SEED, True) for rate in self.scale.rates]
        diverged = (place for place, task in enumerate(tasks) if (run := self.of(task)) and not run["curve"])
        return tasks[: next(diverged, len(tasks)) + 1]

    def rate(self, method: str, partition: str) -> float | None:
        """The best rate, the lower of equal ones; None before all have been tried."""
        runs = [self.of(task) for task in self.tuning(method, partition)]
        found = [(last(run), -run["rate"]) for run in runs if run is not None]
        return -max(found)[1] if len(found) == len(runs) else None

    def counted(self, method: str, partition: str) -> list[Task]:
        """The runs that count; none before a rate has been chosen."""
        rate = self.rate(method, partition)
        seeds = () if rate is None else self.scale.seeds
        return [Task(method, partition, rate or 0.0, seed, False) for seed in seeds]

    def progress(self, methods: Sequence[str]) -> tuple[int, int]:
        """How many runs of some methods have been done, and how many there are at most."""
        each = len(self.scale.rates) + len(self.scale.seeds)
        done = sum(run["method"] in methods for run in self._runs.values())
        return done, len(methods) * len(self.scale.partitions) * each

    def missing(self, methods: Iterable[str]) -> Iterator[Task]:
        """What can be done next; runs that count come first."""
        cells = [(method, partition) for method in methods for partition in self.scale.partitions]
        for tasks in (self.counted, self.tuning):
            yield from (task for cell in cells for task in tasks(*cell) if task not in self)


def last(run: Run) -> float:
    """The accuracy at the end; 0 where training diverged."""
    return run["curve"][-1][1] if run["curve"] else 0.0
