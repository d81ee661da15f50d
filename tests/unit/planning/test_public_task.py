"""``task.public``: images that the server and every client have, with files and without."""

import pytest
import torch

from edgefl.core.errors import UserError
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.planning.profile import ProfileOptions, profile
from edgefl.runs.group import drafts

SCENARIO = {
    "name": "open",
    "seed": 3,
    "task": {"dataset": "digits", "clients": 8},
    "model": {"name": "mlp", "hidden": [8]},
    "method": "ktpfl",
    "fleet": "home-lab",
    "server": {"rounds": 2},
}
SEVENTY = "task.public.samples=70"


def planned(*overrides, need="embedded"):
    return plan(drafts(SCENARIO, overrides)[0], DataAccess(need=need))


def test_a_method_is_told_of_them():
    """The announcement sends them as bytes, and predictions have a row for each."""
    found = planned(SEVENTY, "task.partition={name: dirichlet, alpha: 0.3}").plan
    announce, train = found.prices
    (first,), (each,) = announce.traces, train.traces
    assert dict(first.down) == {"public": 70 * 64}
    assert dict(first.up) == dict(each.up) == {"predictions": 70 * 10 * 4}
    assert len(set(found.clients.samples.tolist())) > 1
    assert {tuple(steps[0].items()) for steps in announce.taken} == {((32, 2), (6, 1))}
    distil, own, predict = zip(*train.taken, strict=True)
    assert {tuple(steps.items()) for steps in (*distil, *predict)} == {((32, 2), (6, 1))}
    assert len({tuple(steps.items()) for steps in own}) > 1


def test_they_are_missing_from_no_total():
    """What is public is no client's, and not said to be left out; a profile shares out the rest."""
    found = planned(SEVENTY)
    assert found.plan.clients.samples.sum() == 1438 - 70
    assert not any("left out" in line for line in found.plan.assumed)
    (draft,) = drafts(SCENARIO, [SEVENTY])
    shown = profile(draft, ProfileOptions(devices=["laptop-cpu"]))
    assert (
        shown.assumed[0] == "every client has 171 samples, an even share of digits without the public images"
    )
    named = planned("task.public={samples: 70, dataset: digits}")
    assert torch.equal(found.learning.federation.public_x, named.learning.federation.public_x)
    assert found.plan.clients.samples.tolist() == named.plan.clients.samples.tolist()


@pytest.mark.parametrize(
    ("overrides", "what", "where"),
    [
        ([], "ktpfl works on public data, and the task has none", "key 'task.public'"),
        (
            ["task.public={samples: 70, dataset: mnist}"],
            "the images of mnist are 1x28x28, and those of digits 1x8x8",
            "task.public={samples: 70, dataset: mnist}, key 'task.public.dataset'",
        ),
        (["task.public.samples=1431"], "1,431 public images cannot be drawn from 1,438", SEVENTY[:-3]),
        ([SEVENTY, "task.samples=30"], "'samples' leaves none", "task"),
        (["task.public={dataset: mnist}"], "'samples' is missing", "task.public"),
    ],
)
def test_what_cannot_be_is_refused(overrides, what, where):
    with pytest.raises(UserError) as caught:
        planned(*overrides)
    assert what in caught.value.what
    assert where in caught.value.where
