"""What had been wasted by the evaluation that reached a target, reckoned job by job."""

from compared import NO_WASTE, rich


def test_jobs_that_are_cut_after_an_evaluation_are_not_wasted_by_then(tmp_path):
    """At the end of the rounds the server evaluates, and then cuts what is in flight, in no time."""
    policy = {"server": {"participants": 3, "rounds": 3, "policy": {"name": "fedbuff", "buffer": 2}}}
    evaluate = {"evaluate": {"every": 3, "target": 0.01, "models": ["global"]}}
    run = rich(tmp_path / "cut", **policy, **evaluate).runs[0]
    found = run.summary()
    cut = [job for job in run.table("jobs") if job["ending"] == "cut"]
    assert {job["ended_s"] for job in cut} == {found.target.global_.t_s}
    assert found.target.global_.wasted == NO_WASTE
