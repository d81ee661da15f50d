"""What a run had spent at its evaluations, on timelines that a reader can check on paper."""

from __future__ import annotations

import pytest
from plans import plan, prices
from recorded import recorded

from edgefl.analysis.history import histories
from edgefl.analysis.run import Run
from edgefl.analysis.summary import summary
from edgefl.core import catalogue


def two(policy, rounds, *, at=("round",), params=None, **settings):
    """Two clients: a second down and one up, 1000 B each, and 2 and 8 s of work, 8 operations each."""
    table = [
        prices(
            f"train-{place}",
            2,
            at=when,
            everyone=when != "round",
            down_bps=8e3,
            up_bps=8e3,
            down_bytes=1000,
            up_bytes=1000,
            compute_s=[2, 8],
            flops=8,
            compute_w=1,
        )
        for place, when in enumerate(at)
    ]
    params = catalogue.load("policies", policy).Params(**(params or {}))
    return plan(table, policy=policy, params=params, rounds=rounds, **settings)


def columns(plan_, *names):
    """Columns of the history of the global model, which always has the accuracy 0.5."""
    with recorded(plan_, [0.5]) as reader:
        (found,) = histories(Run(reader)).values()
    return [list(getattr(found, name)) for name in names]


def test_a_job_that_was_late_counts_as_far_as_it_went():
    """At 5 s, c0 has done its 4 s; c1 had received for 1 s and done half of its work in 4."""
    plan_ = two("deadline", 2, params={"seconds": "5 s"})
    t_s, bytes_, client_s, joules = columns(plan_, "t_s", "bytes", "client_s", "joules")
    assert t_s == pytest.approx([5, 10])
    assert bytes_ == [3000, 6000]
    assert client_s == pytest.approx([9, 18])
    assert joules == pytest.approx([6, 12])


def test_a_job_in_flight_counts_the_stages_that_are_over():
    """c0 arrives at 4, 8 and 12 s, c1 at 10 s; each arrival is a merge.

    At 4 and 8 s c1 has received and is at work. At 10 s c0's third job has worked for a second, which counts
    since the run ends then.
    """
    plan_ = two("fedbuff", 3, params={"buffer": 1})
    t_s, bytes_, client_s = columns(plan_, "t_s", "bytes", "client_s")
    assert (t_s, bytes_, client_s) == ([4, 8, 10], [3000, 5000, 7000], [5, 9, 20])


def test_exchanges_before_and_after_the_rounds_count():
    """Each of three takes 10 s, of which c0 is busy for 4; evaluated after the round and after all."""
    plan_ = two("sync", 1, at=("start", "round", "end"))
    rounds, t_s, client_s = columns(plan_, "round", "t_s", "client_s")
    assert (rounds, t_s, client_s) == ([0, 1], [20, 30], [28, 42])


def test_what_it_took_to_a_target_is_a_point_of_the_history():
    """And so is the evaluation before it."""
    plan_ = two("fedbuff", 3, params={"buffer": 1})
    with recorded(plan_, [0.1, 0.4, 0.6], target=0.5) as reader:
        (found,) = histories(Run(reader)).values()
        reached = summary(reader).target.global_
    for place, point in ((2, reached), (1, reached.last_below)):
        mine = (getattr(found, name)[place] for name in ("t_s", "round", "bytes", "accuracy"))
        assert list(mine) == [point.t_s, point.round, point.bytes, point.accuracy]
        assert found.joules[place] == point.energy.joules


def test_where_nobody_took_part_nothing_was_used():
    """Time is up at 5 s, before the first client comes: the model that the run began with is evaluated."""
    away = catalogue.load("availability", "intervals").Params(rows="0,12,100", repeat="100 s")
    plan_ = two("sync", None, availability=away, until={"time": "5 s"})
    names = ("version", "t_s", "bytes", "joules", "client_s")
    assert columns(plan_, *names) == [[0], [5], [0], [0], [0]]


def test_a_run_without_evaluations_has_no_history():
    """As on the null engine."""
    with recorded(two("sync", 1)) as reader:
        assert histories(Run(reader)) == {}
