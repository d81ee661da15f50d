"""Plans that ran without training, as a store in memory has them, with scores that a test gives."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from edgefl.core.cost import Trace, Work
from edgefl.core.plan import Plan
from edgefl.planning.plan import Planned
from edgefl.runs.describing import describe
from edgefl.runs.run import RunInProgress
from edgefl.store.reader import Reader
from edgefl.store.writer import Store
from edgefl.trackers import Callbacks
from edgefl.world.needs import Feedback

_META = {
    "name": "run",
    "method": "none",
    "run_id": "",
    "seed": 0,
    "engine": "null",
    "assumed": [],
    "target": None,
    "evaluated_on": "test",
    "status": "done",
    "batch_size": 32,
}
_TRACE = Trace("train", {}, {}, Work(), (), Work(), {})


class Scored(RunInProgress):
    """A run whose n-th evaluation of the global model has the n-th of some accuracies, then the last one."""

    accuracies: Sequence[float] = ()

    def _evaluate(self, need) -> Feedback:
        self.scored = getattr(self, "scored", -1) + 1
        if self.accuracies:
            accuracy = self.accuracies[min(self.scored, len(self.accuracies) - 1)]
            totals = need.totals
            row = {"version": need.version, "round": need.round, "t_s": need.t_s, **totals.energy._asdict()}
            bytes_ = {"down_bytes": totals.down_bytes, "up_bytes": totals.up_bytes}
            scores = {"model": "global", "accuracy": accuracy, "loss": 1 - accuracy, "host_s": 0.0}
            self.store.add("evaluations", {**row, **bytes_, **scores})
        return Feedback()


@contextmanager
def recorded(plan_: Plan, accuracies: Sequence[float] = (), **meta: Any) -> Iterator[Reader]:
    """A reader of a plan's run; ``meta`` are facts of it."""
    priced = replace(plan_, prices=tuple(replace(one, traces=(_TRACE,)) for one in plan_.prices))
    store = Store.in_memory()
    least_s, most_s = plan_.scenario.server.policy.lasts_s()
    store.set_meta({**_META, "timed": least_s == most_s, **meta})
    store.write_plan(priced, {}, [0] * len(plan_.clients))
    run = Scored(priced, store, None, Callbacks())
    run.accuracies = accuracies
    run.to_end()
    try:
        yield store.reader()
    finally:
        store.abandon()


@contextmanager
def dry(planned: Planned, *evaluations: dict[str, Any]) -> Iterator[Reader]:
    """A reader of a planned run on the null engine, with some rows of evaluations."""
    store = Store.in_memory()
    describe(planned, store, "null")
    RunInProgress(planned.plan, store, None, Callbacks()).to_end()
    store.add("evaluations", *evaluations)
    yield store.reader()
    store.abandon()
