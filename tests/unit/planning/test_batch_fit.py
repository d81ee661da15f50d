"""``batch_size: fit``: the largest batch that the fleet holds, and the refusals."""

import math

import pytest

from edgefl.core.errors import ScenarioError
from edgefl.planning.costs import MARGIN
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.runs.group import drafts

BOARD = """
title: a board with {memory} of memory
category: sbc
peak:
  fp32: {{value: 1 GFLOP/s, status: assumed, source: a test}}
  fp16: {{value: 2 GFLOP/s, status: assumed, source: a test}}
efficiency:
  dense: {{value: 1.0, status: assumed, source: a test}}
  depthwise: {{value: 1.0, status: assumed, source: a test}}
  elementwise: {{value: 1.0, status: assumed, source: a test}}
memory_bandwidth: {{value: 1 GB/s, status: assumed, source: a test}}
launch_overhead: {{value: 0 s, status: assumed, source: a test}}
memory: {memory_field}
reserved_memory: {{value: 0 B, status: assumed, source: a test}}
power:
  idle: {{status: unknown, source: a test}}
  active: {{status: unknown, source: a test}}
"""


@pytest.fixture
def fleet(tmp_path, monkeypatch):
    """A function that makes a fleet of boards with these memories; None is an unknown one."""
    (tmp_path / "devices").mkdir()
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))

    def make(*memories, dtype="fp32"):
        for place, memory in enumerate(memories):
            known = f"{{value: {memory}, status: assumed, source: a test}}"
            text = known if memory else "{status: unknown, source: a test}"
            path = tmp_path / "devices" / f"board-{place}.yaml"
            path.write_text(BOARD.format(memory=memory, memory_field=text), encoding="utf-8")
        boards = (f"board-{place}" for place in range(len(memories)))
        return {"members": [{"device": one, "link": "wifi-pi4", "dtype": dtype} for one in boards]}

    return make


def planned(fleet, clients=4, batch_size="fit", **changes):
    """The plan of a small perceptron on digits (1,437 samples, assumed balanced)."""
    scenario = {
        "task": {"dataset": "digits", "clients": clients, "partition": "iid"},
        "model": {"name": "mlp", "hidden": [8]},
        "method": "fedavg",
        "local": {"epochs": 1, "batch_size": batch_size},
        "fleet": fleet,
        **changes,
    }
    (draft,) = drafts(scenario)
    return plan(draft, DataAccess(need="nothing"))


def peak(batch_size, fleet):
    """The largest memory of any client at a batch size."""
    return int(planned(fleet, batch_size=batch_size).plan.price("train").demand.peak_bytes.max())


def test_one_more_sample_would_not_fit_with_its_margin(fleet):
    """The number found leaves the smallest board its margin, and the next one does not."""
    boards = fleet("50 kB", "1 MB")
    found = planned(boards)
    size = found.plan.scenario.local.size
    line = f"batch_size: fit is {size}, the largest that every device able to train can hold"
    assert line in found.plan.assumed
    assert 1 < size < 359
    assert found.plan.clients.admitted.all()
    assert peak(size, boards) * (1 + MARGIN) <= 50_000 < peak(size + 1, boards) * (1 + MARGIN)
    assert not any("more for libraries" in line for line in found.plan.assumed)
    assert found.resolved["scenario"]["local"]["batch_size"] == size
    assert found.run_id == planned(boards, batch_size=size).run_id


def test_a_plan_tells_who_has_no_margin(fleet):
    """A board that holds the peak exactly has none; one that holds a fifth more has; neither is refused."""
    need = peak(8, fleet("1 MB"))
    for memory, told in ((need, True), (need * 1.2, False)):
        found = planned(fleet(f"{math.ceil(memory)} B", "1 MB"), batch_size=8).plan
        assert found.clients.admitted.all()
        count = int((found.clients.device == 0).sum())
        line = f"memory of {count} clients (board-0) holds the traced peak, but not 20% more for libraries"
        assert (line in found.assumed) == told
    refused = planned(fleet(f"{need - 1} B"), batch_size=8).plan
    assert not refused.clients.admitted.any()
    assert not any("more for libraries" in line for line in refused.assumed)
    smallest = planned(fleet(f"{peak(1, fleet('1 MB'))} B")).plan
    assert (smallest.scenario.local.size, smallest.clients.admitted.all()) == (1, True)


@pytest.mark.parametrize(
    ("memory", "batch_size", "message"),
    [
        ("1 kB", "fit", "not even a batch of 1 fits"),
        (None, "fit", "no device that can do the work has a known memory"),
        ("1 MB", 0, "or be 'fit'"),
        ("1 MB", "fitting", "or be 'fit'"),
        ("1 MB", True, "or be 'fit'"),
    ],
)
def test_what_cannot_be_fitted_is_refused(fleet, memory, batch_size, message):
    with pytest.raises(ScenarioError, match=message):
        planned(fleet(memory), batch_size=batch_size)
