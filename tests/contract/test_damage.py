"""Damaged runs that were killed are read as what was there; ``test_robustness`` damages runs that ended."""

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
from edgefl.core.errors import UserError
from edgefl.store.reader import read

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
def killed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    edgefl.run(SCENARIO, engine="loop", out=folder / "ended", callbacks=_Killed(folder / "killed"))
    return folder / "killed"


@pytest.fixture
def copy(killed, tmp_path):
    return Path(shutil.copytree(killed, tmp_path / "run"))


def _damages(content):
    rng = random.Random("log")  # noqa: S311 - no secrets
    for _ in range(6):
        yield flipped(content, rng.randrange(8 * len(content)))
    for _ in range(2):
        yield zeroed(content, rng.randrange(len(content)), rng.choice([1, 16, 512, 4096]))
        yield content[: rng.randrange(len(content))]


def _outcome(reads, folder):
    """What is read, or the error where it is refused; any other exception is a failure."""
    try:
        return reads(folder)
    except UserError as error:
        told = error
    assert len(str(told)) < 700
    assert str(folder) in told.where
    return told


def test_a_damaged_log_is_what_an_earlier_kill_would_have_left(copy):
    """The run ends with an earlier commit, and goes on from there."""
    merges, log = read_merges(copy), copy / "run.sqlite-wal"
    content = log.read_bytes()
    assert len(content) > 40_000
    for damaged in _damages(content):
        log.write_bytes(damaged)
        found = _outcome(read_merges, copy)
        assert isinstance(found, UserError) or found == merges[: len(found)]
    log.write_bytes(content)
    assert read_merges(copy) == merges


def read_merges(folder):
    with read(folder) as reader:
        return reader.query("SELECT version, round, t_s, jobs, loss FROM merges ORDER BY version")


def test_a_killed_runs_events_are_those_that_were_written(copy):
    """``test_event_hash`` changes each column."""
    assert verify(copy) == []
    with closing(sqlite3.connect(copy / "run.sqlite")) as database, database:
        database.execute("UPDATE jobs SET down_bytes = down_bytes + 1 WHERE job = 2")
    assert isinstance(_outcome(verify, copy), UserError)
