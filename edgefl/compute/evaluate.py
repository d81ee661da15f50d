"""Scores of the predictors that methods return."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from edgefl.compute.process import one_thread
from edgefl.core.arrays import Bools, Floats, Ints
from edgefl.core.user_code import returned
from edgefl.protocol import Predictor, Tree, leaves
from edgefl.protocol.observation import CHUNK


@dataclass(frozen=True)
class Scores:
    """Of each sample, whether the largest logit is the label's, and the cross-entropy at temperature 1."""

    correct: Bools
    loss: Floats

    @property
    def accuracy(self) -> float:
        return float(self.correct.mean())


def score(predictor: Predictor, images: Callable[[Ints], Tensor], labels: Tensor, indices: Ints) -> Scores:
    """A predictor's results at ``indices``, at least one, of normalised images and of all samples' labels."""
    correct, losses = [], []
    with torch.inference_mode(), one_thread():
        for start in range(0, len(indices), CHUNK):
            chosen = indices[start : start + CHUNK]
            found = predictor.logits(predictor.weights, images(chosen))
            logits = returned(found, Tensor, predictor.logits, "logits (a tensor)")
            expected = labels[torch.from_numpy(chosen).to(labels.device)]
            losses.append(F.cross_entropy(logits, expected, reduction="none").to(torch.float64).cpu().numpy())
            correct.append((logits.argmax(dim=-1) == expected).cpu().numpy())
    return Scores(np.concatenate(correct), np.concatenate(losses))


@dataclass(frozen=True)
class Personal:
    """Clients' results on test sets of their own; ``untrained`` were scored with their initial state."""

    clients: tuple[int, ...]
    accuracy: Floats
    loss: Floats
    samples: Ints
    untrained: int


def personal(
    predictors: Callable[[int], Predictor],
    trained: Callable[[int], bool],
    clients: Sequence[int],
    tests: Sequence[Ints],
    scorer: Callable[[Predictor, Ints], Scores],
    *,
    shared: Iterable[Tree | None] = (),
) -> Personal:
    """Every client's own model on its own test indices; clients without any are left out.

    A model with a tensor of its client's own is scored at once and dropped, so that only one of them is in
    memory; clients with the very same weights, of ``shared`` ones, are scored together.
    """
    scored = [client for client in clients if len(tests[client])]
    results: dict[int, Scores] = {}
    common = {id(leaf) for tree in shared for leaf in leaves(tree or {})}
    groups: dict[Any, tuple[Predictor, list[int]]] = {}
    for client in scored:
        predictor = predictors(client)
        identity = predictor.logits, tuple(id(leaf) for leaf in leaves(predictor.weights))
        if common.issuperset(identity[1]):
            groups.setdefault(identity, (predictor, []))[1].append(client)
        else:
            results[client] = scorer(predictor, tests[client])
        del predictor
    for predictor, group in groups.values():
        tested = np.unique(np.concatenate([tests[client] for client in group]))
        scores = scorer(predictor, tested)
        for client in group:
            places = np.searchsorted(tested, tests[client])
            results[client] = Scores(scores.correct[places], scores.loss[places])
    return Personal(
        clients=tuple(scored),
        accuracy=np.array([results[client].accuracy for client in scored]),
        loss=np.array([float(results[client].loss.mean()) for client in scored]),
        samples=np.array([len(tests[client]) for client in scored], dtype=np.int64),
        untrained=sum(not trained(client) for client in scored),
    )
