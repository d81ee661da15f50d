"""Measures beside the other figures of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from edgefl.core.units import show_share
from edgefl.report.averages import Row, amount
from edgefl.report.summary import Summary

# Of each measure, as many figures are shown: those that it gives first.
_MOST = 2


def measure_rows(runs: Sequence[Summary], most: int = _MOST) -> Iterator[Row]:
    """A row or two for each measure that some run has."""
    every = [(name, one) for run in runs for name, one in (run.measures or {}).items()]
    for name in dict.fromkeys(name for name, _ in every):
        same = [one for other, one in every if other == name]
        keys = [key for key in same[0].figures if not key.endswith(" std")][:most]
        for place, (key, words) in enumerate(zip(keys, _words(keys), strict=True)):
            show = partial(_shown, unit=same[0].unit)
            label = f"  {words}" if place else f"{name}, {words}"
            figure = partial(_figure, measure=name, key=key)
            at = f"measures.{name}.figures.{key}"
            yield amount(label, show, figure, same[0].unit, "", key=at)


def _words(keys: Sequence[str]) -> list[str]:
    """What tells figures of one measure apart: the figure, or the model where it has no name of its own."""
    split = [key.partition(" ") for key in keys]
    figures = [figure or model for model, _, figure in split]
    if len(set(figures)) == len(figures):
        return figures
    return [f"{figure}, {model}" for figure, (model, *_) in zip(figures, split, strict=True)]


def _shown(value: float, unit: str) -> str:
    return show_share(value, 1) if unit == "share" else f"{value:.3g} {unit}".strip()


def _figure(run: Summary, measure: str, key: str) -> float | None:
    found = (run.measures or {}).get(measure)
    return None if found is None else found.figures.get(key)
