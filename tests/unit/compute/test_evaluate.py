"""Scores: which clients are scored, on which samples, and which of them together."""

import weakref

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from edgefl.compute import evaluate
from edgefl.protocol import Predictor

SAMPLES = 40
X = torch.randn(SAMPLES, 1, 2, 2, generator=torch.Generator().manual_seed(0))
Y = torch.randint(3, (SAMPLES,), generator=torch.Generator().manual_seed(1))


def linear(weights, x: Tensor) -> Tensor:
    return x.flatten(1) @ weights["head"]["weight"]


def weights(seed: int):
    return {
        "head": {"weight": torch.randn(4, 3, generator=torch.Generator().manual_seed(seed))},
        "buffers": {},
    }


def scorer(predictor: Predictor, indices) -> evaluate.Scores:
    return evaluate.score(
        predictor, indices=indices, images=lambda which: X[torch.from_numpy(which)], labels=Y
    )


def test_scores_are_those_of_plain_torch(monkeypatch):
    """In chunks, each sample gets whether the argmax is right and its cross-entropy at temperature 1."""
    monkeypatch.setattr(evaluate, "CHUNK", 7)
    own, indices = weights(0), np.arange(3, 33)
    found = scorer(Predictor(own, linear), indices)
    logits, wanted = linear(own, X[3:33]), Y[3:33]
    assert found.correct.tolist() == (logits.argmax(dim=1) == wanted).tolist()
    np.testing.assert_allclose(found.loss, F.cross_entropy(logits, wanted, reduction="none"), rtol=1e-5)
    assert found.accuracy == pytest.approx(found.correct.mean())


def personal(predictors, tests, calls=None, shared=()):
    """Scores of all clients; ``calls`` collects the sizes that were asked for."""

    def counted(predictor, indices):
        if calls is not None:
            calls.append(len(indices))
        return scorer(predictor, indices)

    clients = range(len(tests))
    return evaluate.personal(predictors, lambda one: one != 1, clients, tests, counted, shared=shared)


def test_shared_predictors_are_scored_together():
    """Clients over the very same tensors are scored in one pass, as each would be alone."""
    shared, lone = weights(0), weights(1)
    tests = [np.array([5, 1, 9]), np.array([9, 2]), np.array([5, 9, 30]), np.array([7, 7])]

    def predictors(client: int) -> Predictor:
        # A new tree each time over the same tensors, as methods put them together.
        mine = lone if client == 2 else shared
        return Predictor({part: {**tree} for part, tree in mine.items()}, linear)

    calls: list[int] = []
    found = personal(predictors, tests, calls, [shared])
    assert sorted(calls) == [3, 5]
    for place, client in enumerate(found.clients):
        alone = scorer(predictors(client), tests[client])
        assert found.accuracy[place] == pytest.approx(alone.accuracy)
        assert found.loss[place] == pytest.approx(alone.loss.mean(), rel=1e-5)
    assert found.samples.tolist() == [3, 2, 3, 2]
    assert found.untrained == 1


def test_one_clients_own_weights_are_in_memory_at_a_time():
    """Weights that were read for a client's scores are dropped before the next client's are read."""
    alive, most = weakref.WeakSet(), []

    def predictors(client: int) -> Predictor:
        own = weights(client)
        alive.add(own["head"]["weight"])
        most.append(len(alive))
        return Predictor(own, linear)

    found = personal(predictors, [np.arange(4)] * 5, shared=[weights(0), None])
    assert most == [1] * 5
    for client in range(5):
        assert found.loss[client] == scorer(Predictor(weights(client), linear), np.arange(4)).loss.mean()


def test_clients_without_test_samples_are_left_out():
    """An empty test set has no accuracy: its client is neither scored nor counted."""
    found = personal(lambda _: Predictor(weights(0), linear), [np.arange(4), np.array([], int), np.arange(8)])
    assert found.clients == (0, 2)
    assert len(found.accuracy) == len(found.loss) == len(found.samples) == 2
    assert found.untrained == 0
