"""Settings that leave nothing to train on, or to evaluate, are refused before a run, at their line."""

import pytest

from edgefl.core.drafts import load
from edgefl.core.errors import UserError
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan

TEXT = """\
task:
  dataset: digits
  clients: {clients}
  partition: {partition}
  augment: {augment}
model: mlp
method: fedavg
fleet: home-lab
evaluate:
  {evaluate}
"""
DEFAULTS = {"clients": 4, "partition": "iid", "augment": "none", "evaluate": "on: test"}


def _refused(tmp_path, **changes):
    file = tmp_path / "mine.yaml"
    file.write_text(TEXT.format(**{**DEFAULTS, **changes}))
    with pytest.raises(UserError) as caught:
        plan(load(file)[0], DataAccess(need="embedded"))
    return caught.value


@pytest.mark.parametrize(
    ("share", "says"),
    [("1.0e-9", "not one image"), ("0.001", "not one image"), ("0.9999", "all images")],
)
def test_a_holdout_of_nothing_or_everything(tmp_path, share, says):
    """`check` refuses it as `run` does."""
    error = _refused(
        tmp_path, evaluate=f"{{on: holdout, holdout: {share}}}".strip("{}").replace(", ", "\n  ")
    )
    assert says in error.what
    assert "mine.yaml:11" in error.where
    assert "holdout" in error.hint


def test_a_small_holdout_of_some(tmp_path):
    """What is one image of any class is allowed."""
    file = tmp_path / "mine.yaml"
    file.write_text(TEXT.format(**{**DEFAULTS, "evaluate": "on: holdout\n  holdout: 0.005"}))
    assert len(plan(load(file)[0], DataAccess(need="embedded")).learning.federation.test) > 0


@pytest.mark.parametrize(
    ("changes", "line", "says"),
    [
        ({"clients": 1439}, 3, "1438 training samples among 1439 clients"),
        ({"partition": "{name: classes-per-client, k: 11}"}, 4, "11 of 10 classes"),
        ({"partition": "{name: dirichlet, min_samples: 400}"}, 4, "too few"),
        ({"partition": "{name: shards, shard_size: 1000}"}, 4, "too few"),
        ({"partition": "{name: shards, shard_size: 99999999999}"}, 4, "shard_size"),
        ({"augment": "{name: crop-flip, padding: 1000000000}"}, 5, "padding"),
        ({"augment": "{name: shift, pixels: 99999999999}"}, 5, "pixels"),
        ({"augment": "{name: cutout, size: 99999999999}"}, 5, "size"),
    ],
)
def test_refusals_name_the_line(tmp_path, changes, line, says):
    """A partition knows no file; the message has its line all the same."""
    error = _refused(tmp_path, **changes)
    assert says in error.what
    assert f"mine.yaml:{line}" in error.where
