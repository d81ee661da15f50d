"""What a run costs beside time, bytes and energy: what follows from its jobs, such as CO2e and money."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from edgefl.analysis.history import Reached
from edgefl.analysis.run import Run
from edgefl.analysis.sums import DeviceUse, Usage, sums
from edgefl.core.corners import Interval, together
from edgefl.core.documents import OPTIONAL
from edgefl.core.scenario import Tariffs
from edgefl.core.totals import EnergyTotal

TOTAL = "total"
Until: TypeAlias = tuple[float, Interval | None]
"""A virtual time, with its bounds where it has any."""


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


def total(amounts: Sequence[Amount]) -> Amount:
    """The sum of components; unknown where one is. It covers the clients of the one that lacks most."""
    worst = max(amounts, key=lambda each: each.clients - each.known)
    between = None
    if any(each.between for each in amounts):
        between = together(each.between or Interval.of(each.amount, each.amount) for each in amounts)
    terms = [each.amount for each in amounts if each.amount is not None]
    whole = math.fsum(terms) if len(terms) == len(amounts) else None
    return Amount(whole, worst.known, worst.clients, between)


def in_money(run: Run, used: Usage, until: Until, reached: Mapping[str, Reached]) -> Bill | None:
    """What energy, traffic and a server as long as the run lasts cost; None where nobody asked for it."""
    asked = run.reader.meta.get("costs")
    if asked is None:
        return None
    costs = Tariffs.model_validate(asked)
    rates, between_j = costs.rates(), run.between_j(until[0])
    targets = {
        model: _paid(rates, one.energy, one.joules_between, one.bytes, (one.t_s, one.t_s_between))
        for model, one in reached.items()
    }
    words = "; ".join(f"{name} at {getattr(costs, name)}" for name in rates)
    return Bill(
        "cost",
        costs.currency,
        _paid(rates, used.energy, between_j, used.bytes, until),
        targets,
        f"money: {words}; not counted: devices, storage and people",
        _by_device(run, rates, used.devices),
    )


def _paid(
    rates: Mapping[str, float],
    energy: EnergyTotal,
    between_j: Interval | None,
    moved: int,
    until: Until,
) -> dict[str, Amount]:
    all_: dict[str, Any] = {
        "energy": (*energy, between_j),
        "traffic": (moved, 1, 1, None),
        "server": (until[0], 1, 1, until[1]),
    }
    found = {}
    for name, rate in rates.items():
        amount, known, clients, between = all_[name]
        ends = between and Interval(rate * between.low, None if between.high is None else rate * between.high)
        found[name] = Amount(None if amount is None else rate * amount, known, clients, ends)
    return {TOTAL: total(list(found.values())), **found}


def _by_device(run: Run, rates: Mapping[str, float], devices: Mapping[str, DeviceUse]) -> dict[str, Amount]:
    """The energy and the traffic of each device's clients."""
    spent = sums(run, run.clients.device[run.jobs.client], len(run.device_names))
    moved = {name: one.bytes for name, one in zip(run.device_names, spent, strict=True)}
    found = {}
    for name, use in devices.items():
        known = use.joules is not None or "energy" not in rates
        energy = rates.get("energy", 0.0) * (use.joules or 0.0)
        amount = energy + rates.get("traffic", 0.0) * moved[name]
        found[name] = Amount(amount if known else None, use.clients * known, use.clients)
    return found
