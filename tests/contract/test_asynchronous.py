"""Asynchronous servers: jobs in flight are trained ahead, in groups, and nobody sees it."""

from __future__ import annotations

import pytest
import torch

import edgefl
from edgefl.compute.local import Local
from edgefl.protocol import flatten, read_tree
from edgefl.runs.states import States

# Clients are always at work; the server merges as soon as two updates have come, be they one client's.
POLICY = """
'''Buffered: merges every two arrivals.'''
import simpy

def serve(world, params):
    (prices,), rounds = world.plan.prices, world.plan.scenario.server.rounds
    inbox = simpy.Store(world.env)

    def busy(client):
        while world.version < rounds:
            job = world.job(prices.exchange, client, min(world.version, rounds - 1))
            yield from world.work(job)
            yield inbox.put(job)

    for client in world.clients:
        world.env.process(busy(client))
    for round_ in range(rounds):
        jobs = [(yield inbox.get()), (yield inbox.get())]
        yield from world.merge(prices.exchange, jobs, round_)
    yield from world.evaluate(rounds - 1)
"""
SCENARIO = {
    "task": {
        "dataset": "digits",
        "clients": 6,
        "partition": {"name": "dirichlet", "alpha": 0.5, "min_samples": 20},
    },
    "model": {"name": "mlp", "hidden": [12]},
    "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.05}},
    "fleet": "home-lab",
    "server": {"policy": "buffered", "rounds": 9},
}


@pytest.fixture(autouse=True)
def _policy(tmp_path, monkeypatch):
    folder = tmp_path / "own" / "policies"
    folder.mkdir(parents=True)
    (folder / "buffered.py").write_text(POLICY, encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path / "own"))


@pytest.fixture
def seen(monkeypatch):
    """The jobs of every call of an engine, and the jobs whose states were committed."""
    calls: list[list[int]] = []
    committed: list[int] = []
    outcomes, put = Local.outcomes, States.put

    def watched(self, jobs, **options):
        calls.append([job.id for job in jobs])
        yield from outcomes(self, jobs, **options)

    def noted(self, client, job, tree):
        committed.append(job)
        put(self, client, job, tree)

    monkeypatch.setattr(Local, "outcomes", watched)
    monkeypatch.setattr(States, "put", noted)
    return calls, committed


def learned(run):
    files = sorted([*(run.folder / "versions").iterdir(), *(run.folder / "states").iterdir()])
    return {(path.name, key): leaf for path in files for key, leaf in flatten(read_tree(path)).items()}


@pytest.mark.parametrize("method", ["fedavg", "fedclassavg"])
def test_training_ahead_changes_neither_events_nor_results(tmp_path, method, seen):
    """The loop trains a job when it is merged, vmapped all that are in flight; both learn the same."""
    calls, committed = seen
    found = {}
    for engine in ("loop", "vmapped"):
        scenario = {**SCENARIO, "method": method}
        (run,) = edgefl.run(scenario, engine=engine, out=tmp_path / engine).runs
        assert run.status == "done", run.reason
        events = run.table("events")
        merges = [row for row in events if row["kind"] == "merged"]
        found[engine] = events, learned(run), list(calls), sorted(committed)
        assert len(merges) == 9
        calls.clear()
        committed.clear()
    (events, expected, one_by_one, kept), (same, got, ahead, also) = found["loop"], found["vmapped"]
    assert same == events
    assert got.keys() == expected.keys()
    for key, leaf in expected.items():
        torch.testing.assert_close(got[key], leaf, rtol=1e-3, atol=1e-4)

    merged = sum(map(len, one_by_one))
    assert merged == 18
    if method == "fedavg":
        # Where clients keep states, two jobs of one client are two calls.
        assert len(ahead) < len(one_by_one)
    assert max(map(len, ahead)) > 2
    # What was trained ahead is a client's own state only from its merge on.
    assert also == kept
    assert len(kept) == (merged if method == "fedclassavg" else 0)


def test_a_clients_jobs_follow_each_other(tmp_path, seen):
    """No call has two jobs of one client, and each job is trained once."""
    calls, _ = seen
    scenario = {**SCENARIO, "method": "local"}
    (run,) = edgefl.run(scenario, engine="vmapped", out=tmp_path / "run").runs
    client = {row["job"]: row["client"] for row in run.table("events") if row["kind"] == "dispatched"}
    assert len({job for call in calls for job in call}) == sum(map(len, calls))
    for call in calls:
        assert len({client[job] for job in call}) == len(call)
