"""FedCurv against Shoham et al. 2019, Equation 3, written out in NumPy."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from complex_step import Arrays, gradient
from rounds import (
    COHORTS,
    SAMPLES,
    SIZE,
    Rounds,
    arrays,
    batches,
    check,
    data,
    descended,
    initial,
    loss,
    mean,
)

PENALTY = 0.7


def fisher(w: Arrays, client: int, temperature: float) -> Arrays:
    """The mean over the client's samples of each sample's squared gradient."""
    x, y = data(client)
    slopes = [
        gradient(lambda at, i=i: loss(at, (x[i : i + 1], y[i : i + 1]), temperature), w)
        for i in range(len(y))
    ]
    return {name: np.mean([slope[name] ** 2 for slope in slopes], axis=0) for name in w}


class Worked:
    """The penalty in its first form: sum over j != k of (w - w_j)^T diag(u_j) (w - w_j)."""

    def __init__(self) -> None:
        self.w = initial()
        # (u_j, w_j) of the last round's participants.
        self.last: dict[int, tuple[Arrays, Arrays]] = {}

    def round(self, cohort: tuple[int, ...], temperature: float = 1.0) -> None:
        """Some clients train, and measure their Fisher information; the server averages."""
        trained, found = [], {}
        for k in cohort:

            def objective(at: Arrays, batch: Any, k: int = k) -> Any:
                others = [pair for j, pair in self.last.items() if j != k]
                pulls = [
                    (u[name] * (at[name] - w_j[name]) ** 2).sum() for u, w_j in others for name in self.w
                ]
                return loss(at, batch, temperature) + PENALTY * sum(pulls)

            w_k = descended(self.w, k, objective=objective)
            found[k] = fisher(w_k, k, temperature), w_k
            trained.append(w_k)
        self.w, self.last = mean(trained, [SAMPLES[k] for k in cohort]), found


@pytest.mark.parametrize(("order", "temperature"), [("alone", 1.0), ("outside", 0.5), ("inside", 0.5)])
def test_fedcurv_pulls_to_the_others(order: str, temperature: float):
    """Weights agree over rounds in which a client's own Fisher information is in the sums, or is too old.

    FLex&Chill on FedCurv, and FedCurv on FLex&Chill: the Fisher information is that at the temperature.
    """
    cold = {"name": "flexchill", "temperature": temperature}
    ours = {
        "alone": partial(Rounds, "fedcurv", penalty=PENALTY),
        "outside": partial(Rounds, **cold, base={"name": "fedcurv", "penalty": PENALTY}),
        "inside": partial(Rounds, "fedcurv", penalty=PENALTY, base=cold),
    }[order]()
    theirs = Worked()
    for cohort in (*COHORTS, (0, 1, 3)):
        ours.round(cohort)
        theirs.round(cohort, temperature)
        check(ours.global_model(), theirs.w)
        for k in cohort:
            u, w_k = theirs.last[k]
            own = ours.states[k]["fedcurv"]
            check(arrays(own["fisher"]), u)
            check(arrays(own["product"]), {name: u[name] * w_k[name] for name in u})
        sums = arrays(ours.server["fedcurv"]["sums"]["fisher"])
        check(sums, {name: sum(u[name] for u, _ in theirs.last.values()) for name in sums})


def test_the_length_of_the_fisher_phase():
    """S samples are ceil(s / B) steps, which are not reported."""
    (train, phase) = Rounds("fedcurv", samples=3 * SIZE + 1).exchange.work.phases
    assert phase.passes.steps == 4
    assert (train.reports, phase.reports) == (True, False)


def test_a_client_that_was_not_merged_takes_nothing_from_the_sums():
    """A client that worked but came too late has a state of its own that the sums do not have."""
    ours = Rounds("fedcurv", penalty=PENALTY).round((0, 1))
    _, late = ours.work(2, ours.exchange.down(ours.server, 2))
    ours.states[2] = late
    upload, _ = ours.work(2, ours.exchange.down(ours.server, 2))
    last = {k: (arrays(ours.states[k]["fedcurv"]["fisher"]), arrays(ours.uploads[k])) for k in (0, 1)}
    w = ours.global_model()

    def objective(at: Arrays, batch: Any) -> Any:
        return loss(at, batch) + PENALTY * sum(
            (u[name] * (at[name] - w_k[name]) ** 2).sum() for u, w_k in last.values() for name in w
        )

    check({name: arrays(upload)[name] for name in w}, descended(w, 2, objective=objective))
    assert len(batches(2)) == 1
