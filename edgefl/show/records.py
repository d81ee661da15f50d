"""Runs, or their averages, as a table of numbers with a row for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgefl.analysis.groups import SeedGroup, seeds_together, spreads
from edgefl.analysis.published import RATIO, beside_runs
from edgefl.analysis.settings import differences
from edgefl.analysis.summary import Summary

_WORDS = ("method", "dataset", "engine", "status", "stopped", "run_id", "run_dir")
# Of a number's columns: its mean, then what is known of it over seeds.
_ENDS = ("", "_sd", "_low95", "_high95")


def records(runs: Sequence[Summary]) -> tuple[list[str], list[list[Any]]]:
    """The columns' heads, and a row for each run, or for runs that differ in nothing but their seeds.

    The columns are ``name``; ``runs``, their number; ``seed``; the words of a run's record, of several runs
    each once; ``settings.KEY`` for each setting in which the rows differ; ``published.KEY`` for what a paper
    reports of such a run; and each number by its dotted key, in base units. Of several runs a number is the
    mean of those that have it; beside it ``KEY_sd`` is the standard deviation over seeds, of a sample
    (n - 1), and ``KEY_low95`` and ``KEY_high95`` are the ends of the mean's 95% interval. Those columns are
    left out where no row is of several.
    """
    groups = seeds_together(runs)
    settings = differences([one.settings for one in groups])
    settings.pop("seed", None)
    averaged = any(len(one.runs) > 1 for one in groups)
    figures = [_row_figures(one, averaged=averaged) for one in groups]
    keys = list(dict.fromkeys(key for each in figures for key in each))
    others = {f"settings.{key}": dict(enumerate(values)) for key, values in settings.items()}
    for figure in (each for paper in beside_runs(groups) for each in paper.figures):
        if figure.group is not None and figure.unit != RATIO:
            others.setdefault(f"published.{figure.figure}", {})[figure.group] = figure.published
    found = []
    for place, one in enumerate(groups):
        seeds = one.first.seed if len(one.runs) == 1 else "; ".join(str(run.seed) for run in one.runs)
        told = (dict.fromkeys(getattr(run, word) or "" for run in one.runs) for word in _WORDS)
        words = ("; ".join(filter(None, each)) for each in told)
        more = (values.get(place) for values in others.values())
        found.append([one.line, len(one.runs), seeds, *words, *more, *map(figures[place].get, keys)])
    return ["name", "runs", "seed", *_WORDS, *others, *keys], found


def _row_figures(one: SeedGroup, *, averaged: bool) -> dict[str, float | None]:
    """The numbers, each before its deviation and its interval if some row has any."""
    if len(one.runs) == 1:
        alone = one.first.numbers
        ends = _ENDS if averaged else _ENDS[:1]
        return {f"{key}{end}": None if end else value for key, value in alone.items() for end in ends}
    figures: dict[str, float | None] = {}
    for key, found in spreads(one.runs).items():
        low, high = found.interval_95 or (None, None)
        values = found.mean, found.deviation_over_seeds, low, high
        figures |= {f"{key}{end}": value for end, value in zip(_ENDS, values, strict=True)}
    return figures
