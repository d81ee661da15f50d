"""Jobs that ended are accounted for many at a time, and nobody can tell."""

from __future__ import annotations

import numpy as np
from plans import plan, prices

from edgefl.core.availability.markov import Params as Markov
from edgefl.core.event import JOB
from edgefl.core.fleet import Failures
from edgefl.world.driver import converse, simulate
from edgefl.world.needs import Evaluate, Feedback
from edgefl.world.policies.deadline import Params as Deadline


def played(at_least):
    """The jobs, the numbers of jobs that were handed over at a time, and the totals of a run with losses."""
    table = prices(
        "train", 6, down_s=1, compute_s=[2, 3, 4, 5, 6, 7], up_s=1, down_bytes=8, up_bytes=5, idle_w=2,
        compute_w=[1, 2, 3, 4, 5, 6], flops=10, steps=3,
    )  # fmt: skip
    policy = {"policy": "deadline", "params": Deadline(seconds="7 s"), "failures": Failures(crash=0.2)}
    availability = Markov.model_validate({"on": "30 s", "off": "20 s"})
    plan_ = plan([table], rounds=12, every=4, availability=availability, **policy)
    chunks, totals = [], []

    def answer(need):
        if isinstance(need, Evaluate):
            totals.append(need.totals)
        return Feedback()

    converse(simulate(plan_, ended=chunks.append, at_least=at_least), answer)
    jobs = [tuple(row[name] for name in JOB.names) for chunk in chunks for row in chunk]
    return jobs, [len(chunk) for chunk in chunks], totals


def test_many_at_a_time_are_the_same_jobs():
    """The jobs, their order and the totals do not depend on how many are handed over at a time."""
    one, counts, totals = played(1)
    assert len({row[JOB.names.index("ending")] for row in one}) > 2
    for at_least in (10, 10_000):
        many, fewer, same = played(at_least)
        np.testing.assert_array_equal(np.array(many), np.array(one))
        assert same == totals
        assert len(fewer) < len(counts)
