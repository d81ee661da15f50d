"""FedDyn against Acar et al. 2021, Algorithm 1, written out in NumPy."""

from __future__ import annotations

from typing import Any

from complex_step import Arrays
from rounds import COHORTS, N, Rounds, arrays, check, descended, initial, loss, mean, zero

ALPHA = 0.3


class Worked:
    """Algorithm 1: a linear term of the client's own, and the server's h."""

    def __init__(self, **settings: float) -> None:
        self.w, self.h, self.own, self.settings = initial(), zero(), [zero() for _ in range(N)], settings

    def round(self, cohort: tuple[int, ...], temperature: float = 1.0) -> None:
        """Some clients train and renew their h_k; the server renews h, and moves."""
        w, trained = self.w, []
        for k in cohort:

            def objective(at: Arrays, batch: Any, k: int = k) -> Any:
                linear = sum((self.own[k][name] * at[name]).sum() for name in w)
                away = sum(((at[name] - w[name]) ** 2).sum() for name in w)
                return loss(at, batch, temperature) - linear + ALPHA / 2 * away

            w_k = descended(w, k, objective=objective, **self.settings)
            self.own[k] = {name: self.own[k][name] - ALPHA * (w_k[name] - w[name]) for name in w}
            trained.append(w_k)
        moves = {name: sum(w_k[name] - w[name] for w_k in trained) for name in w}
        self.h = {name: self.h[name] - ALPHA / N * moves[name] for name in w}
        centre = mean(trained)
        self.w = {name: centre[name] - self.h[name] / ALPHA for name in w}


def test_feddyn_is_algorithm_1():
    """Weights, h and every h_k agree after every round, with clients that come and go."""
    ours, theirs = Rounds("feddyn", alpha=ALPHA, momentum=0.9), Worked(momentum=0.9)
    for cohort in COHORTS:
        ours.round(cohort)
        theirs.round(cohort)
        check(ours.global_model(), theirs.w)
        check(arrays(ours.server["feddyn"]), theirs.h)
        for k in range(N):
            check(arrays(ours.states[k]["feddyn"]), theirs.own[k])
