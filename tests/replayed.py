"""What a replay and a run that was trained have in common: all rows but those of files and of wall time."""

from pathlib import Path
from typing import Any

import edgefl
from edgefl.runs.results import RunResult
from edgefl.store.reader import read
from edgefl.store.schema import COLUMNS

# Rows that name files.
FILES = {"versions", "states", "outcomes", "checkpoints"}
# Facts about who ran it, where and when.
_OWN = {
    "name", "engine", "trainer", "status", "replayed", "data_dir", "engine_asked",
    "engine_used",
    "checkpoint_minutes", "versions", "code", "resumed",
}  # fmt: skip


def rows(folder: Path) -> dict[str, Any]:
    """A run's rows by table, without wall times, with the facts that a result depends on and its plan."""
    with read(folder) as reader:
        tables = {
            table: [
                {key: value for key, value in row.items() if not key.startswith("host_")}
                for row in reader.rows(table)
            ]
            for table in COLUMNS
            if table not in FILES and table != "meta"
        }
        facts = {key: value for key, value in reader.meta.items() if key not in _OWN and "host_" not in key}
        return {**tables, "meta": facts, "plan": reader.document.data}


def assert_same(replay: Path, fresh: Path) -> None:
    """Every table of a replay is that of a run that was trained."""
    ours, theirs = rows(replay), rows(fresh)
    assert ours.keys() == theirs.keys()
    for table in ours:
        assert ours[table] == theirs[table], table


def merges(folder: Path) -> list[tuple[Any, ...]]:
    """What each merge of a run took: its exchange and round, and each job's client, version and steps."""
    with read(folder) as reader:
        return [
            (
                merge["exchange"],
                merge["round"],
                *(
                    (job["client"], job["version"], job["round"], job["steps"])
                    for job in reader.query(
                        "SELECT * FROM jobs WHERE into_version = ? ORDER BY client, job", merge["version"]
                    )
                ),
            )
            for merge in reader.rows("merges", "version")
        ]


SMALL: dict[str, Any] = {
    "name": "small",
    "seed": 7,
    "task": {
        "dataset": "digits",
        "partition": {"name": "dirichlet", "alpha": 0.3, "min_samples": 20},
        "clients": 8,
    },
    "model": {"name": "mlp", "hidden": [16]},
    "method": "fedavg",
    "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.1}},
    "fleet": "home-lab",
    "server": {"participants": 4, "until": {"rounds": 4}},
    "evaluate": {"every": 2, "target": 0.3},
}
"""Fast to train: 8 clients of four kinds for 4 rounds."""


def small(out: Path, **overrides: Any) -> RunResult:
    """``SMALL`` trained with overrides, whose dots are written as two underscores."""
    given = {key.replace("__", "."): value for key, value in overrides.items()}
    (run,) = edgefl.run(SMALL, overrides=given, out=out, progress=False).runs
    assert run.status == "done", run.reason
    return run
