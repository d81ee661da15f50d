"""What a measuring process does; no test asserts a wall-clock time."""

import pytest
from graphs import floats, write

from edgefl.core import fresh
from edgefl.core.errors import UserError
from edgefl.export.timing import (
    LEAST_RUNS,
    Measurement,
    operators,
    profile,
    time_onnx,
    timed,
)
from edgefl.show.onnx import OperatorTime

GEMM = [("Gemm", ["x", "w"], ["y"])]


@pytest.fixture
def model(tmp_path):
    return write(tmp_path / "m.onnx", GEMM, {"w": floats(6, 4)}, ["batch", 6])


class Clock:
    """A clock that moves on request."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        """The time."""
        return self.now

    def spend(self):
        """A call of one second."""
        self.now += 1.0


@pytest.mark.parametrize(("budget_s", "calls"), [(1e9, (20, 300)), (40, (10, 40)), (0.5, (3, LEAST_RUNS))])
def test_a_budget_stops_a_measurement(budget_s, calls):
    """By default 20 to warm up, in a quarter of the budget, and 300 that count; a few are always made."""
    clock = Clock()
    found = timed(clock.spend, Measurement("", budget_s=budget_s), clock)
    assert (found.warmup, len(found.seconds)) == calls
    assert set(found.seconds) == {1.0}


def test_operators_of_a_profile():
    """The median of the later calls, the slowest first; other events are ignored."""
    events = [{"cat": "Session", "name": "model_run", "dur": 99}]
    for took in (900, 30, 20, 20):
        events.append(_event("conv", "Conv", took))
        events.append(_event("relu", "Relu", 5))
    assert operators(events) == [
        OperatorTime("conv", "Conv", pytest.approx(20e-6), pytest.approx(0.8)),
        OperatorTime("relu", "Relu", pytest.approx(5e-6), pytest.approx(0.2)),
    ]


def _event(name, op, took):
    return {"cat": "Node", "name": f"{name}_kernel_time", "dur": took, "args": {"op_name": op}}


@pytest.mark.nightly
def test_a_fresh_process(model):
    """Timings and operators come back from it, and so does the error of a model that does not run."""
    found = fresh.call(time_onnx, Measurement(str(model), runs=12))
    assert (found.runtime.startswith("onnxruntime"), found.runs) == (True, 12)
    assert min(found.load_s, found.peak_bytes) > 0
    assert sum(one.share for one in fresh.call(profile, Measurement(str(model)))) == pytest.approx(1)
    model.write_bytes(b"broken")
    with pytest.raises(UserError, match="cannot run the model"):
        fresh.call(time_onnx, Measurement(str(model)))
