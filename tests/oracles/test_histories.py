"""What a run had spent at its evaluations, on timelines that a reader can check on paper."""

from __future__ import annotations

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


def test_a_job_in_flight_counts_the_stages_that_are_over():
    """c0 arrives at 4, 8 and 12 s, c1 at 10 s; each arrival is a merge.

    At 4 and 8 s c1 has received and is at work. At 10 s c0's third job has worked for a second, which counts
    since the run ends then.
    """
    plan_ = two("fedbuff", 3, params={"buffer": 1})
    t_s, bytes_, client_s = columns(plan_, "t_s", "bytes", "client_s")
    assert (t_s, bytes_, client_s) == ([4, 8, 10], [3000, 5000, 7000], [5, 9, 20])


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
