"""What a stale upload is worth: by hand for FedAvg, and nothing at all for uploads that are not stale."""

import pytest
import torch
from builders import arrival
from nightly import mostly, sampled

from edgefl.compute import loop
from edgefl.compute.job import Local
from edgefl.core import catalogue
from edgefl.core.errors import ScenarioError
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.protocol import flatten
from edgefl.protocol.staleness import reexpressed
from edgefl.runs.context import Context
from edgefl.runs.group import drafts
from edgefl.runs.learner import Learner
from edgefl.runs.states import States
from edgefl.world.driver import converse, simulate
from edgefl.world.needs import Feedback, Merge

METHODS = sorted(catalogue.entries("methods"))


def test_parts_without_a_counterpart_stay():
    """Gram matrices, counters and what has another shape are not moved; no tree that is given changes."""
    upload = {
        "body": {"w": torch.tensor([3.0]), "steps": torch.tensor(7)},
        "gram": {"v": torch.ones(2, 2)},
        "head": {"w": torch.ones(4)},
    }
    received = {"body": {"w": torch.tensor([1.0]), "steps": torch.tensor(1)}, "head": {"w": torch.ones(3)}}
    current = {"body": {"w": torch.tensor([5.0]), "steps": torch.tensor(2)}, "head": {"w": torch.zeros(3)}}
    worth = reexpressed(upload, received, current, correction="move", scale=0.5)
    assert worth["body"]["w"].tolist() == [6.0]
    assert worth["body"]["steps"] is upload["body"]["steps"]
    assert worth["gram"]["v"] is upload["gram"]["v"]
    assert worth["head"]["w"] is upload["head"]["w"]
    assert (upload["body"]["w"].item(), current["body"]["w"].item()) == (3.0, 5.0)


def test_running_statistics_are_mixed():
    """A variance of 1 that a client reached from 10, moved to today's 1, would be -8."""
    upload, received, current = ({"buffers": {"var": torch.tensor([value])}} for value in (1.0, 10.0, 1.0))
    worth = reexpressed(upload, received, current, correction="move", scale=0.5)
    assert worth["buffers"]["var"].item() == 1.0


SCENARIO = {
    "task": {
        "dataset": "digits",
        "clients": 4,
        "partition": {"name": "dirichlet", "alpha": 1.0, "min_samples": 20},
        "public": {"samples": 50},
    },
    "model": {"name": "mlp", "hidden": [16]},
    "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.05}},
    "fleet": "home-lab",
    "server": {"rounds": 2},
}


@sampled(2, "method", mostly(METHODS, METHODS[::3]))
def test_fresh_uploads_are_merged_as_they_are(method):
    """At staleness 0 and scale 1 not a bit changes, for any method: the merge has what the client sent."""
    (draft,) = drafts({**SCENARIO, "method": method})
    planned = plan(draft, DataAccess())
    context = Context(planned, States())
    learner = Learner(context, Local(context, loop.Loop(), ahead=False))

    def merge(need):
        if not isinstance(need, Merge):
            return Feedback()
        assert set(need.scales) == {1.0}
        exchange = next(each for each in planned.learning.methods[0].exchanges if each.name == need.exchange)
        tasks = [context.group([job]).tasks[0] for job in need.merged]
        arrivals = [arrival(loop.work(task).upload, task.ctx, task.payload) for task in tasks]
        with torch.no_grad():
            expected = flatten(exchange.merge(context.versions[need.version - 1], arrivals))
        scalars = learner.merge(need)
        merged = flatten(context.versions[need.version])
        assert merged.keys() == expected.keys()
        assert all(torch.equal(merged[key], leaf) for key, leaf in expected.items())
        return Feedback(jobs=scalars)

    converse(simulate(planned.plan, lambda _: None), merge)
    assert max(context.versions) >= 2


def test_a_stale_policy_is_refused_where_an_exchange_cannot_be_stale(tmp_path, monkeypatch):
    """Before anything runs, naming both; the same method under synchronous rounds is planned."""
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "fresh.py").write_text(
        '"""FedAvg that refuses stale uploads."""\n'
        "from dataclasses import replace\n"
        "from edgefl.methods import fedavg\n"
        "class Params(fedavg.Params):\n"
        "    def build(self, site):\n"
        "        method = super().build(site)\n"
        "        exchanges = tuple(replace(one, stale=False) for one in method.exchanges)\n"
        "        return replace(method, exchanges=exchanges)\n",
        encoding="utf-8",
    )
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "hurried.py").write_text(
        '"""Stale."""\nfrom edgefl.world.policies import Policy\nclass Params(Policy):\n'
        "    def merges_stale(self):\n        return True\n    def serve(self, world):\n        yield\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    (draft,) = drafts({**SCENARIO, "method": "fresh", "server": {"policy": "hurried", "rounds": 2}})
    with pytest.raises(ScenarioError, match="'hurried' merges stale uploads, and fresh's exchange 'train'"):
        plan(draft, DataAccess(need="nothing"))
    (draft,) = drafts({**SCENARIO, "method": "fresh"})
    assert plan(draft, DataAccess(need="nothing")).plan.prices
