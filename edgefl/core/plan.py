"""A run before it starts: all names resolved, all prices known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgefl.core.cost import Trace
from edgefl.core.fleet import Fixed, Sampler
from edgefl.core.price import Draw
from edgefl.core.scenario import Scenario
from edgefl.core.units import show_bytes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Clients:
    """The clients, a column each.

    Attributes:
        device: index into ``devices``.
        link: index into ``links``.
        dtype: index into ``dtypes``.
        model: index into ``models``.
        samples: training samples.
        slowdown: persistent multiplier of compute time.
        admitted: whether its device can hold every exchange.
        devices, links, dtypes, models: the names.
    """

    device: Ints
    link: Ints
    dtype: Ints
    model: Ints
    samples: Ints
    slowdown: Floats
    admitted: Bools
    devices: tuple[str, ...]
    links: tuple[str, ...]
    dtypes: tuple[str, ...]
    models: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.device)


@dataclass(frozen=True)
class Prices:
    """One exchange's prices, a row a client; what is unknown is NaN, and so is the time of a refused client.

    Attributes:
        exchange: its name.
        at: "start", "round" or "end".
        every: in rounds, every how many.
        everyone: whether all clients take part, whatever the policy.
        down_s, compute_s, up_s: seconds by phase, before slowdown and jitter.
        receive_j, compute_w, transmit_j, idle_w, tail_w, tail_s: what the job draws; see ``Draw``.
        down_bytes, up_bytes: payload sizes.
        flops: operations.
        steps: optimizer steps.
        peak_bytes: memory at the worst moment.
        traces: what each model's work costs before any device, by model index.
    """

    exchange: str
    at: str
    every: int
    everyone: bool
    down_s: Floats
    compute_s: Floats
    up_s: Floats
    receive_j: Floats
    compute_w: Floats
    transmit_j: Floats
    idle_w: Floats
    tail_w: Floats
    tail_s: Floats
    down_bytes: Ints
    up_bytes: Ints
    flops: Ints
    steps: Ints
    peak_bytes: Ints
    traces: tuple[Trace, ...]

    def draw(self, client: int) -> Draw:
        """What a client's job draws."""
        return Draw(
            _known(self.receive_j[client]),
            _known(self.compute_w[client]),
            _known(self.transmit_j[client]),
            _known(self.idle_w[client]),
            _known(self.tail_w[client]),
            float(self.tail_s[client]),
        )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


@dataclass(frozen=True)
class Refusal:
    """A client whose device cannot do the work.

    Attributes:
        client: its number.
        device: its device's name.
        exchange: the exchange that it cannot do.
        needs_bytes: the peak.
        has_bytes: what the device can give; None where that is unknown.
        parts: the peak by what holds it.
        reason: why; empty where it is the memory.
    """

    client: int
    device: str
    exchange: str
    needs_bytes: int
    has_bytes: int | None
    parts: Mapping[str, int]
    reason: str = ""

    def __str__(self) -> str:
        if self.reason:
            return f"{self.exchange} is more than {self.device} can do: {self.reason}"
        held = ", ".join(f"{part} {show_bytes(size)}" for part, size in self.parts.items())
        room = show_bytes(self.has_bytes or 0)
        needs = show_bytes(self.needs_bytes)
        return f"{self.exchange} needs {needs} of memory and {self.device} has {room} ({held})"


@dataclass(frozen=True)
class Plan:
    """Everything that a run does, known before it starts.

    Attributes:
        scenario: the settings.
        clients: who takes part.
        prices: by exchange, in the method's order.
        refusals: who does not, and why.
        jitter: the multiplier of compute time drawn for each job.
        policy: the policy's validated parameters; its name is in the scenario.
        assumed: what was not known and taken as given, for the reader.
    """

    scenario: Scenario
    clients: Clients
    prices: tuple[Prices, ...]
    refusals: tuple[Refusal, ...] = ()
    jitter: Sampler = field(default_factory=Fixed)
    policy: Any = None
    assumed: tuple[str, ...] = ()

    def price(self, exchange: str) -> Prices:
        """The prices of an exchange by name."""
        return next(prices for prices in self.prices if prices.exchange == exchange)
