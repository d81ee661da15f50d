"""``task.samples``: clients with numbers of samples and no data, for the clock alone."""

import json

import numpy as np
import pytest

from edgefl.core.errors import ScenarioError
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.runs.dry import dry_run
from edgefl.runs.group import drafts, run
from edgefl.store.plans import read_plan
from edgefl.store.reader import read

SCENARIO = {
    "name": "many",
    "seed": 3,
    "task": {"dataset": "digits", "clients": 500},
    "model": {"name": "mlp", "hidden": [8]},
    "method": "fedavg",
    "fleet": "home-lab",
    "server": {"participants": 10, "rounds": 3},
}
LOGNORMAL = "task.samples={name: lognormal, mu: 4, sigma: 1}"


def planned(*overrides):
    return plan(drafts(SCENARIO, overrides)[0], DataAccess(need="embedded"))


@pytest.mark.nightly
def test_a_number_is_every_clients_and_a_distribution_drawn_for_each():
    """Whole numbers, at least 1, spread as the sampler says; whatever others draw, but by the seed."""
    found = planned("task.samples=60")
    assert found.plan.clients.samples.tolist() == [60] * found.learning.federation.clients == [60] * 500
    assert "numbers of samples and no data" in found.plan.assumed[0]
    samples = planned(LOGNORMAL).plan.clients.samples
    assert samples.dtype == np.int64
    assert samples.min() >= 1
    # The standard error of the logarithm's mean is 1 / sqrt(500) = 0.045.
    assert abs(np.log(samples).mean() - 4) < 0.19
    assert abs(np.log(samples).std() - 1) < 0.19
    small = planned("task.samples={name: uniform, low: 0.01, high: 0.4}").plan.clients.samples
    assert set(small.tolist()) == {1}
    few, other = (
        planned(LOGNORMAL, "task.clients=20", f"seed={seed}").plan.clients.samples for seed in (3, 4)
    )
    assert samples[:20].tolist() == few.tolist() != other.tolist()


def test_the_clock_runs(tmp_path):
    """On the null engine, which auto is then, and in a dry run; the plan read back has the numbers."""
    (one,) = run(SCENARIO, overrides=[LOGNORMAL], engine="auto", out=tmp_path / "run").runs
    assert (one.status, one.reason) == ("done", "")
    path = tmp_path / "many.json"
    path.write_text(json.dumps(SCENARIO), encoding="utf-8")
    (forecast,) = dry_run(str(path), [LOGNORMAL, "engine=auto"])
    jobs = one.table("jobs")
    assert len(jobs) == 30
    assert max(row["ended_s"] for row in jobs) == forecast.summary.virtual_s > 0
    with read(tmp_path / "run") as reader:
        back = read_plan(reader)
        assert reader.meta["engine_asked"] == {"name": "null"}
    assert back.clients.samples.tolist() == planned(LOGNORMAL).plan.clients.samples.tolist()
    assert {row["test_samples"] for row in one.table("clients")} == {0}
    for engine in ("loop", "vmapped"):
        with pytest.raises(ScenarioError, match="clients have no data") as caught:
            run(SCENARIO, overrides=["task.samples=60"], engine=engine, out=tmp_path / "out")
        assert "null" in caught.value.hint
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("0", "whole number of at least 1"),
        ("zipf", "unknown sampler 'zipf'"),
        ("{name: pareto, tail: 0.05}", "the most is 10000000"),
    ],
)
def test_what_is_no_number_of_samples_is_refused(value, says):
    with pytest.raises(ScenarioError, match=says) as caught:
        planned(f"task.samples={value}")
    assert "task.samples" in caught.value.where
