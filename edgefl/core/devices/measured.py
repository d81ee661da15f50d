"""A device with measured step times, interpolated over the batch size.

A step is recognised by its matrix products: the same operators on the same weights and image sizes, at any
batch size. Its time is interpolated linearly between the two nearest measured batch sizes; steps outside the
measured range, and work that was not measured, are refused. Elementwise work that a method adds to a measured
step counts as part of it; work without products (copies before the first step) is timed by its bytes and
launches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import pairwise
from math import gcd
from typing import Annotated, Literal

from pydantic import Field, model_validator

from edgefl.core import units
from edgefl.core.cost import ELEMENTWISE, GRAD_WEIGHT, Kernel, Work
from edgefl.core.devices.board import Bandwidth, Board, Bounds, DType
from edgefl.core.errors import UserError
from edgefl.core.params import Strict
from edgefl.core.sourced import Sourced


class Point(Strict):
    """One batch size.

    Attributes:
        batch: samples per step.
        flops: operations per step; they identify the batch size of work.
        seconds: the time of a step.
    """

    batch: Annotated[int, Field(ge=1)]
    flops: Annotated[int, Field(ge=1)]
    seconds: Sourced[units.Seconds]


class Curve(Strict):
    """One network's steps.

    Attributes:
        network: network and method, for display.
        points: at least two, in ascending order.
    """

    network: str
    points: Annotated[tuple[Point, ...], Field(min_length=2)]

    @model_validator(mode="after")
    def _ascending(self) -> Curve:
        if any(one.batch >= two.batch or one.flops >= two.flops for one, two in pairwise(self.points)):
            raise ValueError("points must be in ascending order of batch and flops")
        return self

    def seconds(self, flops: int, device: str) -> float:
        """A step's time.

        Args:
            flops: the step's operations.
            device: the device's name, for messages.

        Raises:
            UserError: the step is outside the measured range.
        """
        for low, high in pairwise(self.points):
            if low.flops <= flops <= high.flops:
                share = (flops - low.flops) / (high.flops - low.flops)
                return low.seconds.known * (1 - share) + high.seconds.known * share
        low, high = self.points[0], self.points[-1]
        size = low.batch + (flops - low.flops) * (high.batch - low.batch) / (high.flops - low.flops)
        raise UserError(
            f"{self.network} was measured on {device!r} at batch sizes {low.batch} to {high.batch}, "
            f"not at {size:.4g}",
            where=device,
            hint="choose a batch size in this range, or calibrate at this one",
        )


class Measured(Board):
    """A device with measured step times.

    Attributes:
        runtime: the runtime, with version and threads.
        dtype: the number type.
        networks: step times by fingerprint; see ``fingerprint``.
        memory_bandwidth: bytes per second, for work without products.
        launch_overhead: launch overhead per kernel, likewise.
    """

    kind: Literal["measured"]
    runtime: str
    dtype: DType = "fp32"
    networks: Annotated[dict[str, Curve], Field(min_length=1)]
    memory_bandwidth: Sourced[Bandwidth]
    launch_overhead: Sourced[units.Seconds]

    def dtypes(self, *, inference: bool = False) -> tuple[str, ...]:  # noqa: ARG002 - alike for both
        """The type it was measured in."""
        return (self.dtype,)

    def launch(self, *, inference: bool = False) -> Sourced[float]:  # noqa: ARG002 - of training only
        """See ``Board.launch``."""
        return self.launch_overhead

    def clock(self, name: str, dtype: str, *, inference: bool = False) -> MeasuredClock:
        """See ``Board.clock``; for training steps only.

        Raises:
            UserError: also if inference is requested.
        """
        if inference:
            raise UserError(f"device {name!r} was measured on training steps only", where=name)
        return MeasuredClock(name, self.networks, self.known(name, dtype))


class MeasuredClock:
    """Times steps."""

    def __init__(self, name: str, networks: Mapping[str, Curve], read: Mapping[str, float]) -> None:
        self._name = name
        self._networks = networks
        self._bandwidth, self._launch_s = read["memory_bandwidth"], read["launch_overhead"]

    def time(self, work: Work) -> Bounds:
        """The time of one step, or of work without products.

        Raises:
            UserError: the step was not measured, or not at this batch size.
        """
        if not any(kernel.kind != ELEMENTWISE for kernel, _ in work):
            return Bounds(memory_s=work.bytes / self._bandwidth, launch_s=work.launches * self._launch_s)
        curve = self._networks.get(fingerprint(work))
        if curve is None:
            raise UserError(
                f"device {self._name!r} was not measured on this work",
                where=self._name,
                hint=f"measured: {', '.join(one.network for one in self._networks.values())}",
            )
        return Bounds(compute_s=curve.seconds(work.flops, self._name))


def fingerprint(work: Work) -> str:
    """An identifier of a step's products, independent of the batch size: 16 hexadecimal digits.

    Of a product with weights: the sides that do not count samples, (n, k) of a forward pass or an input's
    gradient and (m, n) of a weight's gradient; and the side that does, in units of the greatest divisor that
    all of them share. This is the batch size where a layer sees every sample once, and it tells images of
    several sizes apart. Of a product without weights, such as the similarities of all pairs of samples, any
    side may count samples: only the operator and its pass.
    """
    unit = samples_of(work) or 1
    found: dict[str, int] = {}
    for kernel, count in work:
        if kernel.kind != ELEMENTWISE:
            identity: tuple[object, ...] = (kernel.op, kernel.kind, kernel.role)
            if _weighted(kernel):
                inner = (kernel.m, kernel.n) if kernel.role == GRAD_WEIGHT else (kernel.n, kernel.k)
                identity = (*identity, kernel.groups, inner, _samples(kernel) // unit)
            found[repr(identity)] = found.get(repr(identity), 0) + count
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()[:16]


def samples_of(work: Work) -> int:
    """The batch size where a layer sees each sample once: the divisor of all sides that count samples.

    Returns:
        0 for work without products with weights.
    """
    return gcd(*(_samples(kernel) for kernel, _ in work if _weighted(kernel)))


def _weighted(kernel: Kernel) -> bool:
    """Whether it is a product with a part's weights, or the gradient of one."""
    return kernel.kind != ELEMENTWISE and kernel.part != ""


def _samples(kernel: Kernel) -> int:
    """The side of a product with weights that counts samples, or places in them."""
    return kernel.k if kernel.role == GRAD_WEIGHT else kernel.m
