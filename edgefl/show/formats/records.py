"""Runs, or their averages, as a table of numbers with a row for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from edgefl.analysis.groups import Group, numbers, seeds_together, spreads
from edgefl.analysis.published import RATIO, beside_runs
from edgefl.analysis.settings import differences
from edgefl.analysis.summary import Summary

_WORDS: dict[str, Callable[[Summary], str]] = {
    "method": lambda run: run.method,
    "dataset": lambda run: run.dataset or "",
    "engine": lambda run: run.engine,
    "status": lambda run: run.status,
    "stopped": lambda run: run.stopped or "",
    "run_id": lambda run: run.run_id,
    "run_dir": lambda run: run.run_dir,
}


# Of a number's columns: its mean, then what is known of it over seeds.
_ENDS = ("", "_sd", "_low95", "_high95")


class Records(NamedTuple):
    """A table of values.

    Attributes:
        heads: of its columns, the keys of ``edgefl compare --json``.
        rows: of values; None for none.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]


def records(runs: Sequence[Summary]) -> Records:
    """A row for each run, or for runs that differ in nothing but their seeds.

    The columns are ``name``; ``runs``, their number; ``seed``; the words of a run's record, of several runs
    each once; ``settings.KEY`` for each setting in which the rows differ; ``published.KEY`` for what a paper
    reports of such a run; and each number by its dotted key,
    in base units. Of several runs a number is the mean of those that have it; beside it ``KEY_sd`` is the
    standard deviation over seeds, of a sample (n - 1), and ``KEY_low95`` and ``KEY_high95`` are the ends of
    the mean's 95% interval. Those columns are left out where no row is of several.
    """
    groups = seeds_together(runs)
    settings = differences([one.settings for one in groups])
    settings.pop("seed", None)
    averaged = any(len(one.runs) > 1 for one in groups)
    figures = [_figures(one, averaged=averaged) for one in groups]
    keys = list(dict.fromkeys(key for each in figures for key in each))
    others = {f"settings.{key}": dict(enumerate(values)) for key, values in settings.items()}
    for one in (figure for paper in beside_runs(groups) for figure in paper.figures):
        if one.group is not None and one.unit != RATIO:
            others.setdefault(f"published.{one.figure}", {})[one.group] = one.published
    found = [
        [*_words(one), *(values.get(place) for values in others.values()), *map(figures[place].get, keys)]
        for place, one in enumerate(groups)
    ]
    return Records(["name", "runs", "seed", *_WORDS, *others, *keys], found)


def _words(one: Group) -> list[Any]:
    seeds = one.first.seed if len(one.runs) == 1 else "; ".join(str(run.seed) for run in one.runs)
    return [one.line, len(one.runs), seeds, *(_once(map(word, one.runs)) for word in _WORDS.values())]


def _once(words: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, words)))


def _figures(one: Group, *, averaged: bool) -> dict[str, float | None]:
    """The numbers, each before its deviation and its interval if some row has any."""
    if len(one.runs) == 1:
        alone = numbers(one.first)
        ends = _ENDS if averaged else _ENDS[:1]
        return {f"{key}{end}": None if end else value for key, value in alone.items() for end in ends}
    figures: dict[str, float | None] = {}
    for key, found in spreads(one.runs).items():
        low, high = found.interval_95 or (None, None)
        values = found.mean, found.deviation_over_seeds, low, high
        figures |= {f"{key}{end}": value for end, value in zip(_ENDS, values, strict=True)}
    return figures
