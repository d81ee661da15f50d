"""Worker processes: the same bits as the loop, whatever their number and whichever is killed."""

from pathlib import Path

import pytest
import torch
from builders import learned
from nightly import sampled
from small import SKEWED, SMALL

import edgefl
from edgefl.compute.engines import processes, vmapped
from edgefl.core.event import TrainingJob
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.protocol import flatten
from edgefl.runs.context import Context
from edgefl.runs.group import drafts
from edgefl.runs.states import States

SCENARIO = {
    **SMALL,
    "task": {**SKEWED, "clients": 7},
    "method": {"name": "fedavg"},
    "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9}},
    "server": {"participants": 5, "rounds": 2},
}

# FedAvg whose client 1 does something first; ``{marker}`` is a file by which it knows that it did it.
METHOD = """
'''FedAvg with an accident.'''
import os, signal
from dataclasses import replace
from pathlib import Path
from edgefl.methods import fedavg


class Params(fedavg.Params):
    def build(self, site):
        method = super().build(site)
        (train,) = method.exchanges

        def start(payload, state, ctx):
            marker = Path({marker!r})
            if ctx.client == 1:
                {accident}
            return train.work.start(payload, state, ctx)

        return replace(method, exchanges=(replace(train, work=replace(train.work, start=start)),))
"""
TWICE = "n = len(list(marker.parent.glob('marker*'))); "
TWICE += "n < 2 and (marker.with_suffix(f'.{n}').touch(), os.kill(os.getpid(), signal.SIGKILL))"
ALWAYS = "os.kill(os.getpid(), signal.SIGKILL)"
RAISES = "raise ZeroDivisionError('client one is broken')"


def run(out: Path, engine, **changes):
    (one,) = edgefl.run({**SCENARIO, **changes}, engine=engine, out=out).runs
    return one


def bits(one) -> dict[str, bytes]:
    return {name: leaf.numpy().tobytes() for name, leaf in learned(one).items()}


@pytest.fixture
def accident(tmp_path, own):
    """Makes a method with an accident and gives its name."""
    marker = str(tmp_path / "marker")
    return lambda what: own("methods", "accident", METHOD.format(marker=marker, accident=what)).stem


@pytest.mark.usefixtures("preloaded_processes")
@sampled(1, ("method", "workers"), [("fedclassavg", 3), ("spherefed", 2)])
def test_the_number_of_workers_changes_no_bit(tmp_path, method, workers):
    changes = {
        "method": {"name": method},
        "model": [{"name": "mlp", "hidden": [32, 16]}, {"name": "mlp", "hidden": [16]}],
    }
    changes = changes if method == "fedclassavg" else {"method": changes["method"]}
    loop = run(tmp_path / "loop", "loop", **changes)
    assert bits(loop)
    one = run(tmp_path / "one", {"name": "processes", "workers": workers}, **changes)
    assert bits(one) == bits(loop)
    assert one.table("events") == loop.table("events")
    assert one.summary().event_hash == loop.summary().event_hash


@pytest.mark.usefixtures("preloaded_processes")
def test_workers_stack_clients_as_one_process_does(tmp_path):
    """Also where all begin with one state: SphereFed's head, before it was announced to each."""
    local = {"epochs": 1, "batch_size": 8, "optimizer": {"name": "sgd", "lr": 0.05}}
    task = {"dataset": "digits", "clients": 10, "partition": {"name": "dirichlet", "alpha": 1.0}}
    (draft,) = drafts({**SMALL, "method": "spherefed", "task": task, "local": local})
    context = Context(plan(draft, DataAccess(need="embedded")), States(tmp_path, 10**9))
    jobs = [TrainingJob(n, n, "train", 0, 0, 0, seed=n, steps=99) for n in range(10)]
    found = []
    for engine in (vmapped.Params(group=4), processes.Params(workers=1, inner="vmapped", group=4)):
        built = engine.build(context)
        outcomes = sorted(built.outcomes(jobs), key=lambda outcome: outcome.job.id)
        found.append([flatten(outcome.upload) for outcome in outcomes])
        built.close()
    for one, other in zip(*found, strict=True):
        assert all(torch.equal(leaf, other[key]) for key, leaf in one.items())


