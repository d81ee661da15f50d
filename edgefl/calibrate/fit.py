"""From times to a roofline's numbers: a robust least-squares fit.

The model is that of ``edgefl.core.devices.roofline``; a test compares the two. The bandwidth comes directly
from a copy. The other numbers minimise the differences between the logarithms of predicted and measured
seconds over all workloads that the fit may use, with a loss that grows linearly for large differences
(``soft_l1``), so that one kernel the model cannot describe hardly moves it. A network's step weighs as much
as several kernels, since steps are what the device will price.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from edgefl.core.arrays import Floats
from edgefl.core.cost import DEPTHWISE, ELEMENTWISE, Work

# The difference of logarithms from which the loss is linear.
_LINEAR_FROM = 0.2
STEP_WEIGHT = 4.0
# Dense and depthwise FLOP/s, the elementwise share of the bandwidth, seconds of a launch and of a backward
# pass, the half side.
_START = (5e10, 5e9, 0.5, 5e-6, 2e-5, 8.0)
# A rate so high that memory bounds every depthwise kernel has no slope to come back by: several are tried.
_DEPTHWISE_STARTS = (5e8, 5e9, 5e10)
_LEAST = (1e6, 1e5, 0.005, 1e-8, 1e-8, 0.01)
_MOST = (1e15, 1e14, 1.0, 1e-2, 1e-1, 1000.0)


@dataclass(frozen=True)
class TimedWork:
    """A workload's kernels and the seconds of one call, and its weight in the fit relative to the others'."""

    work: Work
    seconds: float
    weight: float = 1.0


@dataclass(frozen=True)
class RooflineFit:
    """The fit's result.

    Attributes:
        dense: FLOP/s of products without a short side.
        depthwise: FLOP/s of depthwise convolutions.
        elementwise: the share of the bandwidth that elementwise kernels reach.
        launch_s: seconds to launch a kernel.
        backward_s: seconds that a backward pass takes beside its kernels; 0 if no workload has one.
        half_side: the shortest side at which a dense product reaches half of ``dense``.
        spread: the median over the workloads of how far predicted and measured seconds differ, as a share.
        workloads: how many were fitted to.
    """

    dense: float
    depthwise: float
    elementwise: float
    launch_s: float
    backward_s: float
    half_side: float
    spread: float
    workloads: int


class _Table:
    """The observations' kernels as columns."""

    def __init__(self, observations: Sequence[TimedWork]) -> None:
        columns = np.array(list(_rows(observations)), dtype=np.float64).T
        self._flops, self._bytes, self._side, self._count = columns[:4]
        self._depthwise, self._elementwise = columns[4:6].astype(bool)
        self._backward, self._place = columns[6], columns[7].astype(np.int64)

    @property
    def backwards(self) -> float:
        """The backward passes of all observations."""
        return float(self._backward @ self._count)

    def seconds(self, numbers: Floats, bandwidth: float) -> Floats:
        """Each observation's predicted seconds."""
        dense, depthwise, elementwise, launch_s, backward_s, half = numbers
        rate = np.where(self._depthwise, depthwise, dense * self._side / (self._side + half))
        compute = np.divide(self._flops, rate, where=~self._elementwise, out=np.zeros_like(self._flops))
        memory = self._bytes / (bandwidth * np.where(self._elementwise, elementwise, 1.0))
        overhead = launch_s + backward_s * self._backward
        kernels = (np.maximum(compute, memory) + overhead) * self._count
        found: Floats = np.bincount(self._place, kernels).astype(np.float64)
        return found


def _rows(observations: Sequence[TimedWork]) -> Iterator[tuple[float, ...]]:
    for place, one in enumerate(observations):
        for kernel, count in one.work:
            side = min(kernel.m, kernel.n, kernel.k)
            # An elementwise kernel has no sides, and its compute rate is not used.
            kinds = kernel.kind == DEPTHWISE, kernel.kind == ELEMENTWISE
            yield kernel.flops, kernel.bytes, max(side, 1), count, *kinds, kernel.backward, place


def fit(observations: Sequence[TimedWork], bandwidth: float, most_dense: float = _MOST[0]) -> RooflineFit:
    """The numbers that predict the observations best.

    Args:
        observations: at least one of every class of kernels.
        bandwidth: bytes a second of a copy.
        most_dense: the upper bound of ``dense`` and ``depthwise``, in FLOP/s. Where all workloads have about
            the same mixture of products and elementwise kernels, the bound keeps one rate from compensating
            for the other.
    """
    table = _Table(observations)
    measured = np.log([one.seconds for one in observations])
    weights = np.sqrt([one.weight for one in observations])

    def residuals(logs: Floats) -> Floats:
        found: Floats = weights * (np.log(table.seconds(np.exp(logs), bandwidth)) - measured)
        return found

    most = (most_dense, min(most_dense, _MOST[1]), *_MOST[2:])
    bounds = np.log(_LEAST), np.log(most)

    def solution(depthwise: float) -> Any:
        start = np.minimum((_START[0], depthwise, *_START[2:]), 0.9 * np.array(most))
        return least_squares(residuals, np.log(start), bounds=bounds, loss="soft_l1", f_scale=_LINEAR_FROM)

    solved = min(map(solution, _DEPTHWISE_STARTS), key=lambda found: float(found.cost))
    numbers = np.exp(solved.x)
    ratios = np.exp(np.abs(np.log(table.seconds(numbers, bandwidth)) - measured))
    dense, depthwise, elementwise, launch_s, backward_s, half_side = map(float, numbers)
    return RooflineFit(
        dense=dense,
        depthwise=depthwise,
        elementwise=elementwise,
        launch_s=launch_s,
        backward_s=backward_s if table.backwards else 0.0,
        half_side=half_side,
        spread=float(np.median(ratios)) - 1,
        workloads=len(observations),
    )
