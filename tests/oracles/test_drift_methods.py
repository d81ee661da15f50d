"""Methods that correct clients' drift, against their papers written out in NumPy.

SCAFFOLD: Karimireddy et al. 2020, Algorithm 1. FedDyn: Acar et al. 2021, Algorithm 1. FedNova: Wang et al.
2020, Equations 5-9. FedOpt: Hsu et al. 2019 and Reddi et al. 2021, Algorithm 2. FedCurv: Shoham et al. 2019,
Equation 3.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from builders import build_net, same_trees
from complex_step import Arrays, cross_entropy, gradient, relu
from exact import Exact, wide
from nightly import sampled

from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.scenario import LocalTraining
from edgefl.protocol import Batch, Net, Tree, flatten

CLASSES, PIXELS, SIZE, RATE = 3, 6, 4, 0.2
# Of each of N clients: samples, and with them steps.
SAMPLES = (5, 14, 4, 10)
N = len(SAMPLES)
# Who takes part in each of the rounds.
COHORTS = ((0, 1, 2), (0, 3), (1, 2, 3))
NAMES = ("body/fc1.weight", "body/fc1.bias", "head/weight", "head/bias")


def float64_net() -> Net:
    """A fully connected net of 4 features on 6 pixels."""
    return build_net("mlp", (1, 2, 3), CLASSES, hidden=(4,))


def initial() -> Arrays:
    """The net's first weights, by name."""
    return arrays(wide(float64_net().init(0)))


def arrays(tree: Tree) -> Arrays:
    """A tree's tensors, by name."""
    return {name: leaf.numpy() for name, leaf in flatten(tree).items()}


def data(client: int) -> tuple[Any, Any]:
    """All samples of a client."""
    random = np.random.default_rng(client)
    return random.normal(size=(SAMPLES[client], PIXELS)), random.integers(CLASSES, size=SAMPLES[client])


def batches(client: int) -> list[tuple[Any, Any]]:
    """A pass over a client's samples; one left over joins the batch before it."""
    x, y = data(client)
    cuts = range(SIZE, len(y) - 1, SIZE)
    return list(zip(np.split(x, cuts), np.split(y, cuts), strict=True))


def loss(w: Arrays, batch: tuple[Any, Any], temperature: float = 1.0) -> Any:
    """Cross-entropy of the net; written out here."""
    x, y = batch
    features = relu(x @ w["body/fc1.weight"].T + w["body/fc1.bias"])
    return cross_entropy((features @ w["head/weight"].T + w["head/bias"]) / temperature, y)


def descended(
    start: Arrays,
    client: int,
    shift: Arrays | None = None,
    *,
    objective: Callable[[Arrays, Any], Any] = loss,
    momentum: float = 0.0,
    nesterov: bool = False,
) -> Arrays:
    """A client's weights after a step on each of its batches, ``shift`` added to every gradient."""
    w, speed = dict(start), {name: np.zeros_like(value) for name, value in start.items()}
    for batch in batches(client):
        slopes = gradient(lambda at, batch=batch: objective(at, batch), w)
        for name, slope in slopes.items():
            full = slope + (0 if shift is None else shift[name])
            speed[name] = momentum * speed[name] + full
            w[name] = w[name] - RATE * (full + momentum * speed[name] if nesterov else speed[name])
    return w


def mean(trees: Sequence[Arrays], weights: Sequence[float] | None = None) -> Arrays:
    """The mean of arrays by name."""
    return {name: np.average([tree[name] for tree in trees], axis=0, weights=weights) for name in trees[0]}


def zero() -> Arrays:
    """Zeros like the weights."""
    return {name: np.zeros_like(value) for name, value in initial().items()}


class Rounds(Exact):
    """A method's server and clients."""

    def __init__(self, name: str, *, momentum: float = 0.0, nesterov: bool = False, **settings: Any) -> None:
        local = LocalTraining(batch_size=SIZE, optimizer=Sgd(lr=RATE, momentum=momentum, nesterov=nesterov))
        clients = [
            [Batch(torch.from_numpy(x).view(-1, 1, 2, 3), torch.from_numpy(y)) for x, y in batches(client)]
            for client in range(N)
        ]
        super().__init__(name, clients, settings, float64_net(), local)

    def round(self, cohort: Sequence[int]) -> "Rounds":
        """Some clients work, and the server merges."""
        self.do("train", cohort)
        return self

    def global_model(self) -> Arrays:
        """The weights that the server has."""
        return {name: arrays(self.method.global_model(self.server).weights)[name] for name in NAMES}


def check(found: Arrays, expected: Arrays) -> None:
    """Agreement to 1e-8 of everything expected."""
    assert expected
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-8, atol=1e-10, err_msg=name)


def weight_of_gradients(steps: int, momentum: float, *, nesterov: bool) -> float:
    """By how many learning rates the weights move under gradients of 1."""
    speed = moved = 0.0
    for _ in range(steps):
        speed = momentum * speed + 1
        moved += 1 + momentum * speed if nesterov else speed
    return moved


