"""A run before it starts: all names resolved, all prices known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgefl.core.cost import Trace
from edgefl.core.fleet import Fixed, Sampler
from edgefl.core.scenario import Scenario

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Clients:
    """The clients, a column each.

    Attributes:
        device: index into ``devices``.
        link: index into ``links``.
        model: index into ``models``.
        samples: training samples.
        slowdown: persistent multiplier of compute time.
        admitted: whether its device can hold every exchange.
        devices, links, models: the names.
    """

    device: Ints
    link: Ints
    model: Ints
    samples: Ints
    slowdown: Floats
    admitted: Bools
    devices: tuple[str, ...]
    links: tuple[str, ...]
    models: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.device)


@dataclass(frozen=True)
class Prices:
    """One exchange's prices, a row a client; energy is NaN where a number is unknown.

    Attributes:
        exchange: its name.
        at: "start", "round" or "end".
        every: in rounds, every how many.
        everyone: whether all clients take part, whatever the policy.
        down_s, compute_s, up_s: seconds by phase, before slowdown and jitter.
        receive_j, compute_j, transmit_j: energy by phase, likewise.
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
    compute_j: Floats
    transmit_j: Floats
    down_bytes: Ints
    up_bytes: Ints
    flops: Ints
    steps: Ints
    peak_bytes: Ints
    traces: tuple[Trace, ...]


@dataclass(frozen=True)
class Refusal:
    """A client whose device cannot hold the work, with the numbers.

    Attributes:
        client: its number.
        device: its device's name.
        exchange: the exchange that does not fit.
        needs_bytes: the peak.
        has_bytes: what the device can give.
        parts: the peak by what holds it.
    """

    client: int
    device: str
    exchange: str
    needs_bytes: int
    has_bytes: int
    parts: Mapping[str, int]


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
