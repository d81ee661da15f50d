"""What a run cost in money: its clients' energy, its traffic and a server that runs as long as it does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgefl.analysis.bills import TOTAL, Amount, Bill, BilledUntil, total
from edgefl.analysis.history import Reached
from edgefl.analysis.run import Run
from edgefl.analysis.sums import DeviceUse, Usage, sums
from edgefl.core.corners import Interval
from edgefl.core.scenario import Tariffs
from edgefl.core.totals import EnergyTotal


def bill(run: Run, used: Usage, ended: BilledUntil, reached: Mapping[str, Reached]) -> Bill | None:
    """That of a run; None where nobody asked for it."""
    asked = run.reader.meta.get("costs")
    if asked is None:
        return None
    costs = Tariffs.model_validate(asked)
    rates, between_j = costs.rates(), run.between_j(ended.t_s)
    targets = {
        model: _paid(rates, one.energy, one.joules_between, one.bytes, one.until)
        for model, one in reached.items()
    }
    words = "; ".join(f"{name} at {getattr(costs, name)}" for name in rates)
    return Bill(
        "cost",
        costs.currency,
        _paid(rates, used.energy, between_j, used.bytes, ended),
        targets,
        f"money: {words}; not counted: devices, storage and people",
        _by_device(run, rates, used.devices),
    )


def _paid(
    rates: Mapping[str, float],
    energy: EnergyTotal,
    between_j: Interval | None,
    moved: int,
    until: BilledUntil,
) -> dict[str, Amount]:
    all_: dict[str, Any] = {
        "energy": (*energy, between_j),
        "traffic": (moved, 1, 1, None),
        "server": (until.t_s, 1, 1, until.between),
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
