"""One calibration's processes, how long they measure, and how far they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edgefl.calibrate.measure import Timing, measured
from edgefl.calibrate.record import Circumstances
from edgefl.calibrate.workloads import Workload, export
from edgefl.core.fresh import Caller

Watch = Callable[[str, int, int], None]
"""(what is next, how much is done, of how much) -> None."""


@dataclass(frozen=True)
class Effort:
    """How long a calibration takes.

    Attributes:
        repeats: processes a workload.
        kernel_s: seconds to time each kernel in each of them.
        step_s: likewise for a network's training step.
        inference_s: likewise for a network's inference; 0 leaves inference out.
        batches: the batch sizes of a measured device's curves.
    """

    repeats: int = 3
    kernel_s: float = 0.1
    step_s: float = 1.0
    inference_s: float = 0.2
    batches: tuple[int, ...] = (4, 8, 16, 32)


FULL = Effort()
QUICK = Effort(repeats=1, kernel_s=0.0, step_s=0.0, inference_s=0.0, batches=(2, 3, 4))


class Session:
    """Starts processes, and tells how far it is.

    Attributes:
        effort: how long to measure.
        how: under what circumstances.
    """

    def __init__(self, effort: Effort, threads: int, run: Caller, watch: Watch) -> None:
        self.effort = effort
        self.how = Circumstances.now(threads, effort.repeats)
        self._threads = threads
        self._run = run
        self._watch = watch
        self._done = self._total = 0

    def expect(self, processes: int) -> None:
        """Says how many processes there will be."""
        self._total = processes

    def timed(
        self, groups: Sequence[Sequence[Workload]], budgets: Sequence[float]
    ) -> tuple[list[Timing], int]:
        """See ``measured``."""
        return measured(
            groups,
            repeats=self.effort.repeats,
            budgets=budgets,
            threads=self._threads,
            run=self._run,
            watch=self._next,
        )

    def export(self, workloads: Sequence[Workload]) -> None:
        """Makes the ONNX files that the workloads name."""
        self._next("export to ONNX")
        files = {one.settings["file"]: one for one in workloads}
        self._run(export, list(files.values()), threads=1)

    def _next(self, label: str) -> None:
        self._watch(label, self._done, self._total)
        self._done += 1
