"""FedDyn against Acar et al. 2021, Algorithm 1, written out in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from builders import same_trees
from complex_step import Arrays, gradient
from rounds import COHORTS, RATE, N, Rounds, arrays, batches, check, descended, initial, loss, mean, zero

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


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_feddyn_is_algorithm_1(momentum: float):
    """Weights, h and every h_k agree after every round, with clients that come and go."""
    ours, theirs = Rounds("feddyn", alpha=ALPHA, momentum=momentum), Worked(momentum=momentum)
    for cohort in COHORTS:
        ours.round(cohort)
        theirs.round(cohort)
        check(ours.global_model(), theirs.w)
        check(arrays(ours.server["feddyn"]), theirs.h)
        for k in range(N):
            check(arrays(ours.states[k]["feddyn"]), theirs.own[k])


def test_h_is_the_mean_of_the_clients():
    """The server's h is the mean of all h_k after any rounds, which the proof of the paper rests on."""
    ours = Rounds("feddyn", alpha=ALPHA)
    for cohort in COHORTS:
        ours.round(cohort)
        check(arrays(ours.server["feddyn"]), mean([arrays(state["feddyn"]) for state in ours.states]))


def test_h_takes_up_the_clients_gradient():
    """After one step from w, h_k has moved by alpha times the rate times the gradient of L_k there."""
    ours = Rounds("feddyn", alpha=ALPHA)
    w, h = ours.global_model(), arrays(ours.states[2]["feddyn"])
    payload = ours.exchange.down(ours.server, 2)
    upload, state = ours.work(2, payload)
    w_k, after = arrays(upload), arrays(state["feddyn"])
    slope = gradient(lambda at: loss(at, batches(2)[0]), w)
    for name, value in slope.items():
        np.testing.assert_allclose(after[name], h[name] + ALPHA * RATE * value, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(w_k[name], w[name] - RATE * value, rtol=1e-8, atol=1e-12)


def test_the_first_work_is_fedproxs():
    """With h_k still 0, a client does what FedProx's does at mu = alpha, to the bit."""
    ours, prox = Rounds("feddyn", alpha=ALPHA), Rounds("fedprox", mu=ALPHA)
    ours.round(COHORTS[0])
    prox.round(COHORTS[0])
    for client in COHORTS[0]:
        assert same_trees(ours.uploads[client], prox.uploads[client])
