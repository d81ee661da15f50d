"""What it took to reach a target accuracy, and what was emitted, as rows of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple, cast

from edgefl.analysis.carbon import Amount
from edgefl.analysis.reached import Evaluated, Reached
from edgefl.core.corners import Interval
from edgefl.core.units import show_bytes, show_flops, show_joules, show_seconds
from edgefl.show.averages import Better, Compared, Row, Show
from edgefl.show.intervals import Covered, bounded, covered, covered_rows
from edgefl.show.summary import Summary
from edgefl.show.table import MISSING, NOT_REACHED, UNKNOWN


def to_target(runs: Sequence[Summary], models: Sequence[str]) -> Iterator[Row]:
    """The rows of each of the models, if any run has a target."""
    name = target_name(runs)
    if not name:
        return
    if name == _ITS:
        yield Row("target", lambda one: one.all(_target))
    for model in models:
        found = [reached for run in runs if (reached := _reached(run, model))]
        for label, took in _TOOK.items():
            if label in _WASTED and not any(took.figure(reached) for reached in found):
                continue
            row = _row(f"{label} to {name}, {model}", model, took)
            if label == "energy":
                nothing = partial(_took, model=model, took=took)
                yield from covered_rows(row, runs, partial(_energy, model=model), nothing)
            else:
                yield row
            # Of bytes, work and energy ``--json`` has it, which keeps the table to a screen.
            if label == "time" and any(reached.last_below for reached in found):
                yield _row(BELOW, model, took._replace(better="", below=True))
        if any(run.carbon for run in runs):
            yield from emission_to_rows(f"CO2e to {name}, {model}", model, runs)


def useful_to_target(runs: Sequence[Summary], model: str) -> Iterator[Row]:
    """What a model's way to the target took of bytes and energy less what of it was wasted."""
    for label, took in _USEFUL.items():
        yield _row(f"{label} to {target_name(runs)}, {model}", model, took._replace(better=""))


_ITS = "its target"


def target_name(runs: Sequence[Summary]) -> str:
    """How the runs' target is called; empty without any."""
    targets = {run.target.accuracy for run in runs if run.target}
    return _ITS if len(targets) > 1 else "".join(map(_percent, targets))


BELOW = "  last evaluation below"
"""The time that it took at least to reach the target."""


class _Took(NamedTuple):
    """A figure of what it took, as text and with its bounds.

    Attributes:
        show: a number as text.
        unit, better: as of ``Row``.
        key: its place in the document of an evaluation, which ``{}`` stands for if there are two places.
        figure, bounds: the number and its bounds.
        below: whether it is that of the last evaluation below the target.
    """

    show: Show
    unit: str
    key: str
    figure: Callable[[Evaluated], float | None]
    bounds: Callable[[Evaluated], Interval | None] = lambda _: None
    better: Better = "lower"
    below: bool = False

    def evaluation(self, run: Summary, model: str) -> Evaluated | None:
        """The one that the figure is of; None if the target was not reached, or none was below it."""
        reached = _reached(run, model)
        return reached.last_below if reached and self.below else reached


def _wasted_joules(reached: Evaluated) -> float | None:
    """None unless it is that of all clients."""
    return None if covered(reached.energy, None).whole is None else reached.wasted.joules


_TOOK = {
    "rounds": _Took("{:.4g}".format, "", "rounds", lambda reached: reached.rounds),
    "time": _Took(show_seconds, "s", "t_s", lambda reached: reached.t_s, lambda reached: reached.t_s_between),
    "bytes": _Took(show_bytes, "B", "bytes", lambda reached: reached.bytes),
    "work": _Took(show_flops, "FLOP", "flops", lambda reached: reached.flops),
    "energy": _Took(
        show_joules,
        "J",
        "joules",
        lambda reached: reached.energy.joules,
        lambda reached: reached.joules_between,
    ),
    "wasted bytes": _Took(show_bytes, "B", "wasted.bytes", lambda reached: reached.wasted.bytes),
    "wasted energy": _Took(show_joules, "J", "wasted.joules", _wasted_joules),
}
# Shown where something was wasted; ``--json`` has the time of clients too.
_WASTED = {"wasted bytes", "wasted energy"}


