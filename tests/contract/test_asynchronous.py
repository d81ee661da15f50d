"""Asynchronous servers: jobs in flight are trained ahead, in groups, and nobody sees it."""

import busy
import pytest
from builders import learned
from nightly import sampled
from small import alike
from toys import written

import edgefl
from edgefl.core.errors import ScenarioError
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.runs.group import drafts

pytestmark = pytest.mark.usefixtures("preloaded_processes")

# A low rate: FedClassAvg's third term makes a hundred times as much of a rounding within a few epochs.
SCENARIO = {
    **busy.SCENARIO,
    "model": {"name": "mlp", "hidden": [12]},
    "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.01}},
}


@pytest.fixture
def seen(tmp_path, monkeypatch):
    """The jobs of every call of an engine, and the jobs whose states were committed."""
    busy.policies(tmp_path / "own", monkeypatch)
    return busy.watched(monkeypatch)


@sampled(1, ("method", "policy"), [("fedavg", "buffered"), ("fedclassavg", "moody")])
def test_training_ahead_changes_neither_events_nor_results(tmp_path, method, policy, seen):
    """The loop trains a job when it is merged, vmapped all that are in flight; both learn the same."""
    calls, committed = seen
    found = {}
    for engine in ("loop", "vmapped"):
        scenario = {**SCENARIO, "method": method, "server": {"policy": policy, "rounds": 9}}
        (run,) = edgefl.run(scenario, engine=engine, out=tmp_path / engine).runs
        assert run.status == "done", run.reason
        events = run.table("events")
        merges = [row for row in events if row["kind"] == "merged"]
        found[engine] = events, learned(run), list(calls), sorted(committed)
        assert len(merges) == 9
        calls.clear()
        committed.clear()
    (events, expected, one_by_one, kept), (same, got, ahead, also) = found["loop"], found["vmapped"]
    assert same == events
    alike(got, expected, 1e-3, 1e-4)

    merged = sum(map(len, one_by_one))
    assert merged == 9 * busy.POLICIES[policy]["merged"]
    assert max(map(len, ahead)) > 2
    # What was trained ahead is a client's own state only from its merge on.
    assert also == kept
    assert len(kept) == (merged if method == "fedclassavg" else 0)


def test_late_work_is_in_the_last_scores(tmp_path, monkeypatch):
    """Every client that worked is scored with what it trained, merged or not."""
    written(
        tmp_path / "own",
        monkeypatch,
        """
        def serve(self, world):
            jobs = world.dispatch("train", world.clients)
            yield world.ended(jobs)
            yield from world.merge("train", jobs[:1])
            yield world.discard(jobs[1:], Kind.LATE)
            yield from world.end_round()
        """,
    )
    scenario = {**SCENARIO, "method": "local", "server": {"policy": "written", "rounds": 1}}
    (run,) = edgefl.run(scenario, engine="vmapped", out=tmp_path / "run").runs
    assert run.status == "done", run.reason
    (scores,) = run.table("evaluations")
    assert scores["untrained"] == 0
    assert all(row["scalars"] for row in run.table("jobs"))


def test_a_merge_of_nothing_keeps_the_model(tmp_path, monkeypatch):
    """When nobody arrived in time, say: the version counts, and holds what the one before it held."""
    serve = """
        def serve(self, world):
            while world.serving:
                yield from world.merge("train", [])
                yield from world.end_round()
        """
    written(tmp_path / "own", monkeypatch, serve)
    scenario = {**SCENARIO, "method": "fedavg", "server": {"policy": "written", "rounds": 2}}
    scenario["evaluate"] = {"every": 1, "models": ["global"]}
    (run,) = edgefl.run(scenario, engine="loop", out=tmp_path / "run").runs
    assert run.status == "done", run.reason
    first, second = run.table("evaluations")
    assert first["loss"] == second["loss"]
    assert [row["jobs"] for row in run.table("merges")] == [0, 0]


MORE_EXCHANGES = '''
"""FedAvg with another exchange."""
from dataclasses import replace
from edgefl.methods import fedavg


class Params(fedavg.Params):
    def build(self, site):
        method = super().build(site)
        (train,) = method.exchanges
        return replace(method, exchanges=(train, replace(train, name="report")))
'''


def test_a_method_that_needs_rounds_is_refused_without_them(own):
    """Before the run, with the reason; policies with rounds plan it."""
    own("methods", "more", MORE_EXCHANGES.lstrip())
    for policy in ("semi-sync", "fedasync", "fedbuff", "overselect"):
        settings = {"name": "semi-sync", "interval": "100 ms"} if policy == "semi-sync" else policy
        server = {"policy": settings, "rounds": 2, "participants": 2}
        (draft,) = drafts({**SCENARIO, "method": "more", "server": server})
        if policy == "overselect":
            assert plan(draft, DataAccess(need="nothing")).plan.prices
            continue
        needs = f"'{policy}' has no rounds, and more needs the exchanges train, report in each"
        with pytest.raises(ScenarioError, match=needs):
            plan(draft, DataAccess(need="nothing"))
