"""The figures of runs: which there are, in what order, and where each stands in a run's record."""

import pytest
from compared import NO_WASTE, rich, run_of, score, to_target, took

from edgefl.analysis.metrics import metrics, target_name
from edgefl.analysis.settings import dotted
from edgefl.analysis.values import NOT_REACHED
from edgefl.core.documents import document

BOTH = {name: score(0.9) for name in ("global", "personal")}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return rich(tmp_path_factory.mktemp("metrics") / "rich", sweep={"seed": [1, 2]}).summary()


def by_label(*runs):
    return {metric.label.strip(): metric for metric in metrics(runs)}


def test_a_key_is_the_place_of_its_figure(runs):
    """What ``--json`` has there is the figure, of every run; and every key is there once."""
    found = [metric for metric in metrics(runs) if metric.key != "path"]
    for run in runs:
        record = dotted(document(run))
        for metric in found:
            value = metric.of(run)
            if value is not None and value.mean is not None:
                assert record[metric.key] == value.mean, metric.label
    told = [metric.key for metric in found if any(metric.of(run) for run in runs)]
    assert len(set(told)) == len(told)
    assert {
        "accuracy.global.value", "virtual_s", "bytes", "flops", "joules", "target.global.t_s",
        "target.personal.joules", "wasted.bytes", "wasted.joules", "waiting_joules",
        "batteries.pixel-6.days", "costs.carbon.whole.server.amount",
        "costs.carbon.to_target.global.total.amount",
        "fairness", "host_s", "peak_bytes", "spent.late.jobs", "joules_by_phase.compute", "training_loss",
    } <= {*told}  # fmt: skip
    for start in ("measures.class-accuracy.figures.", "path.", "bytes_by_part."):
        assert any(key.startswith(start) for key in told), start


def test_what_was_not_reached_is_told_apart_from_what_does_not_apply():
    """A model that was not evaluated has no target to reach; where none reached it, that is said once."""
    run = to_target(run_of(accuracy=BOTH), None, personal=took(2.0))
    other = to_target(run_of(0.9), None)
    found = by_label(run, other)
    for what in ("time", "rounds", "bytes", "work", "energy"):
        assert found[f"{what} to 90%"].of(other) == NOT_REACHED
        assert found[f"{what} to 90%, personal"].of(other) is None
    assert found["time to 90%, personal"].of(run).mean == 2.0
    judged = [one.label for one in metrics([run, other]) if one.judged and one.model == "global"]
    assert judged == ["accuracy, global", "time to 90%"]


@pytest.mark.parametrize(
    ("target", "words"), [(0.9999999, "99.99999%"), (0.07, "7%"), (1.0, "100%"), (1e-5, "0.001%")]
)
def test_targets_are_told_with_all_their_digits(target, words):
    run = to_target(run_of(0.9), None, target)
    assert target_name([run]) == words
    assert target_name([run, to_target(run_of(0.9), None, 0.5)]) == "its target"
    assert target_name([run_of(0.9)]) == ""


def test_jobs_that_are_cut_after_an_evaluation_are_not_wasted_by_then(tmp_path):
    """At the end of the rounds the server evaluates, and then cuts what is in flight, in no time."""
    policy = {"server": {"participants": 3, "rounds": 3, "policy": {"name": "fedbuff", "buffer": 2}}}
    evaluate = {"evaluate": {"every": 3, "target": 0.01, "models": ["global"]}}
    run = rich(tmp_path / "cut", **policy, **evaluate).runs[0]
    found = run.summary()
    cut = [job for job in run.table("jobs") if job["ending"] == "cut"]
    assert {job["ended_s"] for job in cut} == {found.target.global_.t_s}
    assert found.target.global_.wasted == NO_WASTE
