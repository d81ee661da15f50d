"""FedOpt against Hsu et al. 2019 and Reddi et al. 2021, Algorithm 2, written out in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from builders import same_trees
from rounds import COHORTS, SAMPLES, Rounds, check, descended, initial, mean, zero

LR, BETA1, BETA2, EPS = 0.3, 0.8, 0.95, 0.02


class Server:
    """The papers' servers, without correction of bias; v begins at eps^2."""

    def __init__(self, kind: str) -> None:
        self.kind, self.w = kind, initial()
        self.m = zero()
        self.v = {name: value + EPS**2 for name, value in zero().items()}

    def round(self, cohort: tuple[int, ...]) -> None:
        """Some clients train, and the server steps along their mean move."""
        merged = mean([descended(self.w, k) for k in cohort], [SAMPLES[k] for k in cohort])
        for name, old in self.w.items():
            move = merged[name] - old
            if self.kind == "avgm":
                self.m[name] = BETA1 * self.m[name] + move
                self.w[name] = old + LR * self.m[name]
                continue
            self.m[name] = BETA1 * self.m[name] + (1 - BETA1) * move
            v = self.v[name]
            self.v[name] = {
                "adagrad": v + move**2,
                "adam": BETA2 * v + (1 - BETA2) * move**2,
                "yogi": v - (1 - BETA2) * move**2 * np.sign(v - move**2),
            }[self.kind]
            self.w[name] = old + LR * self.m[name] / (np.sqrt(self.v[name]) + EPS)


@pytest.mark.parametrize("kind", ["avgm", "adagrad", "adam", "yogi"])
def test_fedopt_takes_the_papers_steps(kind: str):
    """The server's weights agree over rounds of changing participants."""
    ours = Rounds("fedopt", optimizer=kind, lr=LR, beta1=BETA1, beta2=BETA2, eps=EPS)
    theirs = Server(kind)
    for cohort in COHORTS:
        theirs.round(cohort)
        check(ours.round(cohort).global_model(), theirs.w)


@pytest.mark.parametrize(
    ("optimizer", "lr", "beta1"),
    [("avgm", 1.0, 0.9), ("adagrad", 0.01, 0.0), ("adam", 0.01, 0.9), ("yogi", 0.01, 0.9)],
)
def test_what_null_stands_for(optimizer: str, lr: float, beta1: float):
    """Rate and decay that are not given are those that the parameters say."""
    short, long = (
        Rounds("fedopt", optimizer=optimizer, **settings).round(COHORTS[0]).round(COHORTS[1])
        for settings in ({}, {"lr": lr, "beta1": beta1})
    )
    assert same_trees(short.server, long.server)


@pytest.mark.parametrize("base", ["fedavg", "scaffold"])
def test_without_momentum_fedavgm_is_its_base(base: str):
    """At rate 1 and decay 0 the merged weights stay as they are to the bit, whatever the base."""
    ours, plain = Rounds("fedopt", optimizer="avgm", lr=1.0, beta1=0.0, base=base), Rounds(base)
    for cohort in COHORTS:
        assert same_trees(ours.round(cohort).server, plain.round(cohort).server)
