"""Training ahead of merges: whose state a job begins with, and what becomes of what nobody merges."""

from __future__ import annotations

import pytest
import torch

import edgefl
from edgefl.compute.job import Outcome
from edgefl.compute.local import Local
from edgefl.core.event import Job
from edgefl.protocol import flatten, read_tree
from edgefl.runs.ahead import Stash
from edgefl.runs.states import States


def job(number: int, client: int = 0) -> Job:
    return Job(number, client, "train", 0, 0, 0, 0, 1)


def trained(stash: Stash, wanted: list[Job], ready: list[Job] = ()) -> list[int]:
    """Trains what is missing, one after another; every job's state is its number."""
    missing = sorted(stash.missing(wanted, ready), key=lambda one: one.id)
    for one in missing:
        stash.put(Outcome(one, {}, {"by": torch.tensor(one.id)}, {}))
    return [one.id for one in missing]


def begins(stash: Stash, one: Job) -> int | None:
    """Whose state a job begins with, where that is not the client's own."""
    found = stash.state(one)
    return None if found is None else int(found["by"])


@pytest.fixture
def stash():
    return Stash(lambda _: True)


def test_nothing_is_trained_twice_or_without_need(stash):
    """What was trained ahead is there when it is wanted; while nothing is missing, nothing is trained."""
    assert trained(stash, [job(0)], [job(1, 1), job(2, 2)]) == [0, 1, 2]
    assert stash.take(job(0)).job == job(0)
    assert trained(stash, [job(1, 1)], [job(2, 2), job(3, 0)]) == []
    assert trained(stash, [], [job(2, 2), job(3, 0)]) == []


def test_a_clients_jobs_follow_each_other(stash):
    """A job begins where the one before it ends, in this merge or ahead; another client's is no matter."""
    assert trained(stash, [job(0), job(2)], [job(3), job(1, 1)]) == [0, 1, 2, 3]
    assert [begins(stash, one) for one in (job(0), job(1, 1), job(2), job(3))] == [None, None, 0, 2]
    stash.take(job(0))
    stash.take(job(2))
    assert trained(stash, [job(3)], [job(1, 1)]) == []


def test_what_is_lost_is_dropped_with_what_followed_it(stash):
    """A job that is no longer in flight counts for nothing: the next begins with the client's own state."""
    assert trained(stash, [job(0)], [job(1), job(2), job(3)]) == [0, 1, 2, 3]
    stash.take(job(0))
    assert trained(stash, [job(4, 1)], [job(2), job(3)]) == [2, 3, 4]
    assert (begins(stash, job(2)), begins(stash, job(3))) == (None, 2)


def test_what_stays_behind_is_passed(stash):
    """A job that is in flight for ever is not what later ones begin with, once one of them was merged."""
    assert trained(stash, [job(0)], [job(1), job(2)]) == [0, 1, 2]
    stash.take(job(0))
    assert trained(stash, [job(2)], [job(1), job(3)]) == [2, 3]
    assert (begins(stash, job(2)), begins(stash, job(3))) == (None, 2)
    stash.take(job(2))
    assert trained(stash, [job(3)], [job(1)]) == []
    stash.take(job(3))
    assert trained(stash, [job(1)], []) == [1]


def test_work_without_states_depends_on_nothing():
    """Where no job writes a state, whatever was trained stays good."""
    stash = Stash(lambda _: False)
    assert trained(stash, [job(0)], [job(1), job(2)]) == [0, 1, 2]
    stash.take(job(0))
    assert trained(stash, [job(2)], [job(1)]) == []
    assert begins(stash, job(1)) is None


# Clients are always at work. "first" merges each arrival at once; "moody" the newest two of three, and every
# fourth job is lost on the way.
POLICY = """
'''Always busy clients.'''
import simpy

def serve(world, params):
    (prices,), rounds = world.plan.prices, world.plan.scenario.server.rounds
    inbox, came = [], simpy.Store(world.env)

    def busy(client):
        while world.version < rounds:
            job = world.job(prices.exchange, client, min(world.version, rounds - 1))
            yield from world.work(job)
            if not ({lossy} and job.id % 4 == 3):
                inbox.append(job)
                yield came.put(job)

    for client in world.clients:
        world.env.process(busy(client))
    for round_ in range(rounds):
        while len(inbox) < {waiting}:
            yield came.get()
        jobs = [inbox.pop() for _ in range({merged})]
        yield from world.merge(prices.exchange, jobs, round_)
    yield from world.evaluate(rounds - 1)
"""
POLICIES = {
    "first": {"lossy": False, "waiting": 1, "merged": 1},
    "moody": {"lossy": True, "waiting": 3, "merged": 2},
}
SCENARIO = {
    "task": {
        "dataset": "digits",
        "clients": 6,
        "partition": {"name": "dirichlet", "alpha": 0.5, "min_samples": 20},
    },
    "model": {"name": "mlp", "hidden": [8]},
    "local": {"steps": 4, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.05}},
    "fleet": "home-lab",
}


@pytest.fixture
def seen(tmp_path, monkeypatch):
    """The jobs of every call of an engine, and those whose states were committed, in order."""
    folder = tmp_path / "own" / "policies"
    folder.mkdir(parents=True)
    for name, settings in POLICIES.items():
        (folder / f"{name}.py").write_text(POLICY.format(**settings), encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path / "own"))
    calls, committed, outcomes, put = [], [], Local.outcomes, States.put

    def watched(self, jobs, **options):
        calls.append([one.id for one in jobs])
        return outcomes(self, jobs, **options)

    def noted(self, client, number, tree):
        committed.append(number)
        put(self, client, number, tree)

    monkeypatch.setattr(Local, "outcomes", watched)
    monkeypatch.setattr(States, "put", noted)
    return calls, committed


def learned(run):
    """The tensors of all files of a run."""
    files = sorted([*(run.folder / "versions").iterdir(), *(run.folder / "states").iterdir()])
    return {(path.name, key): leaf for path in files for key, leaf in flatten(read_tree(path)).items()}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("method", ["fedavg", "fedclassavg"])
def test_engines_agree_whatever_the_policy(tmp_path, seen, method, policy):
    """One job at its merge or many ahead of it: the same events, states in the same order, near weights."""
    calls, committed = seen
    found = {}
    for engine in ("loop", "vmapped"):
        scenario = {**SCENARIO, "method": method, "server": {"policy": policy, "rounds": 16}}
        (run,) = edgefl.run(scenario, engine=engine, out=tmp_path / engine).runs
        found[engine] = run.table("events"), learned(run), list(calls), list(committed)
        calls.clear()
        committed.clear()
    (events, expected, alone, kept), (same, got, ahead, also) = found["loop"], found["vmapped"]
    assert same == events
    assert sum(row["kind"] == "merged" for row in events) == 16
    assert also == kept
    assert len(kept) == (0 if method == "fedavg" else 16 * POLICIES[policy]["merged"])
    assert got.keys() == expected.keys()
    for key, leaf in expected.items():
        torch.testing.assert_close(got[key], leaf, rtol=1e-3, atol=1e-4)
    if policy == "first":
        assert [len(call) for call in alone] == [1] * 16
        assert len(ahead) < 16
        assert max(map(len, ahead)) > 3
