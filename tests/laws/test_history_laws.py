"""Laws of what a run had spent at each evaluation, under every policy."""

import math

import numpy as np
import pytest
from fleets import fleets
from hypothesis import given
from recorded import recorded
from replayed import small

from edgefl.analysis.history import histories
from edgefl.analysis.run import Run
from edgefl.analysis.summary import summary
from edgefl.core.steps import batch_sizes
from edgefl.store.reader import read


@given(fleets())
def test_a_history_ends_in_the_summary(plan_):
    """What is evaluated when all is over has cost what the run cost; earlier evaluations cost no more."""
    with recorded(plan_, [0.2, 0.7, 0.4]) as reader:
        found, whole = histories(Run(reader)), summary(reader)
    assert found.keys() == whole.accuracy.keys()
    for model, history in found.items():
        assert history.accuracy[-1] == whole.accuracy[model].value
        assert history.round[-1] == whole.accuracy[model].round
        for name in ("version", "t_s", "bytes", "client_s", "epochs"):
            assert (np.diff(getattr(history, name)) >= 0).all()
        if history.t_s[-1] < whole.virtual_s:
            continue
        assert history.bytes[-1] == whole.down_bytes + whole.up_bytes
        assert history.client_s[-1] == pytest.approx(whole.client_s)
        assert (history.energy_known[-1], history.energy_clients[-1]) == whole.energy[1:]
        nothing = math.nan if whole.energy.energy_clients else 0.0
        joules = nothing if whole.energy.joules is None else whole.energy.joules
        assert history.joules[-1] == pytest.approx(joules, nan_ok=True)


@given(fleets())
def test_epochs_are_those_of_the_work_that_is_over(plan_):
    """Each job's steps, of as many samples as its client's mean batch has, over all clients' samples."""
    with recorded(plan_, [0.5]) as reader:
        found, jobs = histories(Run(reader)), reader.rows("jobs")
    samples = plan_.clients.samples.tolist()
    mean = [count / max(1, len(batch_sizes(count, plan_.scenario.local.size))) for count in samples]
    for history in found.values():
        for t_s, epochs in zip(history.t_s, history.epochs, strict=True):
            over = [job for job in jobs if job["worked_s"] is not None and job["worked_s"] <= t_s]
            seen = math.fsum(job["steps"] * mean[job["client"]] for job in over)
            assert epochs == pytest.approx(seen / sum(samples))


def test_epochs_are_those_of_training(tmp_path):
    """Two rounds of two epochs of all: passes that measure, or are on public images, do not count."""
    given = {"local__epochs": 2, "server__participants": 8, "server__until": {"rounds": 2}}
    given |= {"method": "ktpfl", "task__public": {"samples": 40}}
    with read(small(tmp_path / "run", evaluate__every=1, **given).folder) as reader:
        for history in histories(Run(reader)).values():
            assert history.epochs[-1] == pytest.approx(4)
        samples = [
            row["samples"] for row in reader.query("SELECT samples FROM fleet JOIN kinds USING (kind)")
        ]
        assert sum(job["steps"] for job in reader.rows("jobs")) > 4 * sum(
            len(batch_sizes(count, 32)) for count in samples
        )
