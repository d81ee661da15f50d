"""FedProto's objective, prototypes, merge and prediction, against NumPy in float64."""

import numpy as np
import pytest
from builders import build_method
from complex_step import cross_entropy, descended
from exact import CLASSES, CLOSE, NET, RATE, WIDTH, Exact, arrays, data, hidden, logits, pixels

from edgefl.compute import meta

STRENGTH = 0.7
# Nobody has class 3; class 2 is the second client's alone.
CLIENTS = [[data(6, 0, [0, 1]), data(5, 1, [0, 1])], [data(7, 2, [0, 1, 2]), data(4, 3, [1, 2])]]


def worked(model, batches, known: dict[int, np.ndarray], strength: float):
    """A client's model after SGD, and its mean features and counts by class under the final weights."""

    def loss(at, one):
        away = [
            ((f - known[label]) ** 2).sum()
            for f, label in zip(hidden(at, pixels(one)), one.y.tolist(), strict=True)
            if label in known
        ]
        return cross_entropy(logits(at, pixels(one)), one.y.numpy()) + strength * sum(away) / len(one.y)

    model |= descended(loss, model, batches, RATE)
    f = np.concatenate([hidden(model, pixels(one)) for one in batches])
    labels = np.concatenate([one.y.numpy() for one in batches])
    return {
        label: (f[labels == label].mean(axis=0), (labels == label).sum()) for label in set(labels.tolist())
    }


def test_three_rounds_by_hand():
    """Cross-entropy plus lambda times the squared way to known prototypes; means weighted by counts.

    In the third round nobody has class 2, whose prototype stays; class 3 never gets one.
    """
    done = Exact("fedproto", CLIENTS, {"strength": STRENGTH})
    models = [arrays(done.initial) for _ in CLIENTS]
    known: dict[int, np.ndarray] = {}
    rounds = [CLIENTS, CLIENTS, [CLIENTS[0], [data(6, 7, [1])]]]
    for clients in rounds:
        done.clients = clients
        done.do("train")
        found = [worked(*each, known, STRENGTH) for each in zip(models, clients, strict=True)]
        for client, own in enumerate(found):
            for key, value in arrays(done.states[client]).items():
                np.testing.assert_allclose(value, models[client][key], **CLOSE)
            sent = done.uploads[client]["fedproto"]
            assert sent["counts"].tolist() == [
                own[label][1] if label in own else 0 for label in range(CLASSES)
            ]
            for label, (mean, _) in own.items():
                np.testing.assert_allclose(sent["means"][label].numpy(), mean, **CLOSE)
        for label in {label for own in found for label in own}:
            shares = [own[label] for own in found if label in own]
            known[label] = sum(mean * count for mean, count in shares) / sum(count for _, count in shares)
        for label in range(CLASSES):
            assert bool(done.server["fedproto"]["known"][label]) == (label in known)
            expected = known.get(label, np.zeros(WIDTH))
            np.testing.assert_allclose(done.server["fedproto"]["means"][label].numpy(), expected, **CLOSE)
    assert sorted(known) == [0, 1, 2]
    assert 2 not in found[0] | found[1]


def test_the_nearest_prototype_is_predicted():
    """Classes by distance to their prototypes; one that has none is never predicted."""
    done = Exact("fedproto", CLIENTS).do("train")
    predictor = done.method.personal_model(done.server, done.states[0])
    one = data(40, 9)
    f, prototypes = hidden(arrays(done.states[0]), pixels(one)), done.server["fedproto"]["means"].numpy()
    away = np.stack([((f - prototypes[label]) ** 2).sum(axis=1) for label in range(3)], axis=1)
    found = predictor.logits(predictor.weights, one.x)
    np.testing.assert_allclose(found[:, :3].numpy(), -away, **CLOSE)
    assert found.isfinite().all()
    assert (found[:, 3] < found[:, :3].amin(dim=1)).all()
    by_head = Exact("fedproto", CLIENTS, {"predict": "head"}).do("train")
    other = by_head.method.personal_model(by_head.server, by_head.states[0])
    expected = logits(arrays(done.states[0]), pixels(one))
    np.testing.assert_allclose(other.logits(other.weights, one.x).numpy(), expected, **CLOSE)


@pytest.mark.parametrize(("base", "model"), [("local", 0), ("fedavg", 1)])
def test_bytes_by_formula(base: str, model: int):
    """C l + C numbers each way, beside the base's; and a pass of the body over the data after training."""
    method = build_method("fedproto", NET, base=base)
    trace = meta.trace(method, method.exchanges[0], NET, [[{8: 1}, {8: 1}]])
    beside = model * sum(leaf.numel() for part in NET.on_meta().values() for leaf in part.values())
    assert sum(trace.down.values()) == 4 * (CLASSES * WIDTH + CLASSES + beside)
    assert sum(trace.up.values()) == 4 * (CLASSES * WIDTH + CLASSES + beside)
    _, gather = trace.phases
    assert gather.name == "prototypes"
    # Of the body's product, forward alone: 2 * 8 samples * 12 pixels * l; then the sums, 2 * 8 * C * l.
    assert gather.steps[8].flops == 2 * 8 * WIDTH * (12 + CLASSES)
    assert trace.peaks[8, 8]["kept copies"] >= 4 * (CLASSES * WIDTH + CLASSES)