class Scaffold:
    """Algorithm 1: server and clients of control variates."""

    def __init__(self, **settings: Any) -> None:
        self.w, self.c, self.own = initial(), zero(), [zero() for _ in SAMPLES]
        self.settings = {"momentum": 0.0, "nesterov": False, **settings}

    def round(
        self, cohort: tuple[int, ...], option: str = "II", weights: str = "equal", server_lr: float = 1.0
    ) -> None:
        """Some clients train and renew their control variates; the server renews w and c."""
        trained, changes = [], []
        for k in cohort:
            shift = {name: self.c[name] - self.own[k][name] for name in self.c}
            w_k = descended(self.w, k, shift, **self.settings)
            if option == "I":
                new = gradient(lambda w, k=k: loss(w, data(k)), self.w)
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
    ours, theirs = Rounds("scaffold", **optimizer, **settings), Scaffold(**optimizer)
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


ALPHA = 0.3


class FedDyn:
    """Algorithm 1: a linear term of the client's own, and the server's h."""

    def __init__(self, **settings: float) -> None:
        self.w, self.h, self.own, self.settings = initial(), zero(), [zero() for _ in range(N)], settings

    def round(self, cohort: tuple[int, ...]) -> None:
        """Some clients train and renew their h_k; the server renews h, and moves."""
        w, trained = self.w, []
        for k in cohort:

            def objective(at: Arrays, batch: Any, k: int = k) -> Any:
                linear = sum((self.own[k][name] * at[name]).sum() for name in w)
                away = sum(((at[name] - w[name]) ** 2).sum() for name in w)
                return loss(at, batch) - linear + ALPHA / 2 * away

            w_k = descended(w, k, objective=objective, **self.settings)
            self.own[k] = {name: self.own[k][name] - ALPHA * (w_k[name] - w[name]) for name in w}
            trained.append(w_k)
        moves = {name: sum(w_k[name] - w[name] for w_k in trained) for name in w}
        self.h = {name: self.h[name] - ALPHA / N * moves[name] for name in w}
        centre = mean(trained)
        self.w = {name: centre[name] - self.h[name] / ALPHA for name in w}


def test_feddyn_is_algorithm_1():
    """Weights, h and every h_k agree after every round, with clients that come and go."""
    ours, theirs = Rounds("feddyn", alpha=ALPHA, momentum=0.9), FedDyn(momentum=0.9)
    for cohort in COHORTS:
        ours.round(cohort)
        theirs.round(cohort)
        check(ours.global_model(), theirs.w)
        check(arrays(ours.server["feddyn"]), theirs.h)
        for k in range(N):
            check(arrays(ours.states[k]["feddyn"]), theirs.own[k])


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


def fednova_round(
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
        w = fednova_round(w, cohort, mu, **optimizer)
        check(ours.round(cohort).global_model(), w)


def test_fednova_works_over_any_merge():
    """Over FedOpt, the server's optimizer is given the normalised move."""
    ours = Rounds("fednova", base={"name": "fedopt", "optimizer": "avgm", "lr": 0.5, "beta1": 0.0})
    w = initial()
    normal = fednova_round(w, COHORTS[0], 0.0)
    check(ours.round(COHORTS[0]).global_model(), {name: (w[name] + normal[name]) / 2 for name in w})


LR, BETA1, BETA2, EPS = 0.3, 0.8, 0.95, 0.02


class FedOpt:
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
    theirs = FedOpt(kind)
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


PENALTY = 0.7


def fisher(w: Arrays, client: int, temperature: float) -> Arrays:
    """The mean over the client's samples of each sample's squared gradient."""
    x, y = data(client)
    slopes = [
        gradient(lambda at, i=i: loss(at, (x[i : i + 1], y[i : i + 1]), temperature), w)
        for i in range(len(y))
    ]
    return {name: np.mean([slope[name] ** 2 for slope in slopes], axis=0) for name in w}


class FedCurv:
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


@sampled(1, ("order", "temperature"), [("alone", 1.0), ("outside", 0.5), ("inside", 0.5)])
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
    theirs = FedCurv()
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
    (train, phase) = Rounds("fedcurv", samples=3 * SIZE + 1).exchange("train").work.phases
    assert phase.passes.steps == 4
    assert (train.reports, phase.reports) == (True, False)


def test_a_client_that_was_not_merged_takes_nothing_from_the_sums():
    """A client that worked but came too late has a state of its own that the sums do not have."""
    ours = Rounds("fedcurv", penalty=PENALTY).round((0, 1))
    _, ours.states[2] = ours.work(ours.exchange("train"), 2)
    upload, _ = ours.work(ours.exchange("train"), 2)
    last = {k: (arrays(ours.states[k]["fedcurv"]["fisher"]), arrays(ours.uploads[k])) for k in (0, 1)}
    w = ours.global_model()

    def objective(at: Arrays, batch: Any) -> Any:
        return loss(at, batch) + PENALTY * sum(
            (u[name] * (at[name] - w_k[name]) ** 2).sum() for u, w_k in last.values() for name in w
        )

    check({name: arrays(upload)[name] for name in w}, descended(w, 2, objective=objective))
    assert len(batches(2)) == 1
