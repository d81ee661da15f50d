"""SCAFFOLD against Karimireddy et al. 2020, Algorithm 1, written out in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from complex_step import gradient
from rounds import (
    COHORTS,
    RATE,
    SAMPLES,
    Arrays,
    N,
    Rounds,
    arrays,
    batches,
    check,
    data,
    descended,
    initial,
    loss,
    mean,
    zero,
)


def weight_of_gradients(steps: int, momentum: float, *, nesterov: bool) -> float:
    """By how many learning rates the weights move under gradients of 1."""
    speed = moved = 0.0
    for _ in range(steps):
        speed = momentum * speed + 1
        moved += 1 + momentum * speed if nesterov else speed
    return moved


class Worked:
    """Algorithm 1: server and clients of control variates."""

    def __init__(self, **settings: Any) -> None:
        self.w, self.c, self.own = initial(), zero(), [zero() for _ in SAMPLES]
        self.settings = {"momentum": 0.0, "nesterov": False, **settings}

    def round(
        self,
        cohort: tuple[int, ...],
        option: str = "II",
        weights: str = "equal",
        server_lr: float = 1.0,
        temperature: float = 1.0,
    ) -> None:
        """Some clients train and renew their control variates; the server renews w and c."""

        def objective(w: Arrays, batch: Any) -> Any:
            return loss(w, batch, temperature)

        trained, changes = [], []
        for k in cohort:
            shift = {name: self.c[name] - self.own[k][name] for name in self.c}
            w_k = descended(self.w, k, shift, objective=objective, **self.settings)
            if option == "I":
                new = gradient(lambda w, k=k: objective(w, data(k)), self.w)
            else:
                length = weight_of_gradients(len(batches(k)), **self.settings) * RATE
                new = {name: (self.w[name] - w_k[name]) / length - shift[name] for name in w_k}
            changes.append({name: new[name] - self.own[k][name] for name in new})
            trained.append(w_k)
            self.own[k] = new
        merged = mean(trained, [SAMPLES[k] for k in cohort] if weights == "samples" else None)
        self.w = {name: self.w[name] + server_lr * (merged[name] - self.w[name]) for name in self.w}
        change = mean(changes)
        self.c = {name: self.c[name] + len(cohort) / N * change[name] for name in self.c}


@pytest.mark.parametrize(
    ("optimizer", "settings"),
    [
        ({"momentum": 0.9}, {"weights": "samples"}),
        ({"momentum": 0.6, "nesterov": True}, {"server_lr": 0.7}),
        ({}, {"option": "I", "server_lr": 1.5}),
    ],
    ids=["momentum", "nesterov", "option I"],
)
def test_scaffold_is_algorithm_1(optimizer: dict[str, Any], settings: dict[str, Any]):
    """Weights and all control variates agree after every round, with clients that come and go."""
    ours, theirs = Rounds("scaffold", **optimizer, **settings), Worked(**optimizer)
    for cohort in COHORTS:
        ours.round(cohort)
        theirs.round(cohort, **settings)
        check(ours.global_model(), theirs.w)
        check(arrays(ours.server["scaffold"]["control"]), theirs.c)
        for k in range(N):
            check(arrays(ours.states[k]["scaffold"]["control"]), theirs.own[k])


def test_scaffold_on_fedprox_corrects_the_pulled_gradients():
    """After one step, c_k is the gradient of the whole objective; the pull itself is 0 there."""
    pulled = Rounds("scaffold", base={"name": "fedprox", "mu": 0.5})
    plain = Rounds("scaffold")
    for each in (pulled, plain):
        each.round((2,))
    assert len(batches(2)) == 1
    check(arrays(pulled.states[2]["scaffold"]["control"]), arrays(plain.states[2]["scaffold"]["control"]))
    for each in (pulled, plain):
        each.round((1,))
    differ = arrays(pulled.states[1]["scaffold"]["control"]), arrays(plain.states[1]["scaffold"]["control"])
    assert not np.allclose(differ[0]["head/weight"], differ[1]["head/weight"])
