"""Damaged runs: found, refused with one message, and never read as other numbers."""

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from damage import flipped, verify, zeroed
from hooks import Hooks
from small import SMALL

import edgefl
from edgefl.analysis.summary import summaries
from edgefl.core.documents import document
from edgefl.core.errors import UserError
from edgefl.export.trained import trained
from edgefl.planning.learning import DataAccess
from edgefl.protocol import flatten
from edgefl.store.reader import read
from edgefl.store.schema import STORED

SCENARIO = {**SMALL, "method": "fedclassavg", "server": {"participants": 3, "rounds": 6}}


class _Killed(Hooks):
    """Copies the run as a kill would leave it."""

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
    folder = tmp_path_factory.mktemp("whole")
    killed = _Killed(folder / "killed")
    (run,) = edgefl.run(SCENARIO, engine="loop", out=folder / "ended", callbacks=killed).runs
    assert run.status == "done"
    return {"ended": run.folder, "killed": folder / "killed"}


@pytest.fixture
def copy(runs, tmp_path, request):
    return Path(shutil.copytree(runs[request.param], tmp_path / "run"))


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


def _damages(content, seed, flips=6, others=2):
    rng = random.Random(seed)  # noqa: S311 - no secrets
    for _ in range(flips):
        yield flipped(content, rng.randrange(8 * len(content)))
    for _ in range(others):
        damaged = zeroed(content, rng.randrange(len(content)), rng.choice([1, 16, 512, 4096]))
        if damaged != content:
            yield damaged
        yield content[: rng.randrange(len(content))]


def _files(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def _outcome(reads, folder):
    """What is read, or the error where it is refused; any other exception is a failure."""
    try:
        return reads(folder)
    except UserError as error:
        told = error
    assert len(str(told)) < 700
    assert str(folder) in told.where
    return told


@pytest.mark.parametrize("copy", ["ended"], indirect=True)
def test_damage_of_a_run_that_ended_is_found(copy):
    """Bits, ranges and ends of every file: verifying names it, and reading gives no other numbers."""
    numbers, models, files = _summary(copy), _models(copy), _files(copy)
    assert {str(file) for file in files} > {"run.sqlite", "SHA256SUMS", "plan.yaml", "host.json"}
    assert verify(copy) == []
    for file in files:
        content = (copy / file).read_bytes()
        for place, damaged in enumerate(_damages(content, f"{file}")):
            (copy / file).write_bytes(damaged)
            found = _outcome(verify, copy)
            # What is left of damaged sums may be true of less.
            if file.name != "SHA256SUMS":
                assert found, (file, place)
                assert isinstance(found, UserError) or file.name in found[0]
            for reads, whole in ((_summary, numbers), (_models, models)) if place % 8 == 0 else ():
                outcome = _outcome(reads, copy)
                assert isinstance(outcome, UserError) or outcome == whole, (file, place)
        (copy / file).write_bytes(content)
    assert verify(copy) == []


@pytest.mark.parametrize("copy", ["killed"], indirect=True)
def test_a_damaged_log_is_what_an_earlier_kill_would_have_left(copy):
    """The run ends with an earlier commit, and goes on from there."""
    merges, log = read_merges(copy), copy / "run.sqlite-wal"
    content = log.read_bytes()
    assert len(content) > 40_000
    for damaged in _damages(content, "log"):
        log.write_bytes(damaged)
        found = _outcome(read_merges, copy)
        assert isinstance(found, UserError) or found == merges[: len(found)]
    log.write_bytes(content)
    assert read_merges(copy) == merges


def read_merges(folder):
    with read(folder) as reader:
        return reader.query("SELECT version, round, t_s, jobs, loss FROM merges ORDER BY version")


@pytest.mark.parametrize("copy", ["killed"], indirect=True)
def test_a_killed_runs_events_are_those_that_were_written(copy):
    """Each column of a row, changed alone; what training reported is not looked at."""
    assert verify(copy) == []
    table = "jobs"
    for column, kind in STORED[table].items():
        other = f"{column} || 'x'" if kind == "TEXT" else f"{column} + 1000000"
        with closing(sqlite3.connect(copy / "run.sqlite")) as database, database:
            before = database.execute(
                f"SELECT rowid, {column} FROM {table} WHERE {column} NOTNULL"  # noqa: S608 - our own names
            ).fetchone()
            database.execute(f"UPDATE {table} SET {column} = {other} WHERE rowid = ?", before[:1])  # noqa: S608 - our own names
        found = _outcome(verify, copy)
        assert isinstance(found, UserError) == (column != "scalars"), column
        with closing(sqlite3.connect(copy / "run.sqlite")) as database, database:
            key = before[1] + 1_000_000 if column in {"job", "turn"} else before[0]
            database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (before[1], key))  # noqa: S608 - our own names
    assert verify(copy) == []
