"""A device with a time for each sample, whatever the model.

How some simulators and traces state a device's speed. It cannot tell a large model from a small one: for
costs that follow the model, use another kind of device, and such a number as a relative speed alone.

A step that has gradients takes the training time of each of its samples, any other work with products the
forward time; work without products is part of these. The samples are counted by the matrix products: they are
the greatest divisor that the sides which count samples, or places in images, have in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from edgefl.core import units
from edgefl.core.cost import GRAD_INPUT, GRAD_WEIGHT, Work
from edgefl.core.devices.board import Board, Bounds, DType
from edgefl.core.devices.measured import samples_of
from edgefl.core.sourced import Sourced


class PerSample(Board):
    """A device with a time for each sample.

    Attributes:
        dtype: the number type.
        forward_time: seconds of a forward pass, a sample.
        training_time: seconds of a step, a sample: forward, backward and the update.
    """

    kind: Literal["per-sample"]
    dtype: DType = "fp32"
    forward_time: Sourced[Annotated[units.Seconds, Field(gt=0)]]
    training_time: Sourced[Annotated[units.Seconds, Field(gt=0)]]

    def dtypes(self, *, inference: bool = False) -> tuple[str, ...]:  # noqa: ARG002 - alike for both
        """Its only type."""
        return (self.dtype,)

    def launch(self, *, inference: bool = False) -> Sourced[float]:  # noqa: ARG002 - alike for both
        """See ``Board.launch``."""
        return Sourced[float](value=0.0, status="derived", source="part of the time of a sample")

    def clock(self, name: str, dtype: str, *, inference: bool = False) -> PerSampleClock:  # noqa: ARG002
        """See ``Board.clock``."""
        read = self.known(name, dtype)
        return PerSampleClock(read["forward_time"], read["training_time"])


@dataclass(frozen=True)
class PerSampleClock:
    """Times work by its samples.

    Attributes:
        forward_s: of a forward pass, a sample.
        training_s: of a step, a sample.
    """

    forward_s: float
    training_s: float

    def time(self, work: Work) -> Bounds:
        """The time of one step, or of a pass without gradients."""
        trains = any(kernel.role in {GRAD_INPUT, GRAD_WEIGHT} for kernel, _ in work)
        return Bounds(compute_s=samples_of(work) * (self.training_s if trains else self.forward_s))
