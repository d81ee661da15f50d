"""Records of what one round costs; see ``edgefl.planning.profile``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from edgefl.core.corners import Interval, together
from edgefl.core.devices import Bounds
from edgefl.core.documents import INLINE, OPTIONAL
from edgefl.core.layers import ModelLayers
from edgefl.core.measurement import MeasuredExchange
from edgefl.core.merging import MergeCost
from edgefl.core.price import Energy
from edgefl.planning.sharing import SharedLink


@dataclass(frozen=True)
class Intervals:
    """The bounds of an exchange's times and energies on one device; see ``Priced``.

    Attributes:
        down_s, compute_s, up_s, joules: of these figures.
        energy: by phase. That of computing, above idle power, may be 0 where no interval's end is.
        battery_share: None where there is no battery.
    """

    down_s: Interval
    compute_s: Interval
    up_s: Interval
    energy: Mapping[str, Interval]
    joules: Interval
    battery_share: Interval | None


@dataclass(frozen=True)
class Priced:
    """Time and energy of one client's share of an exchange on one device.

    Attributes:
        down_s, compute_s, up_s: seconds of receiving, computing and sending.
        bounds: the time to compute, by what bounds it.
        energy: by phase; None where a number is unknown.
        joules: all phases; None where one is unknown.
        battery_share: the same as a share of a full battery; None where either is unknown.
        intervals: the bounds of all of them, where a number of the device or the link is an interval, or an
            unknown power, or where the time to compute is a lower bound.
    """

    down_s: float
    compute_s: float
    up_s: float
    bounds: Bounds
    energy: Energy
    joules: float | None
    battery_share: float | None
    intervals: Intervals | None = field(default=None, metadata=OPTIONAL)

    @property
    def seconds_between(self) -> Interval:
        """The bounds of all phases, one after another; of no width where nothing is an interval."""
        if self.intervals is None:
            whole = self.down_s + self.compute_s + self.up_s
            return Interval(whole, whole)
        return together((self.intervals.down_s, self.intervals.compute_s, self.intervals.up_s))

    @property
    def joules_between(self) -> Interval:
        """The bounds of the energy; of no width where nothing is an interval."""
        return self.intervals.joules if self.intervals else Interval.of(self.joules, self.joules)


def is_lower_bound(price: Priced) -> bool:
    """Whether the time to compute is a lower bound: nothing bounds it from above."""
    return price.intervals is not None and price.intervals.compute_s.high is None


@dataclass(frozen=True)
class LayerPrice:
    """One layer on one device, in all steps of one client's share of an exchange.

    Attributes:
        layer: the module's dotted name.
        forward_s: seconds of its forward passes.
        grad_input_s: of its backward passes, but for its weights' gradients.
        grad_weight_s: of its weights' gradients.
        joules: of the whole device meanwhile; None where its power is unknown.
        memory_bytes: its weights, their gradients and its results that wait for the backward pass, in the
            device's number type.
        intervals: the bounds of its times and its energy, by their names; None where none differs.
    """

    layer: str
    forward_s: float
    grad_input_s: float
    grad_weight_s: float
    joules: float | None
    memory_bytes: int
    intervals: Mapping[str, Interval] | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class OtherPrice:
    """What is not done in a layer: other work, or a transfer.

    Attributes:
        work: what it is, in words.
        seconds: how long it takes.
        joules: of the whole device meanwhile; None where a power is unknown.
        intervals: the bounds of both, by their names; None where none differs.
    """

    work: str
    seconds: float
    joules: float | None
    intervals: Mapping[str, Interval] | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class LayerPrices:
    """An exchange on one device layer by layer; times and energies add up to the exchange's.

    Attributes:
        layers: in the order in which they are first called.
        others: everything else.
    """

    layers: Sequence[LayerPrice]
    others: Sequence[OtherPrice]


@dataclass(frozen=True)
class DeviceCost:
    """An exchange on one device.

    Attributes:
        device, dtype, link: the device's name, the number type it computes in and its link's name.
        unknown: why the device has no price; empty where it has one.
        launch: how well the device's launch overhead is known: its status, or "none".
        price: time and energy; None where the device has no price.
        memory_bytes: the peak in this number type.
        memory_share: the same as a share of usable memory; None where that is unknown.
        fits: whether the device can hold it; None where that is unknown.
        fits_with_margin: whether it also holds what libraries take besides; see ``edgefl.planning.memory``.
        by_layer: the price layer by layer, if requested; None where the device has no price.
    """

    device: str
    dtype: str
    link: str
    unknown: str
    launch: str
    price: Priced | None = field(metadata={INLINE: Priced})
    memory_bytes: int
    memory_share: float | None
    fits: bool | None
    fits_with_margin: bool | None
    by_layer: LayerPrices | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class MemoryCheck:
    """The predicted memory beside the measured one.

    Attributes:
        predicted_bytes: the traced peak in fp32.
        measured_bytes: what the work added to a fresh process on this host.
        error: predicted over measured, less 1; None where nothing was added.
        verdict: whether they agree, or what explains the difference.
        limits: by device that computes in fp32, which of the two fits its memory.
    """

    predicted_bytes: int
    measured_bytes: int
    error: float | None
    verdict: str
    limits: Mapping[str, str]


@dataclass(frozen=True)
class TimeCheck:
    """The predicted time of a step beside the measured one.

    Attributes:
        measured_s: of a step on one thread of this host, the mean over the exchange's steps.
        predicted_s: by device, in fp32.
        errors: by device, predicted over measured, less 1.
    """

    measured_s: float
    predicted_s: Mapping[str, float]
    errors: Mapping[str, float]


@dataclass(frozen=True)
class Measured:
    """The real work of an exchange on this host.

    Attributes:
        figures: of one client's share.
        memory: the predicted memory beside the measured one, if requested.
        time: likewise of the time, where there are steps.
    """

    figures: MeasuredExchange = field(metadata={INLINE: MeasuredExchange})
    memory: MemoryCheck | None = field(default=None, metadata=OPTIONAL)
    time: TimeCheck | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class ExchangeLayer:
    """What one layer does in one client's share of an exchange, before any device.

    Attributes:
        layer: the module's dotted name.
        kind: its class.
        flops: by role of the kernels.
        kernels: how many operators it starts.
        moved_bytes: what they move.
        parameter_bytes: of its weights and running statistics.
        gradient_bytes: of its weights' gradients.
        activation_bytes: of its results that a step keeps until the backward pass, at the largest batch.
        memory_bytes: the three together, in fp32.
    """

    layer: str
    kind: str
    flops: Mapping[str, int]
    kernels: int
    moved_bytes: int
    parameter_bytes: int
    gradient_bytes: int
    activation_bytes: int
    memory_bytes: int


@dataclass(frozen=True)
class OtherWork:
    """Work of an exchange outside of all layers.

    Attributes:
        work: what it is: outside the layers in a step (such as the loss), the update, before and after steps.
        flops: operations.
        kernels: how many operators it starts.
        moved_bytes: what they move.
        activation_bytes: of its results that a step keeps until the backward pass.
    """

    work: str
    flops: int
    kernels: int
    moved_bytes: int
    activation_bytes: int


@dataclass(frozen=True)
class ExchangeCost:
    """One client's share of an exchange on one model.

    Attributes:
        exchange: its name.
        when: when it happens, in words.
        model: the model's name.
        samples, steps: how many the client trains on and takes.
        down, up: payload bytes by part.
        flops: by role of the kernels.
        flops_by_part: by part of the model.
        kernels: how many operators are started.
        moved_bytes: what they move.
        peak: memory in bytes at the worst moment, in fp32, by use.
        devices: a row for each device.
        layers: what each layer does, if requested.
        other_work: what is done outside of layers, if requested.
        measured: the real work on this host, if requested.
        jobs_per_day: how many of these jobs a client does a day in the mean, if the policy alone decides how
            long a round takes.
    """

    exchange: str
    when: str
    model: str
    samples: int
    steps: int
    down: Mapping[str, int]
    up: Mapping[str, int]
    flops: Mapping[str, int]
    flops_by_part: Mapping[str, int]
    kernels: int
    moved_bytes: int
    peak: Mapping[str, int]
    devices: Sequence[DeviceCost]
    layers: Sequence[ExchangeLayer] | None = field(default=None, metadata=OPTIONAL)
    other_work: Sequence[OtherWork] | None = field(default=None, metadata=OPTIONAL)
    measured: Measured | None = field(default=None, metadata=OPTIONAL)
    jobs_per_day: float | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class Profile:
    """What one round of a scenario's run costs a client.

    Attributes:
        scenario: the run's name.
        method: the method's.
        batch_size: of local training.
        assumed: what the figures assume about the client.
        assumptions: the unknown and assumed numbers of devices and links.
        exchanges: one for each exchange and model.
        layers: each model layer by layer, if requested.
        shared: what exchanges cost the server's link and cells; None where clients share nothing.
        server: what a merge of each exchange costs the server; None where its work is free.
        server_intervals: its bounds, by exchange and figure; None where no number is open.
    """

    scenario: str
    method: str
    batch_size: int
    assumed: Sequence[str]
    assumptions: Sequence[str]
    exchanges: Sequence[ExchangeCost]
    layers: Sequence[ModelLayers] | None = field(default=None, metadata=OPTIONAL)
    shared: Sequence[SharedLink] | None = field(default=None, metadata=OPTIONAL)
    server: Mapping[str, MergeCost] | None = field(default=None, metadata=OPTIONAL)
    server_intervals: Mapping[str, Mapping[str, Interval]] | None = field(default=None, metadata=OPTIONAL)
