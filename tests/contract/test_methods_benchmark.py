"""``benchmarks/methods.py`` on digits: its rates, what it does again, and its costs."""

from __future__ import annotations

import sys
from concurrent.futures import Executor, Future
from pathlib import Path

import pytest

import edgefl

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import fedcka_rounds
import method_runs
import method_tables
import methods

NAMES = ["FedAvg", "local"]
DIGITS = method_runs.Scale(
    common={
        "task": {"dataset": "digits", "clients": 4},
        "model": {"name": "mlp", "hidden": [8]},
        "local": {"epochs": 1, "batch_size": 64, "optimizer": {"name": "sgd", "schedule": "cosine"}},
        "fleet": "home-lab",
        "server": {"participants": 2, "rounds": 3},
        "evaluate": {"every": 1},
    },
    partitions={"iid": "iid"},
    # At the third training diverges, so that the fourth is not tried.
    rates=(0.01, 0.3, 1e30, 1e31),
    seeds=(1, 2),
    tuning_rounds=1,
)


class Here(Executor):
    """Does work where it is submitted, and counts it."""

    def __init__(self) -> None:
        self.done = 0

    def submit(self, fn, /, *args, **kwargs):
        """The result, at once."""
        self.done += 1
        future = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The results of two methods."""
    path = tmp_path_factory.mktemp("methods") / "results.json"
    pool = Here()
    methods.work(method_runs.Results(DIGITS, path), NAMES, None, pool, 1)
    assert pool.done == 2 * (3 + 2)
    return path


def test_the_best_rate_is_chosen_and_no_rate_above_divergence_is_tried(file):
    """Each method's rate is that of the best accuracy on held-out data."""
    results = method_runs.Results(DIGITS, file)
    for method in NAMES:
        tuned = {task.rate: results.of(task) for task in results.tuning(method, "iid")}
        assert list(tuned) == [0.01, 0.3, 1e30]
        assert tuned[1e30]["curve"] == []
        assert results.rate(method, "iid") == max((0.01, 0.3), key=lambda rate: method_runs.last(tuned[rate]))


def test_costs_to_a_target_are_those_of_compare(file, tmp_path):
    """Seconds, bytes, joules and operations to a target are the summary's."""
    results = method_runs.Results(DIGITS, file)
    task, *_ = results.counted("FedAvg", "iid")
    kept = results.of(task)
    result = edgefl.run(task.scenario(DIGITS), engine="loop", out=tmp_path / "run", progress=False)
    for goal in {point[1] - 0.001 for point in kept["curve"]}:
        found = result.runs[0].summary(goal).target.global_
        expected = [found.round + 1, found.accuracy, found.t_s, found.bytes, found.energy.joules, found.flops]
        assert method_tables.reached(kept, goal) == pytest.approx(expected, abs=1e-3)


def test_rounds_are_timed_beside_fedavgs():
    """On digits: FedAvg's ratios are 1, and MOON's operations are those of two more forward passes."""
    few = {
        "task": {"dataset": "digits", "clients": 2},
        "model": {"name": "mlp", "hidden": [8, 8]},
        "server": {"rounds": 2},
        "evaluate": {"every": 2, "models": ["global"]},
    }
    found = {
        name: fedcka_rounds.measured({**fedcka_rounds.scenario(name, 2), **few}, None)
        for name in fedcka_rounds.PUBLISHED
    }
    rows = {row[0]: row[1:] for row in fedcka_rounds.rows([found])}
    assert list(rows) == list(fedcka_rounds.PUBLISHED)
    assert set(rows["fedavg"][1:]) == {"1.00 (1.00 to 1.00)", "1.00"}
    # Multiply-adds of a forward pass; a step takes them twice, and the gradients of later layers' inputs.
    forward, inputs = 64 * 8 + 8 * 8 + 8 * 10, 8 * 8 + 8 * 10
    assert rows["moon"][3] == f"{1 + 2 * forward / (2 * forward + inputs):.2f}"
    assert rows["fedcka"][-1] == "1.90"
