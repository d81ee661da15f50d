"""The runs of ``methods.py``: what is compared, how a run is done, and the file of those that are done."""

import datetime as dt
import hashlib
import json
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import torch

import edgefl
from edgefl.core.host import processor

SHARDS, DIRICHLET = "shards, s = 2", "Dirichlet, alpha = 0.1"
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
        SHARDS: {"name": "shards", "shards_per_client": 2},
        DIRICHLET: {"name": "dirichlet", "alpha": 0.1},
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


@dataclass(frozen=True)
class Variant:
    """A method's runs with something changed, to see what its result is due to.

    Attributes:
        of: the method.
        against: the method, or variant, whose accuracy it is compared with.
        rate: in place of the method's.
        changes: of the parameters in these parts of the scenario.
    """

    of: str
    against: str
    rate: float | None = None
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


_ALL: dict[str, Mapping[str, Any]] = {"server": {"participants": 20}}
# As FedNTD's runs: a tenth of the clients, five epochs.
_FEW: dict[str, Mapping[str, Any]] = {"server": {"participants": 2}, "local": {"epochs": 5}}
VARIANTS: dict[str, Variant] = {
    "FedAvg at SCAFFOLD's rate": Variant("FedAvg", "SCAFFOLD", 0.03),
    "FedAvg, all clients": Variant("FedAvg", "FedAvg", None, _ALL),
    "SCAFFOLD, all clients": Variant("SCAFFOLD", "FedAvg, all clients", None, _ALL),
    "FedAvg, 2 clients, 5 epochs": Variant("FedAvg", "FedAvg", 0.03, _FEW),
    "FedNTD, 2 clients, 5 epochs": Variant("FedNTD", "FedAvg, 2 clients, 5 epochs", 0.03, _FEW),
    "FedAvg at 4 times the rate of T = 0.25": Variant("FedAvg", "FLex&Chill, T = 0.25", 0.12),
}
SCORED = {name: model for model, methods in METHODS.items() for name in methods}
SCORED |= {name: SCORED[variant.of] for name, variant in VARIANTS.items()}


class Task(NamedTuple):
    """One run; one that chooses a rate is on held-out data and has fewer rounds."""

    method: str
    partition: str
    rate: float
    seed: int
    tuning: bool

    def scenario(self, scale: Scale) -> dict[str, Any]:
        """The run's scenario."""
        model, variant = SCORED[self.method], VARIANTS.get(self.method)
        of, changes = (variant.of, variant.changes) if variant else (self.method, {})
        found: dict[str, Any] = json.loads(json.dumps(scale.common))
        found |= {"name": self.method, "seed": self.seed, "method": METHODS[model][of]}
        found["task"]["partition"] = scale.partitions[self.partition]
        found["local"]["optimizer"]["lr"] = self.rate
        found["evaluate"]["models"] = [model]
        for part, values in changes.items():
            found[part] = {**found[part], **values}
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
        """The runs that choose a method's rate, up to the first rate at which training diverged.

        A variant has none of its own.
        """
        if method in VARIANTS:
            return []
        tasks = [Task(method, partition, rate, _TUNING_SEED, True) for rate in self.scale.rates]
        diverged = (place for place, task in enumerate(tasks) if (run := self.of(task)) and not run["curve"])
        return tasks[: next(diverged, len(tasks)) + 1]

    def rate(self, method: str, partition: str) -> float | None:
        """The best rate, the lower of equal ones; None before all have been tried. Or a variant's."""
        variant = VARIANTS.get(method)
        if variant:
            return variant.rate or self.rate(variant.of, partition)
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
        tuned = [method for method in methods if method not in VARIANTS]
        each = len(methods) * len(self.scale.seeds) + len(tuned) * len(self.scale.rates)
        done = sum(run["method"] in methods for run in self._runs.values())
        return done, len(self.scale.partitions) * each

    def missing(self, methods: Iterable[str]) -> Iterator[Task]:
        """What can be done next; runs that count come first."""
        cells = [(method, partition) for method in methods for partition in self.scale.partitions]
        for tasks in (self.counted, self.tuning):
            yield from (task for cell in cells for task in tasks(*cell) if task not in self)


def last(run: Run) -> float:
    """The accuracy at the end; 0 where training diverged."""
    return run["curve"][-1][1] if run["curve"] else 0.0
