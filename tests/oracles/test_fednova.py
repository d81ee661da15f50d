"""FedNova against Wang et al. 2020, Equations 5-9, written out in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from complex_step import Arrays
from rounds import COHORTS, RATE, SAMPLES, Rounds, batches, check, descended, initial, loss


def matrix_a(steps: int, momentum: float, mu: float, *, nesterov: bool) -> float:
    """The sum of a_k: each gradient's weight in w - w_k over the rate, from the solver as a linear map.

    The state (move, momentum) after a step is M times the state before plus the gradient's own part.
    """
    pull = RATE * mu
    speed = np.array([-pull, momentum])
    gain = 1 + momentum if nesterov else 1.0
    step = np.array([1 - pull * gain, momentum * (momentum if nesterov else 1.0)])
    m, own = np.array([step, speed]), np.array([gain, 1.0])
    return sum((np.linalg.matrix_power(m, steps - 1 - s) @ own)[0] for s in range(steps))


def worked_round(
    w: Arrays, cohort: tuple[int, ...], mu: float, momentum: float = 0.0, *, nesterov: bool = False
) -> Arrays:
    """d_k = (w - w_k) / a_k, tau = sum p_k a_k, w - tau sum p_k d_k."""

    def objective(at: Arrays, batch: Any) -> Any:
        return loss(at, batch) + mu / 2 * sum(((at[name] - w[name]) ** 2).sum() for name in w)

    total = sum(SAMPLES[k] for k in cohort)
    tau, direction = 0.0, {name: 0.0 * value for name, value in w.items()}
    for k in cohort:
        w_k = descended(w, k, objective=objective, momentum=momentum, nesterov=nesterov)
        a = matrix_a(len(batches(k)), momentum, mu, nesterov=nesterov)
        p = SAMPLES[k] / total
        tau += p * a
        direction = {name: direction[name] + p * (w[name] - w_k[name]) / a for name in w}
    return {name: w[name] - tau * direction[name] for name in w}


@pytest.mark.parametrize(
    ("optimizer", "mu"),
    [
        ({}, 0.0),
        ({"momentum": 0.9}, 0.8),
        ({"momentum": 0.6, "nesterov": True}, 0.8),
    ],
    ids=["plain", "momentum and proximal", "nesterov and proximal"],
)
def test_fednova_normalises_by_the_gradients_in_each_move(optimizer: dict[str, Any], mu: float):
    """The server's weights agree over rounds of clients with 1 to 4 steps."""
    assert len({len(batches(k)) for k in range(len(SAMPLES))}) > 1
    ours, w = Rounds("fednova", mu=mu, **optimizer), initial()
    for cohort in COHORTS:
        w = worked_round(w, cohort, mu, **optimizer)
        check(ours.round(cohort).global_model(), w)


def test_fednova_works_over_any_merge():
    """Over FedOpt, the server's optimizer is given the normalised move."""
    ours = Rounds("fednova", base={"name": "fedopt", "optimizer": "avgm", "lr": 0.5, "beta1": 0.0})
    w = initial()
    normal = worked_round(w, COHORTS[0], 0.0)
    check(ours.round(COHORTS[0]).global_model(), {name: (w[name] + normal[name]) / 2 for name in w})
