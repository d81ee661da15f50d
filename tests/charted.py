"""Runs with evaluations that a test gives, for charts of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import numpy as np

from edgefl.core.corners import Interval
from edgefl.core.ledger import EnergyTotal
from edgefl.report.averages import Compared
from edgefl.report.charts import Chart, Choice, drawn
from edgefl.report.history import History


def history(accuracies, *, seconds=10.0, joules=5.0, known=2, first=0, model="global") -> History:
    """A history of rounds from ``first`` on; a round takes such seconds and joules."""
    accuracy = np.array(accuracies, dtype=float)
    rounds = np.arange(len(accuracy)) + first
    ones = np.ones(len(rounds), dtype=np.int64)
    return History(
        model, rounds + 1, rounds, seconds * rounds, 100 * rounds, joules * rounds, known * ones,
        2 * ones, 3.0 * rounds, tuple(rounds.tolist()), accuracy, 1 - accuracy,
    )  # fmt: skip


def chart_of(groups: Mapping[str, Sequence[Sequence[History]]], choice: Choice | None = None) -> Chart:
    """The chart of groups: by name, the histories of each of their runs."""
    compared, by_run = [], {}
    for name, runs in groups.items():
        named = [
            SimpleNamespace(
                seed=seed,
                evaluated_on="test",
                energy=EnergyTotal(1.0, int(mine[0].energy_known[-1]) if mine else 2, 2),
                joules_between=Interval(204.0, None),
            )
            for seed, mine in enumerate(runs)
        ]
        by_run |= {id(run): {one.model: one for one in mine} for run, mine in zip(named, runs, strict=True)}
        compared.append(Compared(name, tuple(named)))
    return drawn(compared, lambda run: by_run[id(run)], choice or Choice())
