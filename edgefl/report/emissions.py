"""Emissions of runs, as texts of a cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from edgefl.core.corners import Interval
from edgefl.core.units import show_grams
from edgefl.report.averages import Compared, Row
from edgefl.report.carbon import Amount, Emissions
from edgefl.report.intervals import between, bounded
from edgefl.report.summary import Summary
from edgefl.report.tables import MISSING, NOT_REACHED, UNKNOWN


def emission_row(label: str, component: str, *, main: bool = False) -> Row:
    """The row of what a component emitted, or "total"."""
    return _row(label, partial(emitted, component=component), f"emitted.{component}", main=main)


def emission_to_row(label: str, model: str) -> Row:
    """The row of what was emitted until a model reached the target."""
    return _row(label, partial(emitted_to, model=model), f"to_target.{model}.total", main=True)


def _row(label: str, cell: Callable[[Compared], str], place: str, *, main: bool) -> Row:
    """A row of an amount of ``Summary.carbon``."""
    of = partial(_amount_at, place=place.split("."))
    return Row(
        label,
        cell,
        main,
        figure=lambda run: amount.grams if (amount := of(run)) else None,
        unit="g",
        better="lower",
        key=f"carbon.{place}.grams",
        bounds=lambda run: amount.between if (amount := of(run)) else None,
        complete=lambda run: (amount := of(run)) is None or amount.known == amount.clients,
    )


def _amount_at(run: Summary, place: Sequence[str]) -> Amount | None:
    found: Any = run.carbon
    for name in place:
        found = found.get(name) if isinstance(found, Mapping) else getattr(found, name, None)
    return cast("Amount | None", found)


def emitted(one: Compared, component: str) -> str:
    """What a component emitted, or "total"; "-" where it is not counted."""
    found = [run.carbon.emitted if run.carbon else None for run in one.runs]
    return _amounts(one, [getattr(each, component) if each else None for each in found])


def emitted_to(one: Compared, model: str) -> str:
    """What was emitted until a model reached the target; "-" without the model."""
    if not any(run.carbon and model in run.accuracy for run in one.runs):
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
