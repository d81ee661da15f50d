"""A calibration's surroundings: sysfs trees, and processes that only say when they worked."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from edgefl.calibrate.energy import EnergySpan
from edgefl.calibrate.measure import Calls
from edgefl.calibrate.workloads import Computation, ForwardPass, MethodStep, OnnxInference, Operation, export
from edgefl.core.cost import Work

_TRACED: dict[object, Work] = {}


def trace_once(patch: pytest.MonkeyPatch) -> None:
    """Workloads are the same in all calibrations: their kernels are traced in the first one alone."""
    for kind in (Operation, MethodStep, ForwardPass, OnnxInference):
        patch.setattr(kind, "work", _traced_once(kind.work))


def _traced_once(trace: Callable[[Computation, int], Work]) -> Callable[[Computation, int], Work]:
    def work(computation: Computation, batch: int) -> Work:
        # An inference's file is in another folder each time.
        key = type(computation), repr(vars(computation) | {"file": None}), batch
        if key not in _TRACED:
            _TRACED[key] = trace(computation, batch)
        return _TRACED[key]

    return work


def files(root: Path, folder: str, **contents: object) -> Path:
    """Writes files of a folder under ``root``, and returns ``root``."""
    (root / folder).mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (root / folder / name).write_text(f"{content}\n", encoding="ascii")
    return root


class Worker:
    """Measuring processes; those for power work for 9 s of every 10, or for as long as they say."""

    def __init__(self, start_s: float = 0.0, *, takes_s: float = 0.0, refuses: bool = False) -> None:
        self._now_s, self._takes_s, self._refuses = start_s, takes_s, refuses
        self.at_last: Callable[[], object] = lambda: None

    def __call__(self, function, workloads, *_, **__):
        """See ``edgefl.core.fresh.call``."""
        assert not self._refuses, "it measured"
        if function is export:
            return None
        if len(workloads) > 1:
            self.at_last()
        span = self._span() if len(workloads) == 1 else EnergySpan(0, 0)
        return 200_000_000, [Calls([self._seconds(one)] * 4, 1.0, span) for one in workloads]

    def _span(self) -> EnergySpan:
        if self._takes_s:
            start_s = time.time()
            time.sleep(self._takes_s)
            return EnergySpan(start_s, time.time())
        self._now_s += 10
        return EnergySpan(self._now_s - 10, self._now_s - 1)

    def _seconds(self, workload) -> float:
        work = workload.computation.work(workload.batch)
        return work.flops / 50e9 + work.bytes / 10e9 + work.launches * 5e-6 + work.backwards * 1e-4
