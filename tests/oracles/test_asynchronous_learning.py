"""What FedAsync and FedBuff learn: by hand on a quadratic, and beside a reckoning of its own in float64.

Clients c0, c1 and c2 need 3, 5 and 8 s for a job; which versions that makes of which updates is what
``test_asynchronous_policies`` works out.
"""

import pytest
import torch
from plans import plan as plan_by_hand
from small import SKEWED
from told import times

from edgefl.compute.job import Outcome
from edgefl.core import catalogue
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.protocol import flatten, tree_map
from edgefl.runs.context import Context
from edgefl.runs.group import drafts
from edgefl.runs.learner import Learner
from edgefl.runs.states import States
from edgefl.world.driver import converse, simulate
from edgefl.world.needs import Feedback, Merge

SCENARIO = {
    "task": {**SKEWED, "clients": 3, "partition": {**SKEWED["partition"], "min_samples": 40}},
    "model": {"name": "mlp", "hidden": []},
    "method": "fedavg",
    "local": {"epochs": 2, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.5}},
    "fleet": "home-lab",
}


class Halfway:
    """Two steps of gradient descent at rate 1/2 on (w - target)^2 / 2 of every weight, a target a client.

    Each step halves the distance: a client at r sends target + (r - target) / 4.
    """

    ahead = False
    TARGETS = (0.0, 24.0, -24.0)

    def __init__(self, context):
        self._context = context

    def outcomes(self, jobs, *, limit=None):
        """See ``Engine.outcomes``."""
        assert limit is None
        for job in jobs:
            weights = self._context.builder.received(job, self._context.versions[job.version])
            target = self.TARGETS[job.client]
            for _ in range(2):
                weights = tree_map(lambda leaf: leaf - 0.5 * (leaf - target), weights)  # noqa: B023
            yield Outcome(job, weights, None, {})


def _context(**changes):
    (draft,) = drafts({**SCENARIO, **changes})
    return Context(plan(draft, DataAccess()), States())


def _by_hand(policy, params, rounds=4):
    """The server's weight, one number everywhere, at each version of three clients' four merges, from 8."""
    context = _context()
    context.versions[0] = tree_map(
        lambda leaf: torch.full_like(leaf, 8, dtype=torch.float64), context.versions[0]
    )
    learner, found = Learner(context, Halfway(context)), []

    def answer(need):
        if isinstance(need, Merge):
            learner.merge(need)
            values = torch.cat([leaf.flatten() for leaf in flatten(context.versions[need.version]).values()])
            assert values.dtype == torch.float64
            assert torch.equal(values, values[:1].expand_as(values))
            found.append(values[0].item())
        return Feedback()

    params = catalogue.load("policies", policy).Params(**params)
    plan_ = plan_by_hand([times(work=[1, 3, 6])], policy=policy, params=params, rounds=rounds)
    converse(simulate(plan_), answer)
    # Nothing is kept that no job needs.
    assert len(context.versions) <= 4
    return found


@pytest.mark.parametrize(
    ("shape", "versions"),
    [
        # 8 + (2 - 8) / 2; + (20 - 5) / 2; c0 from 5: + (1.25 - 12.5) / 2; + (-16 - 6.875) / 2.
        ("constant", [5.0, 12.5, 6.875, -4.5625]),
        # s = 1, 1/2, 1/2, 1/4: 5; + (20 - 5) / 4; + (1.25 - 8.75) / 4; + (-16 - 6.875) / 8.
        ("polynomial", [5.0, 8.75, 6.875, 4.015625]),
    ],
)
def test_fedasync_by_hand(shape, versions):
    """From 8, at alpha = 1/2 and a = 1; targets are 0, 24 and -24.

    3 s: c0 went from 8 to 2. 5 s: c1 went from 8 to 24 - 16 / 4 = 20. 6 s: c0 went from version 1, a quarter
    of it. 8 s: c2 went from 8 to -24 + 32 / 4 = -16. Their staleness is 0, 1, 1 and 3.
    """
    assert _by_hand("fedasync", {"alpha": 0.5, "staleness": {"shape": shape, "a": 1}}) == versions


@pytest.mark.parametrize(("rate", "versions"), [(1.0, [11.0, 3.5, 3.875, 10.765625]), (2.0, [14.0, -1.0])])
def test_fedbuff_by_hand(rate, versions):
    """From 8, with two updates a merge and s(1) = 1/2; targets are 0, 24 and -24.

    5 s: c0 moved by -6, c1 by 12, both fresh: 8 + 6 / 2 = 11, and 14 at twice the server's rate.
    8 s: c0 again from 8, by -6, and c2 from 8, by -24; each counts half: 11 - 15 / 2 = 3.5, and 14 - 15 = -1.
    10 s: c0 from 11, by -8.25, and c1 from 11, by 9.75: 3.5 + 1.5 / 4 = 3.875.
    15 s: c0 from 3.5, by -2.625, half, and c1 from 3.875, fresh, by 3/4 of 20.125:
    3.875 + (15.09375 - 1.3125) / 2 = 10.765625.
    """
    settings = {"buffer": 2, "server_rate": rate, "staleness": {"a": 1}}
    assert _by_hand("fedbuff", settings, rounds=len(versions)) == versions
