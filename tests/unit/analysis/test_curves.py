"""Curves: what is taken together of runs that differ in nothing but their seeds."""

from types import SimpleNamespace

import numpy as np
import pytest

from edgefl.analysis.curves import curves
from edgefl.analysis.groups import SeedGroup
from edgefl.analysis.history import History
from edgefl.core.event import EnergyTotal


def history(rounds, accuracies, *, seconds=10.0, joules=5.0, known=2):
    rounds = np.array(rounds)
    ones = np.ones(len(rounds), dtype=np.int64)
    accuracy = np.array(accuracies, dtype=float)
    spent = rounds + 1.0
    return History(
        "global", rounds + 1, rounds, seconds * spent, 100 * (rounds + 1), joules * spent, known * ones,
        2 * ones, 3 * spent, 0.5 * spent, accuracy, 1 - accuracy,
    )  # fmt: skip


def group(*runs):
    energy = EnergyTotal(1.0, 2, 2)
    named = [SimpleNamespace(seed=1 + place, energy=energy, clients=2) for place, _ in enumerate(runs)]
    by_run = {id(run): {one.model: one} for run, one in zip(named, runs, strict=True)}
    return curves([SeedGroup("one", tuple(named))], lambda run: by_run[id(run)])


def test_a_run_of_one_client_is_a_line_beside_others():
    """As long as their curves, at what it ended with; alone, or among its like, it is a curve."""
    energy = EnergyTotal(1.0, 2, 2)
    runs = [SimpleNamespace(seed=1, energy=energy, clients=clients) for clients in (2, 1)]
    found = {id(runs[0]): history([0, 1], [0.1, 0.5]), id(runs[1]): history([0, 1, 2], [0.3, 0.9, 0.8])}

    def drawn(*chosen):
        compared = [SeedGroup("one", (run,)) for run in chosen]
        return curves(compared, lambda run: {"global": found[id(run)]})

    federated, centralised = drawn(*runs)
    assert federated.accuracy.tolist() == [0.1, 0.5]
    assert centralised.accuracy.tolist() == [0.8, 0.8]
    assert {axis: x.tolist() for axis, x in centralised.x.items()} == {
        axis: [0, x[-1]] for axis, x in federated.x.items()
    }
    (alone,) = drawn(runs[1])
    assert alone.accuracy.tolist() == [0.3, 0.9, 0.8]


def test_runs_of_unlike_length_end_in_the_mean_of_their_last_evaluations():
    """Rounds 0 and 2 are in both; rounds 5 and 8 are the last ones; round 4 is in one alone."""
    (curve,) = group(history([0, 2, 5], [0.1, 0.2, 0.9]), history([0, 2, 4, 8], [0.3, 0.4, 0.5, 0.7]))
    assert curve.accuracy == pytest.approx([0.2, 0.3, 0.8])
    assert curve.round == pytest.approx([0, 2, 6.5])
    assert curve.x["bytes"] == pytest.approx([100, 300, 750])
    assert curve.left_out == 1


def test_an_evaluation_after_the_exchanges_at_the_end_is_none_of_a_round():
    """A run that was evaluated twice after round 1, by and by, has its last one with the others' last."""
    (curve,) = group(history([0, 1, 1], [0.1, 0.2, 0.6]), history([0, 1, 2, 3], [0.1, 0.2, 0.3, 0.8]))
    assert curve.accuracy == pytest.approx([0.1, 0.2, 0.7])
    assert (curve.round[-1], curve.left_out) == (2, 1)
