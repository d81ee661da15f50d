"""Checkpoints: from where a run can go on, and what of its rows belongs to each.

The newest two are kept, so that there is one to fall back on, and the newest regular one, from which a run
whose limits are raised goes on. Versions, states and outcomes that none of them needs are forgotten.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from edgefl.store.folders import FILES
from edgefl.store.reader import Reader


def state_file(job: int) -> str:
    """The name of the file with the state that a job wrote, in the folder ``states``."""
    return f"{job:08d}.safetensors"


class CheckpointPlace(NamedTuple):
    """Where in a run a checkpoint is.

    Attributes:
        needs: how many merges and evaluations there have been.
        evaluated: whether the last of them was the evaluation of that version.
        regular: whether a run with a larger ``server.until`` passes here, too.
        round: from 0; -1 before the first, the number of rounds after the last.
        t_s: virtual seconds since the start.
    """

    needs: int
    version: int
    evaluated: bool
    regular: bool
    round: int
    t_s: float


class SavedFile(NamedTuple):
    """A file in a run's directory, and its SHA-256."""

    file: str
    sha256: str


@dataclass(frozen=True)
class Saved:
    """What a run needs to go on from a checkpoint.

    Attributes:
        servers: server states, by version; those that are on disk already are not written again.
        states: by client, those that changed since the last checkpoint: the jobs that wrote them, and files.
        outcomes: what was trained and not merged yet, each under a number of its own: a tree, and plain data.
        content: what else there is to know, as plain data.
    """

    servers: Mapping[int, Any]
    states: Mapping[int, tuple[int, SavedFile]]
    outcomes: Mapping[int, tuple[Any, Mapping[str, Any]]]
    content: Mapping[str, Any]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint, numbered from 1: as ``Saved``, with files in place of trees, and the run's event hash."""

    number: int
    place: CheckpointPlace
    events: str
    versions: Mapping[int, SavedFile]
    states: Mapping[int, tuple[int, SavedFile]]
    outcomes: Mapping[int, tuple[SavedFile, Mapping[str, Any]]]
    content: Mapping[str, Any]

    @property
    def files(self) -> Iterator[SavedFile]:
        """All that it needs."""
        yield from self.versions.values()
        yield from (file for _, file in self.states.values())
        yield from (file for file, _ in self.outcomes.values())


def checkpoints_of(reader: Reader) -> list[Checkpoint]:
    """The checkpoints of a run, the newest first."""
    versions = {row["version"]: _file(row) for row in reader.rows("versions")}
    outcomes = {row["outcome"]: (_file(row), json.loads(row["content"])) for row in reader.rows("outcomes")}
    states = reader.rows("states", "job")
    return [
        Checkpoint(
            number=row["checkpoint"],
            place=CheckpointPlace(*(row[name] for name in CheckpointPlace._fields)),
            events=row["events"],
            versions={version: versions[version] for version in json.loads(row["versions"])},
            # Of each client the last.
            states={
                one["client"]: (one["job"], _file(one))
                for one in states
                if one["checkpoint"] <= row["checkpoint"]
            },
            outcomes={outcome: outcomes[outcome] for outcome in json.loads(row["outcomes"])},
            content=json.loads(row["content"]),
        )
        for row in reader.rows("checkpoints", "checkpoint DESC")
    ]


def _file(row: Mapping[str, Any]) -> SavedFile:
    return SavedFile(row["file"], row["sha256"])


def keep_newest(database: sqlite3.Connection, count: int = 2) -> None:
    """Keeps so many checkpoints, the newest regular one, and the versions, outcomes and states they need."""
    database.execute(
        "DELETE FROM checkpoints WHERE checkpoint NOT IN "
        "(SELECT checkpoint FROM checkpoints ORDER BY checkpoint DESC LIMIT ?) "
        "AND checkpoint IS NOT (SELECT MAX(checkpoint) FROM checkpoints WHERE regular)",
        (count,),
    )
    for table, key in (("versions", "version"), ("outcomes", "outcome")):
        needed = f"SELECT value FROM checkpoints, json_each(checkpoints.{table})"  # noqa: S608 - our own names
        database.execute(f"DELETE FROM {table} WHERE {key} NOT IN ({needed})")  # noqa: S608 - our own names
    # A client's state is needed until a newer one was there at the oldest checkpoint.
    database.execute(
        "DELETE FROM states WHERE job IN (SELECT old.job FROM states AS newer JOIN states AS old "
        "USING (client) WHERE newer.checkpoint <= (SELECT MIN(checkpoint) FROM checkpoints) "
        "AND old.job < newer.job)"
    )


def filed(database: sqlite3.Connection) -> dict[str, str]:
    """By file, the SHA-256 of each that a row refers to."""
    tables = " UNION ALL ".join(f"SELECT file, sha256 FROM {table}" for table in FILES)  # noqa: S608 - our own names
    return dict(database.execute(tables).fetchall())


def sweep(folder: Path, database: sqlite3.Connection) -> None:
    """Deletes the files of a run that no row refers to; the rows are on the disk."""
    kept = filed(database)
    for name in FILES:
        with suppress(OSError):
            for path in (folder / name).iterdir():
                if f"{name}/{path.name}" not in kept:
                    path.unlink()
