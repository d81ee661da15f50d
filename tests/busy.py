"""An asynchronous server whose clients are always at work, and what an engine is seen to do for it."""

from pathlib import Path

import pytest
from small import SKEWED

from edgefl.compute.job import Local
from edgefl.runs.states import States

# Merges the oldest ``merged`` jobs as soon as ``waiting`` are there; where ``lossy``, every fourth is lost on
# the way.
_POLICY = """
'''Always busy clients.'''
import simpy
from edgefl.core.event import Kind

from edgefl.world.policies import Policy


class Params(Policy):
    def merges_stale(self):
        return True

    def serve(self, world):
        (exchange,), inbox, came = world.due(), [], simpy.Store(world.env)

        def busy(client):
            while world.serving:
                (job,) = world.dispatch(exchange.exchange, client)
                yield world.ended([job])
                if {lossy} and job.job % 4 == 3:
                    yield world.discard([job], Kind.LOST)
                else:
                    inbox.append(job)
                    yield came.put(job)

        for client in world.clients:
            world.env.process(busy(client))
        while world.serving:
            while len(inbox) < {waiting}:
                yield came.get()
            yield from world.merge(exchange.exchange, [inbox.pop(0) for _ in range({merged})])
            yield from world.end_round()
"""
POLICIES = {
    "first": {"lossy": False, "waiting": 1, "merged": 1},
    "buffered": {"lossy": False, "waiting": 2, "merged": 2},
    "moody": {"lossy": True, "waiting": 3, "merged": 2},
}
SCENARIO = {
    "task": SKEWED,
    "model": {"name": "mlp", "hidden": [8]},
    # A small rate: at a larger one a rounding may carry a unit over its kink, and engines part for good.
    "local": {"steps": 4, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.01}},
    "fleet": "home-lab",
}


def policies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes the policies below a folder, where scenarios find them."""
    (folder / "policies").mkdir(parents=True)
    for name, settings in POLICIES.items():
        (folder / "policies" / f"{name}.py").write_text(_POLICY.format(**settings), encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(folder))


def watched(monkeypatch: pytest.MonkeyPatch) -> tuple[list[list[int]], list[int]]:
    """The jobs of every call of an engine, and those whose states are committed, as they come."""
    calls: list[list[int]] = []
    committed: list[int] = []
    outcomes, put = Local.outcomes, States.put

    def asked(self, jobs, **options):
        calls.append([job.id for job in jobs])
        return outcomes(self, jobs, **options)

    def noted(self, client, job, tree):
        committed.append(job)
        put(self, client, job, tree)

    monkeypatch.setattr(Local, "outcomes", asked)
    monkeypatch.setattr(States, "put", noted)
    return calls, committed
