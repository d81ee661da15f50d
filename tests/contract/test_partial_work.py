"""Jobs of fewer steps than their exchange's phases take: every engine does so many, and no more."""

from dataclasses import replace

import pytest
import torch
from nightly import sampled
from small import SKEWED, SMALL

import edgefl
from edgefl.compute import loop
from edgefl.core import catalogue
from edgefl.core.event import TrainingJob
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.protocol import flatten
from edgefl.runs.context import Context
from edgefl.runs.group import drafts
from edgefl.runs.states import States

pytestmark = pytest.mark.usefixtures("preloaded_processes")

SCENARIO = {
    **SMALL,
    "task": {**SKEWED, "clients": 5, "partition": {**SKEWED["partition"], "min_samples": 40}},
    "local": {"epochs": 3, "batch_size": 16, "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9}},
    "server": {"rounds": 4},
}
ENGINES = {
    "loop": {},
    "vmapped": {},
    "processes": {"workers": 2},
    "processes of groups": {"workers": 2, "inner": "vmapped"},
}
# None, some, all.
UNEQUAL = (0, 2, 5, 8, 10**6)
CASES = {
    "shifted images": {"task": {**SCENARIO["task"], "augment": {"name": "shift", "pixels": 1}}},
    # At a higher rate rounding errors grow from step to step, in full jobs as well.
    "batch norm": {
        "model": {"name": "spherefed_convnet", "norm": "batch"},
        "local": {"epochs": 1, "batch_size": 16, "optimizer": {"name": "sgd", "lr": 0.01}},
    },
    "Adam": {"local": {"epochs": 2, "batch_size": 16, "optimizer": {"name": "adam", "lr": 0.003}}},
    "two views, bodies kept": {"method": "fedclassavg"},
}


def context_of(**changes) -> Context:
    (draft,) = drafts({**SCENARIO, **changes})
    return Context(plan(draft, DataAccess()), States())


def jobs_of(steps) -> list[TrainingJob]:
    return [TrainingJob(n, n, "train", 0, 0, 0, 100 + n, count) for n, count in enumerate(steps)]


def outcomes(context: Context, engine: str, jobs: list[TrainingJob]):
    name = engine.split(maxsplit=1)[0]
    module = catalogue.load("engines", name)
    built = module.Params.model_validate(ENGINES[engine]).build(context)
    try:
        return sorted(built.outcomes(jobs), key=lambda outcome: outcome.job.id)
    finally:
        built.close()


def assert_equal(one, other, **tolerance) -> None:
    for left, right in zip(one, other, strict=True):
        assert left.scalars == pytest.approx(right.scalars, rel=tolerance.get("rtol", 0))
        found, expected = flatten(left.upload), flatten(right.upload)
        assert found.keys() == expected.keys()
        for key, leaf in found.items():
            torch.testing.assert_close(leaf, expected[key], **{"rtol": 0, "atol": 0, **tolerance})


@pytest.mark.parametrize("engine", ["loop", "vmapped"])
def test_a_job_of_some_steps_is_training_of_so_many(engine):
    """A job of 7 steps under three epochs uploads what one under ``steps: 7`` does, bit for bit."""
    local = {key: value for key, value in SCENARIO["local"].items() if key != "epochs"}
    jobs = jobs_of([7] * 5)
    expected = outcomes(context_of(local={**local, "steps": 7}), engine, jobs)
    assert_equal(outcomes(context_of(), engine, jobs), expected)


@sampled(
    2,
    ("case", "engine"),
    [
        ("shifted images", "processes of groups"),
        *((case, "vmapped") for case in ("batch norm", "Adam", "two views, bodies kept")),
        ("two views, bodies kept", "processes"),
    ],
)
def test_unequal_jobs_are_as_on_the_loop(case, engine):
    """Clients of none, some and all steps, together; one without steps has no scalars."""
    context = context_of(**CASES[case])
    expected = outcomes(context, "loop", jobs_of(UNEQUAL))
    assert [bool(outcome.scalars) for outcome in expected] == [False, True, True, True, True]
    found = outcomes(context, engine, jobs_of(UNEQUAL))
    stacked = engine != "processes"
    assert_equal(found, expected, **({"rtol": 2e-3, "atol": 2e-4} if stacked else {}))


@pytest.mark.parametrize("engine", ["loop", "vmapped"])
def test_without_steps_a_client_sends_what_it_received(engine):
    context = context_of()
    received = flatten(context.builder.received(jobs_of([0])[0], context.versions[0]))
    for outcome in outcomes(context, engine, jobs_of([0] * 5)):
        assert outcome.finite
        assert all(torch.equal(leaf, received[key]) for key, leaf in flatten(outcome.upload).items())


@pytest.mark.parametrize("engine", ["loop", "vmapped"])
def test_phases_end_in_their_order(engine):
    """FedRep's heads are trained in full before a body's first step."""
    method = {"name": "fedrep", "head_epochs": 1}
    context = context_of(method=method, local={**SCENARIO["local"], "epochs": 1})
    first = [-(-count // 16) - (count % 16 == 1) for count in context.builder.samples]
    jobs = jobs_of([0, first[1] - 1, first[2], first[3] + 1, first[4] + 4])
    received = flatten(context.versions[0]["body"])
    moved = []
    for outcome in outcomes(context, engine, jobs):
        sent = flatten(outcome.upload["body"])
        moved.append(any(not torch.equal(leaf, received[key]) for key, leaf in sent.items()))
    assert moved == [False, False, False, True, True]


def test_a_run_trains_the_steps_that_its_jobs_say(tmp_path, monkeypatch):
    """Under a deadline some jobs stop early, and are in time: for their share of the FLOPs."""
    trained, work = {}, loop.work

    def counted(task):
        trained[task.job.id] = 0

        def batches(phase):
            for batch in task.batches(phase):
                trained[task.job.id] += 1
                yield batch

        return work(replace(task, batches=batches))

    monkeypatch.setattr(loop, "work", counted)
    policy = {"name": "deadline", "quantile": 0.5, "allow_partial": True}
    scenario = {**SCENARIO, "wire": {"up": "topk"}, "server": {"policy": policy, "rounds": 4}}
    (run,) = edgefl.run(scenario, engine="loop", out=tmp_path / "run").runs
    assert run.status == "done", run.reason
    rows = run.table("jobs")
    assert trained == {row["job"]: row["steps"] for row in rows if row["ending"] == "merged"}
    context = context_of()
    whole = context.planned.plan.price("train").demand
    kinds = context.planned.plan.clients.kind
    short = [row for row in rows if row["steps"] < whole.steps[kinds[row["client"]]]]
    assert 0 < len(short) < len(rows)
    for row in rows:
        kind = kinds[row["client"]]
        share = row["steps"] / whole.steps[kind]
        assert row["flops"] == pytest.approx(whole.flops[kind] * share, abs=1)
        assert row["ending"] == "merged"
