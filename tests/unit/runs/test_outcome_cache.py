"""Training ahead of merges: whose state a job begins with, and what becomes of what nobody merges."""

import pytest
import torch

from edgefl.compute.job import Outcome
from edgefl.core.event import TrainingJob
from edgefl.runs.outcome_cache import OutcomeCache


def job(number: int, client: int = 0) -> TrainingJob:
    return TrainingJob(number, client, "train", 0, 0, 0, 0, 1)


def trained(cache: OutcomeCache, due: list[TrainingJob], ready: list[TrainingJob] = ()) -> list[int]:
    """Trains what is missing, one after another; every job's state is its number."""
    missing = sorted(cache.missing(due, ready), key=lambda each: each.id)
    for each in missing:
        cache.put(Outcome(each, {}, {"by": torch.tensor(each.id)}, {}))
    return [each.id for each in missing]


def begins(cache: OutcomeCache, each: TrainingJob) -> int | None:
    """Whose state a job begins with, where that is not the client's own."""
    state = cache.state(each)
    return None if state is None else int(state["by"])


@pytest.fixture
def cache():
    return OutcomeCache(lambda _: True)


def test_a_clients_jobs_follow_each_other(cache):
    assert trained(cache, [job(0), job(2)], [job(3), job(1, 1)]) == [0, 1, 2, 3]
    assert [begins(cache, each) for each in (job(0), job(1, 1), job(2), job(3))] == [None, None, 0, 2]
    cache.take(job(0))
    cache.take(job(2))
    assert trained(cache, [job(3)], [job(1, 1)]) == []


def test_what_is_needed_afresh_is_dropped_with_what_followed_it(cache):
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
