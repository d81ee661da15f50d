"""A planned run: all names resolved, all prices known."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from edgefl.core.clients import Clients
from edgefl.core.cost import Steps, Trace
from edgefl.core.errors import RunError
from edgefl.core.fleet import Fleet
from edgefl.core.merging import ServerWork
from edgefl.core.price import Demand
from edgefl.core.scenario import Scenario
from edgefl.core.units import show_bytes


@dataclass(frozen=True)
class Prices:
    """What one exchange asks of a client: quantities, since durations may depend on other clients.

    Attributes:
        at: "start", "round" or "end".
        every: the number of rounds between two exchanges.
        everyone: whether all clients take part, not only those that the selector chooses.
        demand: of a job of each kind of client, (kinds,) a column; the work of refused clients is NaN.
        corners: the same at the cheap and at the costly corner, where numbers of devices or links are
            intervals; None where all corners are alike. Work that nothing bounds from above is NaN there.
        traces: what each model's work costs before any device, by model index.
        taken: the steps that each kind of client takes.
    """

    exchange: str
    at: str
    every: int
    everyone: bool
    stateful: bool
    demand: Demand = field(default_factory=Demand)
    corners: tuple[Demand, Demand] | None = None
    traces: tuple[Trace, ...] = ()
    taken: tuple[Steps, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """An exchange that the device of a kind of client cannot do.

    Attributes:
        has_bytes: the device's usable memory; None if unknown.
        parts: the bytes at the peak, by what occupies them.
        reason: empty if memory is too small.
    """

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
        needs, room = show_bytes(self.needs_bytes), show_bytes(self.has_bytes or 0)
        return f"{self.exchange} needs {needs} of memory and {self.device} has {room} ({held})"


class Assumption(str):
    """A sentence on what a plan assumes of something.

    Attributes:
        kind: "device" or "link" where it follows from the numbers of one; else another word.
        owner: what it is about: the name of a device, or "link" and that of a link.
        numbers: the assumed ones that it lists.
    """

    __slots__ = ("consequence", "kind", "numbers", "owner")
    kind: str
    owner: str
    consequence: str
    numbers: tuple[str, ...]

    def __new__(cls, kind: str, owner: str, consequence: str, numbers: Sequence[str] = ()) -> Self:
        self = super().__new__(cls, f"{owner}: {consequence}")
        self.kind, self.owner, self.consequence, self.numbers = kind, owner, consequence, tuple(numbers)
        return self

    def __getnewargs__(self) -> Any:
        return self.kind, self.owner, self.consequence, self.numbers


@dataclass(frozen=True)
class Plan:
    """Everything that a run does, known before it starts.

    Attributes:
        prices: by exchange, in the method's order.
        refusals: by the kinds of clients that do not take part.
        assumed: what is assumed, as sentences; those on devices and links are ``Assumption``.
        server_work: None where the server's work is free.
    """

    scenario: Scenario
    clients: Clients
    prices: tuple[Prices, ...]
    fleet: Fleet
    refusals: Mapping[int, Refusal] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    server_work: ServerWork | None = None

    def check_admitted(self) -> None:
        """Raises a ``RunError`` where no client was."""
        if not self.clients.admitted.any():
            raise RunError(
                f"every client was refused: {next(self.refused())[1]}",
                hint="use a smaller model, batch_size: fit, or a fleet with more memory",
            )

    def refused(self) -> Iterator[tuple[int, Refusal]]:
        """Each client that takes no part, and why."""
        clients = np.flatnonzero(~self.clients.admitted)
        for client, kind in zip(clients.tolist(), self.clients.kind[clients].tolist(), strict=True):
            yield client, self.refusals[kind]

    def price(self, exchange: str) -> Prices:
        return next(prices for prices in self.prices if prices.exchange == exchange)