@pytest.mark.nightly
@pytest.mark.usefixtures("preloaded_processes")
def test_tensors_of_workers_are_aligned_as_in_the_driver(tmp_path):
    """Kernels round differently at odd addresses, such as those of tensors of 33 numbers in a file."""
    changes = {
        "method": {"name": "spherefed"},
        "model": {"name": "mlp", "hidden": [33]},
        "local": {"steps": 40, "batch_size": 1, "optimizer": {"name": "sgd", "lr": 0.05}},
    }
    loop = run(tmp_path / "loop", "loop", **changes)
    one = run(tmp_path / "one", {"name": "processes", "workers": 2}, **changes)
    assert bits(one) == bits(loop)


@pytest.mark.usefixtures("preloaded_processes")
def test_killed_workers_change_nothing(tmp_path, accident):
    """The jobs of workers that are killed, twice in a round, are done by others, with the same result."""
    changes = {"method": {"name": accident(TWICE)}, "server": {"participants": 7, "rounds": 1}}
    one = run(tmp_path / "one", {"name": "processes", "workers": 2}, **changes)
    assert len(list(tmp_path.glob("marker*"))) == 2
    assert one.status == "done"
    assert bits(one) == bits(run(tmp_path / "loop", "loop", **changes))


@pytest.mark.nightly
@pytest.mark.usefixtures("preloaded_processes")
def test_a_unit_whose_workers_die_fails_the_run(tmp_path, accident):
    """After three of them; the message names it, and not one that was lost with it."""
    changes = {"method": {"name": accident(ALWAYS)}, "server": {"participants": 7, "rounds": 1}}
    one = run(tmp_path / "one", {"name": "processes", "workers": 2}, **changes)
    assert one.status == "failed"
    assert "training client 1 in round 0 failed 3 times: the worker process died: " in one.reason
    assert "SIGKILL(-9)" in one.reason
    assert one.table("clients")


@pytest.mark.usefixtures("preloaded_processes")
def test_a_job_that_raises_fails_its_run_alone(tmp_path, accident):
    """With file and line as without workers, and a traceback in the run's directory; the sweep goes on."""
    sweep = {"runs": [{"method": accident(RAISES)}, {"method": "fedavg"}]}
    changes = {**SCENARIO, "server": {"participants": 7, "rounds": 1}, "sweep": sweep}
    given = {"name": "processes", "workers": 1}
    failed, done = edgefl.run(changes, engine=given, out=tmp_path / "runs").runs
    assert (failed.status, done.status) == ("failed", "done")
    first, *others = failed.reason.splitlines()
    assert first.endswith("ZeroDivisionError: client one is broken")
    assert others[-1] == "  trace: traceback.txt in the run's directory"
    file = tmp_path / "own" / "methods" / "accident.py"
    lines = file.read_text(encoding="utf-8").splitlines()
    line = 1 + next(nth for nth, text in enumerate(lines) if RAISES in text)
    assert f"where: {file}:{line}" in failed.reason
    assert failed.reason == edgefl.run(changes, engine="loop", out=tmp_path / "loop").runs[0].reason
    trace = (failed.folder / "traceback.txt").read_text(encoding="utf-8")
    assert "in start" in trace
    assert "ZeroDivisionError: client one is broken" in trace
    assert not (done.folder / "traceback.txt").exists()


@pytest.mark.nightly
def test_workers_import_what_the_driver_does(tmp_path, monkeypatch):
    """A file in the current directory does not replace a module."""
    (tmp_path / "random.py").write_text("raise ImportError('this is not the random that was meant')")
    monkeypatch.chdir(tmp_path)
    assert run(tmp_path / "one", {"name": "processes", "workers": 1}).status == "done"
