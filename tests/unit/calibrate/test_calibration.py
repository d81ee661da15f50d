"""A calibration with simulated processes: the file, its numbers, and what is refused."""

import pytest
from calibrated import trace_once

from edgefl.calibrate import Effort, calibrate
from edgefl.calibrate.energy import EnergySpan
from edgefl.calibrate.measure import Calls
from edgefl.calibrate.suites import methods
from edgefl.calibrate.workloads import FIT, HELD_OUT, export
from edgefl.core.devices.roofline import Roofline
from edgefl.core.sourced import sourced
from edgefl.planning.fleets import device

# A machine that computes at 50 GFLOP/s, streams 10 GB/s, and takes 5 us a kernel and 0.1 ms a backward pass.
FLOPS_S, BYTES_S, LAUNCH_S, BACKWARD_S = 50e9, 10e9, 5e-6, 1e-4
SHORT = Effort(repeats=2, kernel_s=0.0, step_s=0.0, inference_s=0.1)


class Processes:
    """Times as the measuring processes would report them, for a machine that is a roofline."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, int, int]] = []

    def __call__(self, function, workloads, *_, threads):
        """See ``edgefl.core.fresh.call``."""
        self.calls.append((function, len(workloads), threads))
        if function is export:
            return None
        return 200_000_000, [self._calls(one) for one in workloads]

    def _calls(self, workload):
        work = workload.computation.work(workload.batch)
        each = [max(kernel.flops / FLOPS_S, kernel.bytes / BYTES_S) * count for kernel, count in work]
        overhead_s = work.launches * LAUNCH_S + work.backwards * BACKWARD_S
        return Calls([sum(each) + overhead_s] * 4, share=1.0, span=EnergySpan(0, 1))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder on EDGEFL_PATH."""
    trace_once(monkeypatch)
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.nightly
def test_the_file_is_read_back_and_predicts_the_machine(folder):
    """Predictions match a machine that is a roofline; every number has a source; methods are held out."""
    processes, seen = Processes(), []
    found = calibrate(
        "mine", run=processes, effort=SHORT, threads=2, progress=lambda *args: seen.append(args)
    )
    assert found.file == str(folder / "devices" / "mine.yaml")
    assert found.next == "edgefl profile quickstart --device mine"
    board = device("mine")
    assert isinstance(board, Roofline)
    assert board.inference.runtime.startswith("onnxruntime ")
    assert board.backward_overhead.value == pytest.approx(BACKWARD_S, rel=0.05)
    for row in (*found.steps, *found.inference, *found.methods):
        assert abs(row.error) < 0.05, row
    assert {row.network for row in found.steps if row.use == HELD_OUT} == {
        "mobilenet-v2 at 32, batch 4",
        "mobilenet-v2 at 32, batch 16",
        "spherefed-convnet at 32, batch 8",
        "spherefed-convnet at 32, batch 32",
    }
    assert [(done, total) for _, done, total in seen] == [(nth, len(seen)) for nth in range(len(seen))]
    assert len(seen) == len(processes.calls)
    # The fit sees FedAvg alone; the others' steps are compared to it on each network.
    assert {one.computation.method for one in methods() if one.use == FIT} == {"fedavg"}
    compared = ["fedavg", "fedprox", "fedclassavg", "spherefed", "spherefed: calibrate"]
    assert [row.method for row in found.methods] == 2 * compared
    assert all((row.measured == 1) == (row.method == "fedavg") for row in found.methods)
    numbers = dict(sourced(board))
    assert numbers["memory"].status == numbers["reserved_memory"].status == "measured"
    for name, number in numbers.items():
        if name.startswith(("peak", "efficiency", "memory_bandwidth", "launch", "backward", "half_side")):
            assert number.status in {"measured", "derived"}
            assert "torch" in number.source
            assert "2 threads, median of 2 fresh processes" in number.source
