"""Accuracy against virtual time as a line of block characters, which a terminal shows among figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from edgefl.core.units import show_seconds, show_share
from edgefl.report.averages import Compared, Row
from edgefl.report.curves import Curve
from edgefl.report.formats.texts import Note
from edgefl.report.tables import MISSING

# ``texts.spelled`` has a character of ASCII for each.
BLOCKS = "▁▂▃▄▅▆▇█"
NO_VALUE = "·"
# As wide as the narrowest column of figures.
_WIDTH = 14
# A line has two ends.
_TWO = 2
_ONCE = "one evaluation"


class Scale(NamedTuple):
    """What all lines have in common.

    Attributes:
        until_s: the virtual time at their right end; 0 is at the left one.
        low, high: the accuracies of the lowest and the highest block.
    """

    until_s: float
    low: float
    high: float


class Sparklines:
    """The lines of some groups of runs, on one scale.

    Args:
        compared: the groups.
        curves: theirs.
    """

    def __init__(self, compared: Sequence[Compared], curves: Sequence[Curve]) -> None:
        self._curves = {(id(compared[curve.group]), curve.model): curve for curve in curves}
        drawn = [_points(curve) for curve in curves if len(_points(curve)[0]) >= _TWO]
        self._scale = _scale(drawn) if drawn else None
        self._averaged = any(len(curve.seeds) > 1 for curve in curves)

    def row(self, model: str) -> Row:
        """The row of a model's lines."""
        return Row(f"  over time, {model}", partial(self._cell, model=model), main=True)

    def notes(self) -> Iterator[Note]:
        """What the lines' ends are."""
        if self._scale is not None:
            until_s, *ends = self._scale
            low, high = (show_share(end, 1) for end in ends)
            blocks = f"{BLOCKS[0]} {low} to {BLOCKS[-1]} {high}"
            means = "; means over seeds" if self._averaged else ""
            yield Note(f"over time: {blocks}, from 0 to {show_seconds(until_s)}{means}", "dim")

    def _cell(self, one: Compared, model: str) -> str:
        curve = self._curves.get((id(one), model))
        t_s, accuracy = _points(curve) if curve else (np.zeros(0), np.zeros(0))
        if self._scale is None or len(t_s) < _TWO:
            return _ONCE if len(t_s) else MISSING
        return sparkline(t_s, accuracy, self._scale)


def _points(curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    """The times and accuracies of a curve where both are numbers."""
    known = np.isfinite(curve.accuracy) & np.isfinite(curve.x["time"])
    return curve.x["time"][known], curve.accuracy[known]


def _scale(drawn: Sequence[tuple[np.ndarray, np.ndarray]]) -> Scale:
    accuracies = np.concatenate([accuracy for _, accuracy in drawn])
    return Scale(max(float(t_s[-1]) for t_s, _ in drawn), float(accuracies.min()), float(accuracies.max()))


def sparkline(t_s: np.ndarray, accuracy: np.ndarray, scale: Scale) -> str:
    """A line of blocks, each of the last accuracy by its end.

    Before the first evaluation and after the last one there is a dot.

    Args:
        t_s: virtual times, ascending.
        accuracy: at each of them.
        scale: the line's ends.
    """
    last = np.minimum(np.searchsorted(_ends(scale), t_s, side="left"), _WIDTH - 1)
    places = np.searchsorted(last, np.arange(_WIDTH), side="right") - 1
    span = scale.high - scale.low
    share = (accuracy - scale.low) / span if span else np.full(len(accuracy), 0.5)
    blocks = np.minimum((share * len(BLOCKS)).astype(int), len(BLOCKS) - 1)
    drawn = range(last[0], last[-1] + 1)
    return "".join(BLOCKS[blocks[place]] if cell in drawn else NO_VALUE for cell, place in enumerate(places))


def _ends(scale: Scale) -> np.ndarray:
    """The time at which each block ends."""
    return scale.until_s * np.arange(1, _WIDTH + 1) / _WIDTH
