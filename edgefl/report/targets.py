"""What it took to reach a target accuracy, as rows of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

from edgefl.core.corners import Interval
from edgefl.core.units import show_bytes, show_flops, show_joules, show_seconds
from edgefl.report.averages import Compared, Row, Show
from edgefl.report.emissions import emitted_to
from edgefl.report.intervals import bounded, energy_between
from edgefl.report.summary import Evaluated, Reached, Summary
from edgefl.report.tables import MISSING, NOT_REACHED, UNKNOWN


def to_target(runs: Sequence[Summary], models: Sequence[str]) -> Iterator[Row]:
    """The rows of each of the models, if any run has a target."""
    targets = {run.target.accuracy for run in runs if run.target}
    if not targets:
        return
    name = _percent(max(targets)) if len(targets) == 1 else "its target"
    if len(targets) > 1:
        yield Row("target", lambda one: one.all(_target), main=True)
    for model in models:
        for label, took in _TOOK.items():
            yield Row(f"{label} to {name}, {model}", partial(_took, model=model, took=took), main=True)
            # Of bytes, work and energy ``--json`` has it, which keeps the table to a screen.
            if label == "time" and any(
                reached.last_below for run in runs if (reached := _reached(run, model))
            ):
                yield Row(BELOW, partial(_took_at_least, model=model, took=took))
        if any(run.carbon for run in runs):
            yield Row(f"CO2e to {name}, {model}", partial(emitted_to, model=model), main=True)


BELOW = "  last evaluation below"
"""The time that it took at least to reach the target."""


class _Took(NamedTuple):
    """A figure of what it took, as text and with its bounds."""

    show: Show
    figure: Callable[[Evaluated], float | None]
    bounds: Callable[[Evaluated], Interval | None] = lambda _: None


_TOOK = {
    "time": _Took(show_seconds, lambda reached: reached.t_s, lambda reached: reached.t_s_between),
    "bytes": _Took(show_bytes, lambda reached: reached.bytes),
    "work": _Took(show_flops, lambda reached: reached.flops),
    "energy": _Took(
        show_joules, lambda reached: reached.energy.joules, lambda reached: reached.joules_between
    ),
}


def _target(run: Summary) -> str:
    return _percent(run.target.accuracy) if run.target else MISSING


def _percent(target: float) -> str:
    """A target with all digits that it was given with."""
    return f"{(Decimal(repr(target)) * 100).normalize():f}%"


def _took(one: Compared, model: str, took: _Took) -> str:
    """What it took; "-" without a target or the model, other than where the target is not reached."""
    if one.first.target is None or not any(model in run.accuracy for run in one.runs):
        return MISSING
    found = {id(run): reached for run in one.runs if (reached := _reached(run, model))}
    return _spent(one, found, took) if found else NOT_REACHED


def _took_at_least(one: Compared, model: str, took: _Took) -> str:
    """What it took until the last evaluation below the target, of the runs that reached it."""
    below = {
        id(run): reached.last_below
        for run in one.runs
        if (reached := _reached(run, model)) and reached.last_below
    }
    return _spent(one, below, took) if below else MISSING


def _spent(one: Compared, found: Mapping[int, Evaluated], took: _Took) -> str:
    """A figure of what some of the runs had spent at an evaluation, by the runs' identities."""
    if len(one.runs) == 1 and took.show is show_joules:
        return energy_between(found[id(one.first)].energy, found[id(one.first)].joules_between)

    def of(part: Callable[[Evaluated], Any]) -> Callable[[Summary], Any]:
        return lambda run: part(found[id(run)]) if id(run) in found else None

    return bounded(one, took.show, of(took.figure), of(took.bounds), UNKNOWN)


def _reached(run: Summary, model: str) -> Reached | None:
    if run.target is None:
        return None
    return run.target.personal if model == "personal" else run.target.global_
