"""Runs with something in every row of a comparison, runs whose figures a test gives, and tables' cells."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from small import SKEWED

import edgefl
from edgefl.analysis.history import Reached, Target, Waste
from edgefl.analysis.summary import Accuracy, Summary
from edgefl.core.event import EnergyTotal
from edgefl.runs.dry import dry_run
from edgefl.runs.results import Result
from edgefl.show.compare import comparison
from edgefl.show.table import Line, Table, parts

every = partial(comparison, every=True)
NO_WASTE = Waste(0, 0.0, 0.0)


def tables_of(view: RenderableType) -> list[Table]:
    """A view's tables."""
    return [one for one in parts(view) if isinstance(one, Table)]


def lines_of(view: RenderableType) -> list[str]:
    """What stands between a view's tables."""
    return [one.text for one in parts(view) if isinstance(one, Line) and one.text]


def cells(view: RenderableType, table: int = 0) -> dict[str, list[str]]:
    """The texts of one of a view's tables, by the first of each row."""
    rows = ([str(one).strip() for one in row] for row in tables_of(view)[table].rows)
    return {label: texts for label, *texts in rows}


# Late jobs, batteries, emissions, measures, both models, and a target that is reached at once.
RICH: dict[str, Any] = {
    "name": "rich",
    "task": SKEWED,
    "model": {"name": "mlp", "hidden": [8]},
    "method": "fedavg",
    "local": {"epochs": 1, "batch_size": 16, "optimizer": {"name": "sgd", "lr": 0.3}},
    "fleet": {
        "members": [
            {"device": "pixel-6", "link": "4g"},
            {"device": "raspberry-pi-4b", "link": "ethernet"},
            {"device": "raspberry-pi-zero-2w", "link": "wifi-pi4"},
        ],
        "carbon": {"regions": "DE", "server": {"power": "20 W"}, "embodied": "busy"},
    },
    "server": {"participants": 3, "rounds": 3, "policy": {"name": "overselect", "factor": 2}},
    "evaluate": {
        "target": 0.05,
        "models": ["global", "personal"],
        "measures": ["class-accuracy", "weight-divergence"],
    },
}


def rich(out: Path, **changes: Any) -> Result:
    """Runs them, with some settings changed."""
    return edgefl.run({**RICH, **changes}, engine="loop", out=out)


@cache
def dry(*overrides: str) -> Summary:
    """The summary of a dry run of quickstart."""
    (found,) = dry_run("quickstart", ["sweep=null", *overrides])
    return found.summary


def score(accuracy: float) -> Accuracy:
    """A model's last evaluation."""
    return Accuracy(accuracy, None, 0, None, None, None)


def run_of(accuracy: float | Mapping[str, Accuracy] | None = None, **more: Any) -> Summary:
    """A run that is done, with the global model's accuracy; 10 s, 1 kB and 10 J of 20 clients, no bounds."""
    scores = {"global": score(accuracy)} if isinstance(accuracy, float) else accuracy or {}
    own = {
        "accuracy": scores, "virtual_s": 10.0, "bytes": 1000, "energy": EnergyTotal(10.0, 20, 20),
        "virtual_s_between": None, "joules_between": None, "status": "done", "fleet_id": "a",
        "target": None,
    }  # fmt: skip
    return replace(dry("server.rounds=1"), **{**own, **more})


def seeds(name: str, accuracies: Sequence[float | None], first: int = 1, **more: Any) -> list[Summary]:
    """Runs of a method on the seeds from the first one on, that differ in nothing else."""
    settings = {"method": name, "task.dataset": "digits", **more.pop("settings", {})}
    return [
        run_of(
            value,
            name=f"{name}, seed {seed}",
            seed=seed,
            settings={**settings, "seed": seed},
            run_dir=f"{name}/{seed}",
            **more,
        )
        for seed, value in enumerate(accuracies, start=first)
    ]


def took(t_s: float, **more: Any) -> Reached:
    """What it took to reach a target: some seconds, and as many bytes and joules."""
    own = {"rounds": 3, "wasted": NO_WASTE, "last_below": None, "accuracy": 0.9, "flops": 5, "round": 2}
    return Reached(**{"t_s": t_s, "bytes": int(t_s), "energy": EnergyTotal(t_s, 20, 20), **own, **more})


def to_target(run: Summary, found: Reached | None, target: float = 0.9, **more: Any) -> Summary:
    """The run with what it took its global model to reach a target."""
    return replace(run, target=Target(target, found, more.pop("personal", None)), **more)