def _useful_joules(reached: Evaluated) -> float | None:
    joules, wasted = reached.energy.joules, _wasted_joules(reached)
    return None if joules is None or wasted is None else joules - wasted


# More of it is neither better nor worse.
_USEFUL = {
    "useful bytes": _Took(show_bytes, "B", "bytes - {}wasted.bytes", lambda at: at.bytes - at.wasted.bytes),
    "useful energy": _Took(show_joules, "J", "joules - {}wasted.joules", _useful_joules),
}


def _row(label: str, model: str, took: _Took) -> Row:
    def of(part: Callable[[Evaluated], Any]) -> Callable[[Summary], Any]:
        return lambda run: part(found) if (found := took.evaluation(run, model)) else None

    place = f"target.{model}.{'last_below.' if took.below else ''}"
    return Row(
        label,
        partial(_took, model=model, took=took),
        figure=of(took.figure),
        unit=took.unit,
        better=took.better,
        key=place + took.key.format(place),
        bounds=of(took.bounds),
    )


def _energy(run: Summary, model: str) -> Covered | None:
    found = _reached(run, model)
    return covered(found.energy, found.joules_between) if found else None


def _target(run: Summary) -> str:
    return _percent(run.target.accuracy) if run.target else MISSING


def _percent(target: float) -> str:
    """A target with all digits that it was given with."""
    return f"{(Decimal(repr(target)) * 100).normalize():f}%"


def _took(one: Compared, model: str, took: _Took) -> str:
    """What it took; "-" without a target or the model, other than where the target is not reached."""
    if one.first.target is None or not any(model in run.accuracy for run in one.runs):
        return MISSING
    found = {id(run): spent for run in one.runs if (spent := took.evaluation(run, model))}
    nothing = MISSING if took.below else NOT_REACHED
    return _spent(one, found, took) if found else nothing


def _spent(one: Compared, found: Mapping[int, Evaluated], took: _Took) -> str:
    """A figure of what some of the runs had spent at an evaluation, by the runs' identities."""

    def of(part: Callable[[Evaluated], Any]) -> Callable[[Summary], Any]:
        return lambda run: part(found[id(run)]) if id(run) in found else None

    return bounded(one, took.show, of(took.figure), of(took.bounds), UNKNOWN)


def _reached(run: Summary, model: str) -> Reached | None:
    if run.target is None:
        return None
    return run.target.personal if model == "personal" else run.target.global_


def emission_rows(label: str, component: str, runs: Sequence[Summary]) -> Iterator[Row]:
    """The rows of what a component emitted, or "total"."""
    yield from _emissions(label, f"emitted.{component}", runs)


def emission_to_rows(label: str, model: str, runs: Sequence[Summary]) -> Iterator[Row]:
    """The rows of what was emitted until a model reached the target."""
    yield from _emissions(label, f"to_target.{model}.total", runs)


def _emissions(label: str, place: str, runs: Sequence[Summary]) -> Iterator[Row]:
    """Those of an amount of ``Summary.carbon``."""
    model = place.split(".")[1]

    def amount(run: Summary) -> Covered | None:
        found = _amount_at(run, place.split("."))
        return Covered(found.grams, found.known, found.clients, found.between) if found else None

    def nothing(one: Compared) -> str:
        asked = place.startswith("to_") and one.first.target
        return NOT_REACHED if asked and any(r.carbon and model in r.accuracy for r in one.runs) else MISSING

    row = Row(label, nothing, unit="g", better="lower", key=f"carbon.{place}.grams")
    yield from covered_rows(row, runs, amount, nothing)


def _amount_at(run: Summary, place: Sequence[str]) -> Amount | None:
    found: Any = run.carbon
    for name in place:
        found = found.get(name) if isinstance(found, Mapping) else getattr(found, name, None)
    return cast("Amount | None", found)
