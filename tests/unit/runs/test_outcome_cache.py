"""Training ahead of merges: whose state a job begins with, and what becomes of what nobody merges."""

from __future__ import annotations

import busy
import pytest
import torch
from builders import learned

import edgefl
from edgefl.compute.job import Outcome
from edgefl.core.event import Job
from edgefl.runs.outcome_cache import OutcomeCache


def job(number: int, client: int = 0) -> Job:
    return Job(number, client, "train", 0, 0, 0, 0, 1)


def trained(cache: OutcomeCache, due: list[Job], ready: list[Job] = ()) -> list[int]:
    """Trains what is missing, one after another; every job's state is its number."""
    missing = sorted(cache.missing(due, ready), key=lambda each: each.id)
    for each in missing:
        cache.put(Outcome(each, {}, {"by": torch.tensor(each.id)}, {}))
    return [each.id for each in missing]


def begins(cache: OutcomeCache, each: Job) -> int | None:
    """Whose state a job begins with, where that is not the client's own."""
    state = cache.state(each)
    return None if state is None else int(state["by"])


@pytest.fixture
def cache():
    return OutcomeCache(lambda _: True)


def test_nothing_is_trained_twice_or_without_need(cache):
    """What was trained ahead is there when it is due; while nothing is missing, nothing is trained."""
    assert trained(cache, [job(0)], [job(1, 1), job(2, 2)]) == [0, 1, 2]
    assert cache.take(job(0)).job == job(0)
    assert trained(cache, [job(1, 1)], [job(2, 2), job(3, 0)]) == []
    assert trained(cache, [], [job(2, 2), job(3, 0)]) == []


def test_a_clients_jobs_follow_each_other(cache):
    """A job begins where the one before it ends, in this merge or ahead; another client's is no matter."""
    assert trained(cache, [job(0), job(2)], [job(3), job(1, 1)]) == [0, 1, 2, 3]
    assert [begins(cache, each) for each in (job(0), job(1, 1), job(2), job(3))] == [None, None, 0, 2]
    cache.take(job(0))
    cache.take(job(2))
    assert trained(cache, [job(3)], [job(1, 1)]) == []


def test_what_is_needed_afresh_is_dropped_with_what_followed_it(cache):
    """An outcome that is no longer valid is trained again, and so is one that began with its state."""
    assert trained(cache, [job(0)], [job(1), job(2), job(3, 1)]) == [0, 1, 2, 3]
    cache.take(job(0))
    assert [each.id for each in cache.missing([job(1)], [job(2), job(3, 1)], {1})] == [1, 2]


def test_what_is_lost_is_dropped_with_what_followed_it(cache):
    """A job that is no longer in flight counts for nothing: the next begins with the client's own state."""
    assert trained(cache, [job(0)], [job(1), job(2), job(3)]) == [0, 1, 2, 3]
    cache.take(job(0))
    assert trained(cache, [job(4, 1)], [job(2), job(3)]) == [2, 3, 4]
    assert (begins(cache, job(2)), begins(cache, job(3))) == (None, 2)


def test_what_stays_behind_is_passed(cache):
    """A job that is in flight forever is not what later ones begin with, once one of them was merged."""
    assert trained(cache, [job(0)], [job(1), job(2)]) == [0, 1, 2]
    cache.take(job(0))
    assert trained(cache, [job(2)], [job(1), job(3)]) == [2, 3]
    assert (begins(cache, job(2)), begins(cache, job(3))) == (None, 2)
    cache.take(job(2))
    assert trained(cache, [job(3)], [job(1)]) == []
    cache.take(job(3))
    assert trained(cache, [job(1)], []) == [1]


def test_work_without_states_depends_on_nothing():
    """Where no job writes a state, whatever was trained stays good."""
    cache = OutcomeCache(lambda _: False)
    assert trained(cache, [job(0)], [job(1), job(2)]) == [0, 1, 2]
    cache.take(job(0))
    assert trained(cache, [job(2)], [job(1)]) == []
    assert begins(cache, job(1)) is None


@pytest.fixture
def seen(tmp_path, monkeypatch):
    """The jobs of every call of an engine, and those whose states were committed, in order."""
    busy.policies(tmp_path / "own", monkeypatch)
    return busy.watched(monkeypatch)


@pytest.mark.parametrize("policy", ["first", "moody"])
@pytest.mark.parametrize("method", ["fedavg", "fedclassavg"])
def test_engines_agree_whatever_the_policy(tmp_path, seen, method, policy):
    """One job at its merge or many ahead of it: the same events, states in the same order, near weights."""
    calls, committed = seen
    seen_by = {}
    for engine in ("loop", "vmapped"):
        scenario = {**busy.SCENARIO, "method": method, "server": {"policy": policy, "rounds": 16}}
        (run,) = edgefl.run(scenario, engine=engine, out=tmp_path / engine).runs
        seen_by[engine] = run.table("events"), learned(run), list(calls), list(committed)
        calls.clear()
        committed.clear()
    (events, expected, alone, kept), (same, got, ahead, also) = seen_by["loop"], seen_by["vmapped"]
    assert same == events
    assert sum(row["kind"] == "merged" for row in events) == 16
    assert also == kept
    assert len(kept) == (0 if method == "fedavg" else 16 * busy.POLICIES[policy]["merged"])
    assert got.keys() == expected.keys()
    for key, leaf in expected.items():
        torch.testing.assert_close(got[key], leaf, rtol=1e-4, atol=1e-5)
    if policy == "first":
        assert [len(call) for call in alone] == [1] * 16
        assert len(ahead) < 16
        assert max(map(len, ahead)) > 3


def test_a_job_that_is_trained_again_has_another_outcome(cache):
    """It has a number of its own, also after a restart: an older checkpoint still has the first one."""
    trained(cache, [job(0)], [job(1, 1)])
    first, counted = dict(cache.kept), cache.number()
    cache.missing([job(0)], [job(1, 1)], {1})
    trained(cache, [], [job(0)])
    assert trained(cache, [job(1, 1)], []) == [1]
    again = {outcome.job.id: number for number, (outcome, _) in cache.kept.items()}
    assert again[1] not in first
    restarted = OutcomeCache(lambda _: True)
    restarted.restore(first, {}, counted)
    assert restarted.kept == first
    restarted.missing([job(0)], [job(1, 1)], {1})
    assert trained(restarted, [job(1, 1)], []) == [1]
    assert max(restarted.kept) > counted
