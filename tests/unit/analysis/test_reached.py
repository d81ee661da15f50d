"""What had been wasted by the evaluation that reached a target, reckoned job by job."""

import pytest
from compared import NO_WASTE, rich

from edgefl.store import read


def reckoned(reader, t_s, turn):
    jobs = [
        job
        for job in reader.rows("jobs")
        if job["ending"] != "merged" and (job["ended_s"], job["ended_turn"]) <= (t_s, turn)
    ]
    events = [event for event in reader.rows("events") if event["job"] in {job["job"] for job in jobs}]
    settled = sum(event["joules"] for event in events if event["kind"] == "settled")
    return (
        sum(job["down_bytes"] + job["up_bytes"] for job in jobs),
        sum(event["joules"] for event in events) - settled,
        sum(event["seconds"] for event in events),
    )


def test_waste_until_a_target_is_that_of_jobs_that_had_ended(tmp_path):
    """Reckoned from the events of jobs that had ended unmerged when the server evaluated; more later on."""
    run = rich(tmp_path / "late").runs[0]
    with read(run.folder) as reader:
        scores = [row for row in reader.rows("evaluations", "version") if row["model"] == "global"]
        turns = {
            row["version"]: row["turn"]
            for row in reader.query("SELECT * FROM server_events WHERE kind = 'evaluated'")
        }
        best = max(scores, key=lambda row: row["accuracy"])
        found = run.summary(best["accuracy"]).target.global_
        expected = reckoned(reader, best["t_s"], turns[best["version"]])
    assert (found.wasted.bytes, found.wasted.joules, found.wasted.client_s) == pytest.approx(expected)
    assert 0 < found.wasted.bytes < found.bytes
    assert found.wasted.joules < found.energy.joules


def test_jobs_that_are_cut_after_an_evaluation_are_not_wasted_by_then(tmp_path):
    """At the end of the rounds the server evaluates, and then cuts what is in flight, in no time."""
    policy = {"server": {"participants": 3, "rounds": 3, "policy": {"name": "fedbuff", "buffer": 2}}}
    evaluate = {"evaluate": {"every": 3, "target": 0.01, "models": ["global"]}}
    run = rich(tmp_path / "cut", **policy, **evaluate).runs[0]
    found = run.summary()
    cut = [job for job in run.table("jobs") if job["ending"] == "cut"]
    assert {job["ended_s"] for job in cut} == {found.target.global_.t_s}
    assert found.target.global_.wasted == NO_WASTE
