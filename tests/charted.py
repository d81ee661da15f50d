"""Runs with evaluations that a test gives, for charts of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np

from edgefl.analysis.groups import SeedGroup
from edgefl.analysis.history import History, Reached, Target, Waste
from edgefl.analysis.summary import Accuracy, Summary
from edgefl.core.corners import Interval
from edgefl.core.event import EnergyTotal
from edgefl.runs.dry import dry_run
from edgefl.show.charts import Chart, PlotChoice, reached
from edgefl.show.charts import chart_of as drawn


def history(accuracies, *, seconds=10.0, joules=5.0, known=2, first=0, model="global") -> History:
    """A history of rounds from ``first`` on; a round takes such seconds and joules."""
    accuracy = np.array(accuracies, dtype=float)
    rounds = np.arange(len(accuracy)) + first
    ones = np.ones(len(rounds), dtype=np.int64)
    return History(
        model, rounds + 1, rounds, seconds * rounds, 100 * rounds, joules * rounds, known * ones,
        2 * ones, 3.0 * rounds, 0.5 * rounds, accuracy, 1 - accuracy,
    )  # fmt: skip


def chart_of(groups: Mapping[str, Sequence[Sequence[History]]], choice: PlotChoice | None = None) -> Chart:
    """The chart of groups: by name, the histories of each of their runs."""
    compared, by_run = [], {}
    for name, runs in groups.items():
        named = [
            SimpleNamespace(
                seed=seed,
                clients=2,
                evaluated_on="test",
                energy=EnergyTotal(1.0, int(mine[0].energy_known[-1]) if mine else 2, 2),
                joules_between=Interval(204.0, None),
            )
            for seed, mine in enumerate(runs)
        ]
        by_run |= {id(run): {one.model: one for one in mine} for run, mine in zip(named, runs, strict=True)}
        compared.append(SeedGroup(name, tuple(named)))
    return drawn(compared, lambda run: by_run[id(run)], choice or PlotChoice())


@cache
def _dry() -> Summary:
    (run,) = dry_run("quickstart", ["sweep=null", "server.rounds=1"])
    return replace(
        run.summary,
        accuracy={"global": Accuracy(0.9, None, 1, None, None, None)},
        evaluated_on="test",
        status="done",
    )


def target_chart(
    spent: Mapping[str, Sequence[float | None]], choice: PlotChoice, target: float | None = 0.5
) -> Chart:
    """The chart of what runs spent until their targets: by name, each seed's seconds, bytes and joules."""

    def run(name: str, seed: int, cost: float | None, target: float | None) -> Summary:
        at = None
        if cost is not None:
            bounds, energy = Interval(cost / 2, 2 * cost), EnergyTotal(cost, 2, 2)
            waste = Waste(0, 0.0, 0.0)
            at = Reached(
                cost, 3, int(cost), 1, energy, 0.9, waste, None, t_s_between=bounds, joules_between=bounds
            )
        settings = {"seed": seed, "name": name}
        found = replace(_dry(), name=name, seed=seed, settings=settings, fleet_id="one")
        return replace(found, target=None if target is None else Target(target, at, None))

    return reached(
        [
            [run(name, seed, cost, each) for name, costs in spent.items() for seed, cost in enumerate(costs)]
            for each in choice.targets or [target]
        ],
        choice,
    )
