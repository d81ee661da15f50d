"""Runs that were interrupted and resumed are, bit for bit, those that were not."""

import json
import random
import shutil
import sqlite3
import sys
from contextlib import closing

import pytest
from busy import watched
from hooks import Hooks
from interrupted import OTHERS, POLICIES, SCENARIOS, copied, full_disk, interrupted, scenario
from nightly import mostly, paired, sampled
from resumed import same_runs

import edgefl
from edgefl.core.errors import RunError
from edgefl.core.user_code import Terminated
from edgefl.store.folders import is_run
from edgefl.store.reader import read


def resumed(folder, **how):
    (run,) = edgefl.resume(folder, **how).runs
    assert run.status == "done", run.reason
    return run.folder


# A third of the methods, under all policies.
METHODS = [name for name in SCENARIOS if name not in OTHERS][::3]
CHOSEN = ("tiers sync", "topk up, int8 down", "measures", "unstable", "charging", "holdout", "mixed models")


@sampled(3, "name", mostly(SCENARIOS, [*METHODS, *CHOSEN, "checkpoints at evaluations"]))
def test_a_run_that_was_killed_at_a_write(tmp_path, name):
    """Every method under some policy, and what else there is: two of all writes, by chance."""
    whole, copies = interrupted(scenario(SCENARIOS[name]), tmp_path, most=2, seed=name)
    for copy in copies.kept:
        same_runs(whole, resumed(copy))


@pytest.mark.nightly
def test_a_run_that_was_killed_when_it_had_reached_its_accuracy(tmp_path):
    """It does not go on from its last evaluation, which is the one that ends it."""
    whole, copies = interrupted(scenario(SCENARIOS["until an accuracy"]), tmp_path, most=10**6)
    with read(whole) as reader:
        assert reader.meta["stopped"] == "accuracy"
    for copy in copies.kept[-12:]:
        same_runs(whole, resumed(copy))


@sampled(
    1,
    ("engine", "policy"),
    paired(["null", {"name": "loop", "state_memory": "1 B"}, "vmapped"], ["sync", "partial", "fedbuff"]),
)
def test_a_run_on_another_engine(tmp_path, engine, policy):
    """Jobs that were trained ahead, in groups; clocks without training; states that do not fit in memory."""
    settings_ = scenario({"method": "fedclassavg", "server": {"policy": POLICIES[policy]}})
    whole, copies = interrupted(settings_, tmp_path, most=3, seed=policy, engine=engine)
    for copy in copies.kept:
        same_runs(whole, resumed(copy))


def test_what_was_trained_ahead_is_not_trained_again(tmp_path, monkeypatch):
    """In other company an engine that stacks jobs may give other bits."""
    settings_ = scenario({"method": "fedclassavg", "server": {"policy": POLICIES["fedbuff"]}})
    whole, copies = interrupted(settings_, tmp_path, most=5, engine="vmapped")
    calls, _ = watched(monkeypatch)
    found = 0
    for copy in filter(is_run, copies.kept):
        with read(copy) as reader:
            newest = reader.rows("checkpoints")[-1:]
            outcomes = {row["outcome"]: json.loads(row["content"]) for row in reader.rows("outcomes")}
        numbers = [number for row in newest for number in json.loads(row["outcomes"])]
        ahead = {outcomes[number]["job"]["id"] for number in numbers}
        calls.clear()
        same_runs(whole, resumed(copy))
        assert not ahead.intersection(job for call in calls for job in call)
        found += bool(ahead)
    assert found


@pytest.mark.nightly
def test_a_run_that_was_killed_at_every_write(tmp_path):
    settings_ = scenario(SCENARIOS["fedclassavg fedasync"], {"server": {"rounds": 2, "participants": 2}})
    whole, copies = interrupted(settings_, tmp_path, most=1000)
    assert len(copies.kept) == copies.seen > 20
    for copy in copies.kept:
        same_runs(whole, resumed(copy))


@pytest.mark.nightly
def test_a_resume_that_was_killed(tmp_path):
    whole, copies = interrupted(scenario(SCENARIOS["scaffold fedasync"]), tmp_path, most=2, seed="first")
    for first in copies.kept:
        with copied(first, tmp_path / f"{first.name} again", 2, "second") as again:
            same_runs(whole, resumed(first))
        for second in again.kept:
            same_runs(whole, resumed(second))


