"""Damaged runs: refused with one message, or what is read is what was written; never other numbers."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing

import pytest
from damage import flipped, zeroed
from hooks import Hooks

import edgefl
from edgefl.analysis.summary import summaries
from edgefl.core.documents import document
from edgefl.core.errors import UserError
from edgefl.export.trained import trained
from edgefl.planning.learning import DataAccess
from edgefl.protocol import flatten
from edgefl.store import read, verify
from edgefl.store.digests import damaged_tables
from edgefl.store.schema import STORED

SCENARIO = {
    "name": "damaged",
    "task": {"dataset": "digits", "clients": 5},
    "model": {"name": "mlp", "hidden": [8]},
    "method": "fedclassavg",
    "local": {"epochs": 1, "batch_size": 64},
    "fleet": "home-lab",
    "server": {"participants": 3, "rounds": 6},
}
# Of each file, and how many reading models takes, which is slower.
TRIES, FEWER = {"flip": 10, "zero": 3, "cut": 3}, {"flip": 4, "zero": 2, "cut": 2}


class _Killed(Hooks):
    """Copies the run as a kill would leave it: the log of changes has commits that the database lacks."""

    def __init__(self, target):
        self.target, self.left, self.folder = target, 4, None

    def began(self, run):
        self.folder = run.folder

    def evaluated(self, so_far):  # noqa: ARG002 - the callback's own signature
        self.left -= 1
        if not self.left:
            shutil.copytree(self.folder, self.target)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Name -> a whole run: one that ended, and one that was killed."""
    folder = tmp_path_factory.mktemp("whole")
    killed = _Killed(folder / "killed")
    (run,) = edgefl.run(SCENARIO, engine="loop", out=folder / "ended", callbacks=killed).runs
    assert run.status == "done"
    assert (folder / "killed" / "run.sqlite-wal").stat().st_size > 40_000
    return {"ended": run.folder, "killed": folder / "killed"}


def _summary(folder):
    (found,) = summaries([folder])
    return {**document(found), "run_dir": ""}


def _models(folder):
    """All tensors of the last version and of the clients' states, as bytes."""
    found = trained(folder, DataAccess())
    trees = {"server": found.server, **found.states}
    return {
        (name, key): leaf.numpy().tobytes()
        for name, tree in trees.items()
        for key, leaf in flatten(tree).items()
    }


def _damages(content, seed, tries):
    """The content damaged in many ways."""
    rng = random.Random(seed)  # noqa: S311 - no secrets
    for _ in range(tries["flip"]):
        yield flipped(content, rng.randrange(8 * len(content)))
    for _ in range(tries["zero"]):
        start = rng.randrange(len(content))
        yield zeroed(content, start, rng.choice([1, 16, 512, 4096]))
    for _ in range(tries["cut"]):
        yield content[: rng.randrange(len(content))]


def _files(folder):
    """One file of each kind, but the copy of the log's index, which SQLite makes anew."""
    names = ("run.sqlite", "run.sqlite-wal", "SHA256SUMS", "plan.yaml", "host.json")
    kept = [min((folder / part).iterdir()) for part in ("versions", "states")]
    paths = [*(folder / name for name in names), *kept]
    return [path.relative_to(folder) for path in paths if path.exists()]


def _outcome(reads, folder):
    """What is read, or the error where it is refused; any other exception is a failure."""
    try:
        return reads(folder)
    except UserError as error:
        return error


def _campaign(runs, name, reads, folder):
    """Each damage's (file, whether its end was cut off, outcome), on a copy of a run."""
    shutil.copytree(runs[name], folder)
    for file in _files(folder):
        content = (folder / file).read_bytes()
        for damaged in _damages(content, f"{name} {file}", TRIES if reads is _summary else FEWER):
            (folder / file).write_bytes(damaged)
            yield file.name, len(damaged) < len(content), _outcome(reads, folder)
        (folder / file).write_bytes(content)


@pytest.mark.parametrize("reads", [_summary, _models])
@pytest.mark.parametrize("name", ["ended", "killed"])
def test_damage_never_gives_other_numbers(runs, tmp_path, name, reads):
    """Bits, ranges and ends of every kind of file: the result is the same, or there is one message."""
    whole, folder, refused = reads(runs[name]), tmp_path / "run", set()
    for file, cut, found in _campaign(runs, name, reads, folder):
        if isinstance(found, UserError):
            refused.add(file)
            assert len(str(found)) < 700
            assert str(folder) in found.where
        else:
            # A log that is cut off is what an earlier kill would have left.
            assert found == whole or (file, cut) == ("run.sqlite-wal", True), file
    assert reads(folder) == whole
    assert refused >= {"run.sqlite", "run.sqlite-wal" if name == "killed" else "run.sqlite"}
    assert "plan.yaml" in refused or reads is _summary


def test_verify_names_what_is_damaged(runs, tmp_path):
    """Nothing of a whole run; of a damaged one each file by its name."""
    assert [verify(folder) for folder in runs.values()] == [[], []]
    folder = tmp_path / "run"
    shutil.copytree(runs["ended"], folder)
    with read(folder) as reader:
        (version,) = (row["file"] for row in reader.rows("versions") if row["last"])
        state = reader.rows("states")[0]["file"]
    (folder / version).write_bytes(flipped((folder / version).read_bytes(), 4000))
    (folder / state).unlink()
    (folder / "plan.yaml").write_text("", encoding="utf-8")
    found = verify(folder)
    assert len(found) == 3
    for line, (name, what) in zip(
        found, [("plan.yaml", "is damaged"), (version, "is damaged"), (state, "cannot be read")], strict=True
    ):
        assert f"{name.rpartition('/')[2]} {what}" in line


def test_every_value_of_every_table_counts(runs):
    """Each column of the first row of each table that has rows, changed alone: its table is damaged."""
    seen = set()
    with closing(sqlite3.connect(f"file:{runs['ended'] / 'run.sqlite'}?mode=ro", uri=True)) as source:
        database = sqlite3.connect(":memory:")
        source.backup(database)
    for table, columns in STORED.items():
        for column, kind in columns.items() if table != "digests" else ():
            other = f"{column} || 'x'" if kind == "TEXT" else f"{column} + 1000000"
            first = f"rowid = (SELECT MIN(rowid) FROM {table} WHERE {column} IS NOT NULL)"  # noqa: S608 - our own names
            if database.execute(f"UPDATE {table} SET {column} = {other} WHERE {first}").rowcount:  # noqa: S608 - our own names
                assert len(damaged_tables(database)) >= 1, (table, column)
                seen.add(table)
            database.rollback()
    assert damaged_tables(database) == {}
    assert seen >= {"meta", "fleet", "prices", "jobs", "merges", "evaluations", "versions", "states"}
    database.close()
