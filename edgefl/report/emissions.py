"""Emissions of runs, as texts of a cell."""

from __future__ import annotations

from collections.abc import Sequence

from edgefl.core.corners import Interval
from edgefl.core.units import show_grams
from edgefl.report.averages import Compared
from edgefl.report.carbon import Amount, Emissions
from edgefl.report.intervals import between, bounded
from edgefl.report.summary import Summary
from edgefl.report.tables import MISSING, NOT_REACHED, UNKNOWN


def emitted(one: Compared, component: str) -> str:
    """What a component emitted, or "total"; "-" where it is not counted."""
    found = [run.carbon.emitted if run.carbon else None for run in one.runs]
    return _amounts(one, [getattr(each, component) if each else None for each in found])


def emitted_to(one: Compared, model: str) -> str:
    """What was emitted until a model reached the target."""
    if not any(run.carbon for run in one.runs):
        return MISSING
    found: list[Emissions | None] = [
        run.carbon.to_target.get(model) if run.carbon else None for run in one.runs
    ]
    if not any(found):
        return NOT_REACHED if one.first.target else MISSING
    return _amounts(one, [each.total if each else None for each in found])


def _amounts(one: Compared, amounts: Sequence[Amount | None]) -> str:
    """The amounts of one's runs; of several runs their average."""
    if not any(amounts):
        return MISSING
    if len(amounts) == 1 and amounts[0]:
        return emission(amounts[0])
    own = {id(run): amount for run, amount in zip(one.runs, amounts, strict=True) if amount}
    partly = any(each.known < each.clients for each in own.values())

    def grams(run: Summary) -> float | None:
        return own[id(run)].grams if id(run) in own else None

    def bounds(run: Summary) -> Interval | None:
        return own[id(run)].between if id(run) in own and not partly else None

    shown = bounded(one, show_grams, grams, bounds, UNKNOWN)
    return f"{shown} (not of all clients)" if partly and shown != UNKNOWN else shown


def emission(amount: Amount) -> str:
    """A mass with its bounds, or with the number of clients that it covers, where that is not all."""
    if amount.grams is None or amount.known == amount.clients:
        return between(show_grams, amount.grams, amount.between)
    text = f"{show_grams(amount.grams)} ({amount.known} of {amount.clients} clients)"
    return f"{text}, all {between(show_grams, None, amount.between)}" if amount.between else text