class _Stopping(Hooks):
    """Raises in each process at the first merge that is new."""

    def __init__(self, error):
        self.error, self.seen, self.stopped = error, -1, 0

    def merged(self, so_far):
        if so_far.version > self.seen:
            self.seen = so_far.version
            self.stopped += 1
            raise self.error


@sampled(1, "policy", mostly(POLICIES, ("sync", "late", "semi-sync", "fedbuff")))
def test_a_run_that_is_stopped_after_every_merge(tmp_path, policy):
    """An interrupt, SIGTERM or an exception from a callback; each resume gets one merge further."""
    settings_ = scenario({"server": {"policy": POLICIES[policy]}})
    error = {"sync": Terminated(143), "late": ZeroDivisionError()}.get(policy, KeyboardInterrupt())
    (whole,) = edgefl.run(settings_, engine="loop", out=tmp_path / "whole").runs
    stops = _Stopping(error)
    _stopped_often(settings_, tmp_path / "run", stops)
    assert stops.stopped == len(whole.table("merges"))
    same_runs(whole.folder, tmp_path / "run")


def _stopped_often(settings_, folder, stops):
    for attempt in range(40):
        try:
            if attempt:
                result = edgefl.resume(folder, callbacks=stops)
            else:
                result = edgefl.run(settings_, engine="loop", out=folder, callbacks=stops)
        except type(stops.error):
            continue
        if result.runs[0].status == "done":
            return
    raise AssertionError("no end")


def test_a_run_that_is_interrupted_on_any_line_of_the_clock(tmp_path):
    """Half-way through any change of the world; nothing else happens then."""
    settings_ = scenario({"server": {"policy": POLICIES["late"]}})
    lines = [0, sys.maxsize]

    def line(frame, event, _argument):
        if "/edgefl/world/" not in frame.f_code.co_filename:
            return None
        lines[0] += event == "line"
        if lines[0] == lines[1]:
            sys.settrace(None)
            raise KeyboardInterrupt
        return line

    def traced(folder, at):
        lines[:] = 0, at
        sys.settrace(line)
        try:
            return edgefl.run(settings_, engine="null", out=folder).runs[0]
        finally:
            sys.settrace(None)

    # Modules are imported in the first.
    traced(tmp_path / "first", sys.maxsize)
    whole = traced(tmp_path / "whole", sys.maxsize)
    chance = random.Random(1)  # noqa: S311 - which lines is no secret
    for at in sorted(chance.sample(range(lines[0]), 4)):
        with pytest.raises(KeyboardInterrupt):
            traced(tmp_path / f"{at}", at)
        if is_run(tmp_path / f"{at}"):
            same_runs(whole.folder, resumed(tmp_path / f"{at}"))


def test_a_disk_that_becomes_full_at_any_write(tmp_path):
    """The run fails; with room again it is resumed. So is a resume during which the disk becomes full."""
    settings_ = scenario(SCENARIOS["fedclassavg fedasync"], {"server": {"rounds": 2}})
    (whole,) = edgefl.run(settings_, engine="loop", out=tmp_path / "whole").runs
    failed = 0
    for after in range(2, 40, 12):
        folder = tmp_path / f"{after}"
        try:
            with full_disk(folder, after):
                (run,) = edgefl.run(settings_, engine="loop", out=folder).runs
        except RunError:
            assert not folder.exists()
            continue
        failed += run.status == "failed"
        with full_disk(folder, after):
            edgefl.resume(folder)
        same_runs(whole.folder, resumed(folder))
    assert failed


def test_a_run_that_was_killed_while_its_database_was_changed(tmp_path):
    """A journal that has to be taken back, as when the log of changes was just to begin, or to end."""
    whole, copies = interrupted(scenario({"server": {"rounds": 2}}), tmp_path, most=1)
    for name, folder in (("planned.sqlite", copies.kept[0]), ("run.sqlite", whole)):
        killed = tmp_path / f"killed {name}"
        file = next(path for path in (folder / name, folder / "run.sqlite") if path.exists())
        with closing(sqlite3.connect(file, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode=DELETE")
            database.execute("PRAGMA cache_size=1")
            database.execute("BEGIN")
            for table in ("meta", "prices", "fleet", "jobs"):
                database.execute(f"UPDATE {table} SET rowid = rowid + 1000000")  # noqa: S608 - our own names
            shutil.copytree(folder, killed)
            database.execute("ROLLBACK")
        assert (killed / f"{file.name}-journal").stat().st_size > 1000
        same_runs(whole, resumed(killed))
