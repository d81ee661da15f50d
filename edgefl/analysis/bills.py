"""What a run costs beside time, bytes and energy: what follows from its jobs, such as CO2e and money."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from edgefl.core.corners import Interval, together
from edgefl.core.documents import OPTIONAL

TOTAL = "total"


@dataclass(frozen=True)
class Amount:
    """An amount, and how many clients it covers.

    Attributes:
        amount: of the clients of which all numbers are known; None where there are none.
        known: how many clients those are.
        clients: how many there are; of the server it is 1, itself.
        between: bounds of the sum over all clients; None where no number is an interval.
    """

    amount: float | None
    known: int
    clients: int
    between: Interval | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class Bill:
    """What a run cost.

    Attributes:
        label: what it is, such as "CO2e".
        whole: of the whole run, by component; "total" is the sum of those that count.
        to_target: the same until each model, "global" and "personal", reached the target; those that did.
        devices: of the clients of each device, as far as that is told.
        about: what is counted, and what is not.
    """

    label: str
    unit: str
    whole: Mapping[str, Amount]
    to_target: Mapping[str, Mapping[str, Amount]]
    about: str
    devices: Mapping[str, Amount] = field(default_factory=dict)


class BilledUntil(NamedTuple):
    """A virtual time, with its bounds where it has any."""

    t_s: float
    between: Interval | None = None

    @property
    def corners(self) -> tuple[float, float]:
        """The least and the most that it can be; NaN for no bound."""
        if self.between is None:
            return self.t_s, self.t_s
        return self.between.low, math.nan if self.between.high is None else self.between.high


def total(amounts: Sequence[Amount]) -> Amount:
    """The sum of components; unknown where one is. It covers the clients of the one that lacks most."""
    worst = max(amounts, key=lambda each: each.clients - each.known)
    between = None
    if any(each.between for each in amounts):
        between = together(each.between or Interval.of(each.amount, each.amount) for each in amounts)
    terms = [each.amount for each in amounts if each.amount is not None]
    whole = math.fsum(terms) if len(terms) == len(amounts) else None
    return Amount(whole, worst.known, worst.clients, between)
