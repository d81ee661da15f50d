"""A plan's identity, and its learning part on its own."""

import pytest

from edgefl.core import catalogue
from edgefl.core.drafts import load
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan

RUN_IDS = {
    "fedavg": "a0b555aa478d2040",
    "spherefed": "b7803c03668661bb",
    "fedclassavg": "5a48757e7b0db1c8",
}


@pytest.fixture(scope="module")
def planned():
    """Quickstart's plans, by run."""
    drafts = load(catalogue.find("scenarios", "quickstart").path)
    return {draft.scenario.name: plan(draft, DataAccess(need="embedded")) for draft in drafts}


def test_run_ids_are_stable(planned):
    """They change only with a shipped scenario, profile or device file, or with a default."""
    assert {name: one.run_id for name, one in planned.items()} == RUN_IDS


def test_learning_knows_nothing_of_the_system(planned):
    """Neither the fleet nor the server reaches the processes that train."""
    for one in planned.values():
        learning = one.learning.spec.resolved()
        assert set(learning) == {"seed", "task", "model", "method", "local", "evaluate", "wire"}
        assert learning.items() <= one.resolved["scenario"].items()


def test_samples_that_nobody_gets_are_told():
    """20 clients have one or two shards of 30; a note tells how many samples are left, if any are."""
    by_size, by_client = ("{name: shards, shard_size: 30}", "{name: shards, shards_per_client: 3}")
    line = "task.partition: 551 of 1,151 training samples (48%) are left out"
    for partition, told in ((by_size, [line]), (by_client, [])):
        changes = ["sweep=null", f"task.partition={partition}", "evaluate.on=holdout"]
        (draft,) = load(catalogue.find("scenarios", "quickstart").path, changes)
        found = plan(draft, DataAccess(need="embedded")).plan.assumed
        assert [one for one in found if "left out" in one] == told
