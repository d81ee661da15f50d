"""Settings that leave nothing to train on, or to evaluate, are refused before a run, at their line."""

import pytest
import torch

from edgefl.core.drafts import load
from edgefl.core.errors import UserError
from edgefl.data.augmentations import cutout, shift
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.runs.context import Context
from edgefl.runs.states import States

TEXT = """\
task:
  dataset: {dataset}
  clients: {clients}
  partition: {partition}
  augment: {augment}
model: mlp
method: {method}
fleet: home-lab
evaluate:
  {evaluate}
local: {{first_weights: {first}}}
"""
DEFAULTS = {"dataset": "digits", "clients": 4, "partition": "iid", "augment": "none", "evaluate": "on: test"}
DEFAULTS |= {"method": "fedavg", "first": "null"}


def planned(tmp_path, **changes):
    file = tmp_path / "mine.yaml"
    file.write_text(TEXT.format(**{**DEFAULTS, **changes}))
    return plan(load(file)[0], DataAccess(need="embedded"))


def refused(tmp_path, **changes):
    with pytest.raises(UserError) as caught:
        planned(tmp_path, **changes)
    return caught.value


@pytest.mark.parametrize(
    ("share", "says"), [("0.001", "not one of the images"), ("0.9999", "all of the images")]
)
def test_a_holdout_of_nothing_or_everything(tmp_path, share, says):
    """`check` refuses it as `run` does; one image of any class is enough."""
    error = refused(tmp_path, evaluate=f"on: holdout\n  holdout: {share}")
    assert says in error.what
    assert "mine.yaml:11" in error.where
    assert len(planned(tmp_path, evaluate="on: holdout\n  holdout: 0.005").learning.federation.test) > 0


@pytest.mark.parametrize(
    ("changes", "where", "says"),
    [
        ({"partition": "{name: classes-per-client, k: 11}"}, ":4", "11 of 10 classes"),
        ({"partition": "{name: dirichlet, min_samples: 400}"}, ":4", "too few"),
        ({"partition": "{name: shards, shard_size: 99999999999}"}, ":4", "shard_size"),
        ({"partition": "by-user"}, ":4", "digits does not say whose"),
        ({"augment": "{name: crop-flip, padding: 1000000000}"}, ":5", "padding"),
        ({"augment": "[shift, {name: cutout, sise: 3}]"}, "task.augment.1.sise", "unknown key 'sise'"),
    ],
)
def test_refusals_name_the_line(tmp_path, changes, where, says):
    """A partition knows no file; the message has its line all the same."""
    error = refused(tmp_path, **changes)
    assert says in error.what
    assert where in error.where


def augmented(tmp_path, augment):
    """The augmentation of a scenario's batches."""
    learning = planned(tmp_path, augment=augment).learning
    return learning.augment(learning.methods[0].exchanges[0].work.phases[0])


def test_augmentations_compose_in_order(tmp_path):
    """Drawn from one stream, each from what the one before it left; one alone is as without a list."""
    x = torch.rand(16, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    generator = torch.Generator().manual_seed(0)
    expected = shift.Params().augment(x, generator)
    expected = cutout.Params(size=3).augment(expected, generator)
    both = augmented(tmp_path, "[shift, none, {name: cutout, size: 3}]")
    assert torch.equal(both(x, torch.Generator().manual_seed(0)), expected)
    turned = augmented(tmp_path, "[{name: cutout, size: 3}, shift]")
    assert not torch.equal(turned(x, torch.Generator().manual_seed(0)), expected)
    alone = [augmented(tmp_path, one)(x, torch.Generator().manual_seed(0)) for one in ("shift", "[shift]")]
    assert torch.equal(*alone)
    assert augmented(tmp_path, "[none]") is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"augment": "cutout"}, "task.augment: leaves nothing of some samples of 8x8"),
        ({"augment": "{name: cutout, size: 4}"}, None),
        ({"dataset": "uci-har", "augment": "shift"}, "leaves nothing of some samples of 1x128"),
        ({"dataset": "uci-har", "augment": "contrastive"}, "task.augment: mirrors signals"),
        ({"dataset": "uci-har", "augment": "{name: contrastive, flip: false}"}, None),
        ({"first": "own", "method": "scaffold"}, "local.first_weights: scaffold's clients keep no weights"),
        ({"first": "own", "method": "fedper"}, None),
        ({"first": "alike"}, None),
    ],
)
def test_settings_that_do_nothing_good_are_told(tmp_path, changes, says):
    """Samples that an augmentation blanks, signals that it turns round, first weights that nobody keeps."""
    found = [
        one
        for one in planned(tmp_path, **changes).plan.assumed
        if one.startswith(("task.augment", "local.first_weights"))
    ]
    assert [says in one for one in found] == ([] if says is None else [True])


def test_clients_first_weights(tmp_path):
    """What a client that has not trained yet keeps: all clients' the same, or each its own; reproducible."""
    for first, alike in (("alike", True), ("own", False)):
        given = planned(tmp_path, method="local", first=first)
        one, other = (Context(given, States()) for _ in range(2))
        weights = [one.state(client)["head"]["weight"] for client in range(2)]
        assert torch.equal(*weights) == alike
        assert torch.equal(weights[1], other.state(1)["head"]["weight"])
