"""Observations that no run made: small nets in float64 on random data, and the same in NumPy."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from builders import build_net

from edgefl.core import catalogue
from edgefl.protocol import Batch, Net, Observation, Participant, Predictor, Row, Tree, tree_map

CLASSES = 4
SHAPE = (1, 3, 4)
# Of unequal sizes, and no class is missing.
LABELS = np.array([0, 1, 1, 2, 2, 2, 3, 0, 3, 3, 3, 1, 0, 2, 1, 1, 2, 0, 3, 2])
COUNTS = np.array([[8, 0, 1, 1], [0, 6, 0, 6], [2, 2, 2, 2], [0, 0, 9, 1]])
TESTS = [np.array([0, 7, 3, 0]), np.array([1, 6, 8]), np.array([2, 4, 9, 11, 5]), np.array([3, 5])]


def net_of(name: str = "mlp", **settings: Any) -> Net:
    """A net of two hidden layers on twelve pixels, unless told otherwise."""
    return build_net(name, settings.pop("shape", SHAPE), CLASSES, **(settings or {"hidden": (5, 6)}))


def weights_of(net: Net, seed: int) -> Tree:
    """Random weights in float64."""
    generator = torch.Generator().manual_seed(seed)
    return tree_map(
        lambda leaf: torch.randn(leaf.shape, generator=generator, dtype=torch.float64) / 2, net.on_meta()
    )


def predictor(net: Net, seed: int) -> Predictor:
    """A model of random weights."""
    return Predictor(weights_of(net, seed), net.logits)


def participant(net: Net, client: int, start: Predictor, seed: int, sent=("body", "head")) -> Participant:
    """A client that trained ``start`` into other random weights."""
    trained = predictor(net, seed)
    return Participant(client, net, start, trained, trained, sent)


def pictures(shape: Sequence[int], count: int = len(LABELS), seed: int = 99) -> torch.Tensor:
    """Random images in float64."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, *shape, generator=generator, dtype=torch.float64)


def observation(net: Net | None = None, **fields: Any) -> Observation:
    """An observation of four clients, of which two took part in the last merge."""
    net = net or net_of()
    images = fields.pop("pictures", None)
    images = pictures(net.shape) if images is None else images
    training = {client: pictures(net.shape, int(row.sum()), client) for client, row in enumerate(COUNTS)}
    targets = {
        client: torch.from_numpy(np.repeat(np.arange(CLASSES), row)) for client, row in enumerate(COUNTS)
    }
    before = predictor(net, 1)
    merged = fields.pop("global_model", predictor(net, 2))
    given = {
        "version": 3,
        "round": 2,
        "net": net,
        "classes": CLASSES,
        "global_model": merged,
        "personal_model": lambda _: merged,
        "clients": [0, 1, 2, 3],
        "labels": LABELS,
        "images": lambda places: images[torch.from_numpy(places)],
        "tests": TESTS,
        "class_counts": COUNTS,
        "training": lambda client, most: Batch(training[client][:most], targets[client][:most]),
        "participants_of": lambda: (participant(net, 0, before, 10), participant(net, 1, before, 11)),
        "before": before,
        "personal_before": lambda _: before,
    }
    return Observation(**{**given, **fields})


def rows_of(name: str, seen: Observation, **settings: Any) -> dict[tuple[Any, ...], float]:
    """What a measure gives: values by (figure, model, client, label)."""
    module = catalogue.load("measures", name)
    found: dict[tuple[Any, ...], float] = {}
    for row in module.Params(**settings).measure(seen):
        assert isinstance(row, Row)
        assert row[1:] not in found
        found[row[1:]] = row.value
    return found


def layers_by_hand(weights: Tree, x: np.ndarray) -> dict[str, np.ndarray]:
    """The two hidden layers and the logits of ``net_of()``, in NumPy."""
    flat = {name: leaf.numpy() for part in weights.values() for name, leaf in part.items()}
    first = np.maximum(x.reshape(len(x), -1) @ flat["fc1.weight"].T + flat["fc1.bias"], 0)
    second = np.maximum(first @ flat["fc2.weight"].T + flat["fc2.bias"], 0)
    logits = second @ flat["weight"].T + flat["bias"]
    return {"relu1": first, "relu2": second, "features": second, "logits": logits}


def class_accuracies_by_hand(logits: np.ndarray) -> np.ndarray:
    """Class by class, one sample after another."""
    right, of = np.zeros(CLASSES), np.zeros(CLASSES)
    for row, label in zip(logits, LABELS, strict=True):
        of[label] += 1
        right[label] += max(range(CLASSES), key=lambda place, row=row: row[place]) == label
    return right / of
