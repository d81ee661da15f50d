"""Measures against their formulas written out anew in NumPy, float64, and cases that are solved by hand."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from observed import (
    CLASSES,
    COUNTS,
    LABELS,
    SHAPE,
    TESTS,
    class_accuracies_by_hand,
    layers_by_hand,
    net_of,
    observation,
    participant,
    pictures,
    predictor,
    rows_of,
    weights_of,
)

from edgefl.protocol import Predictor, Row

X = pictures(SHAPE).numpy()
BEFORE, MERGED, TRAINED = 1, 2, {0: 10, 1: 11}


def near(value: float) -> object:
    return pytest.approx(value, rel=1e-8, abs=1e-8)


def layers(seed: int) -> dict[str, np.ndarray]:
    """The layers of a model of random weights on all test samples."""
    return layers_by_hand(predictor(net_of(), seed).weights, X)


def fixed(logits: np.ndarray) -> Predictor:
    """A model whose logits are these, whatever the image: its first pixel is the sample's number."""
    table = torch.from_numpy(np.asarray(logits, dtype=np.float64))
    return Predictor({}, lambda _, x: table[x[:, 0, 0, 0].long()])


def numbered(count: int = len(LABELS)) -> torch.Tensor:
    """Images of which the first pixel is the sample's number."""
    return torch.arange(count, dtype=torch.float64)[:, None, None, None].expand(count, *SHAPE)


def seen_with(logits: np.ndarray, **fields):
    """An observation whose global model has these logits."""
    return observation(global_model=fixed(logits), pictures=numbered(len(logits)), **fields)


def onehot(classes) -> np.ndarray:
    return np.eye(CLASSES)[np.asarray(classes)]


def test_class_accuracy():
    """The share of each class's samples that are right; their mean; the worst class."""
    found, expected = rows_of("class-accuracy", observation()), class_accuracies_by_hand(layers(2)["logits"])
    for label, value in enumerate(expected):
        assert found.pop(("", "global", None, str(label))) == near(value)
    assert found == {
        ("", "global", None, ""): near(expected.mean()),
        ("worst", "global", None, ""): near(expected.min()),
    }


def test_class_accuracy_similarity_by_hand():
    """The same model: 1. Other classes: 0. (1, 0) and (1/2, 1/2): that of 45 degrees. Nothing right: none."""
    labels, key = np.array([0, 0, 2, 2]), ("", "global", None, "")
    model = {
        name: fixed(onehot(said)) for name, said in {"0": [0] * 4, "2": [2] * 4, "half": [0, 1, 2, 1]}.items()
    }

    def similarity(after: str, before: str | None) -> dict:
        seen = observation(
            global_model=model[after], before=before and model[before], labels=labels, pictures=numbered(4)
        )
        return rows_of("class-accuracy-similarity", seen)

    assert similarity("0", "0")[key] == near(1)
    assert similarity("0", "2")[key] == 0
    assert similarity("0", "half")[key] == near(np.sqrt(0.5))
    assert similarity("0", None) == {}
    model["wrong"] = fixed(onehot([1] * 4))
    assert np.isnan(similarity("wrong", "0")[key])


def test_forgetting():
    """The fall below the best of all evaluations before, not only the last one, and not clipped."""
    history, earlier = [3, 4, 2], {}
    accuracies = [class_accuracies_by_hand(layers(seed)["logits"]) for seed in history]
    module_rows = []
    for seed in history:
        seen = observation(global_model=predictor(net_of(), seed), earlier=earlier)
        found = rows_of("forgetting", seen)
        module_rows.append(found)
        earlier = {"forgetting": [Row(value, *key) for key, value in found.items() if np.isfinite(value)]}
    assert ("", "global", None, "") not in module_rows[0]
    for last in (1, 2):
        drop = np.max(accuracies[:last], axis=0) - accuracies[last]
        assert module_rows[last]["", "global", None, ""] == near(drop.mean())
        for label in range(CLASSES):
            assert module_rows[last]["", "global", None, str(label)] == near(drop[label])


def test_local_accuracy():
    """Sum p A and sum (1 - p) / (C - 1) A, of each client and, with pooled p, of the global model."""
    found, inside, outside = rows_of("local-accuracy", observation()), [], []
    for client, seed in TRAINED.items():
        accuracy = class_accuracies_by_hand(layers(seed)["logits"])
        shares = COUNTS[client] / COUNTS[client].sum()
        inside.append(sum(shares * accuracy))
        outside.append(sum((1 - shares) / (CLASSES - 1) * accuracy))
        assert found["in-local", "trained", client, ""] == near(inside[-1])
        assert found["out-local", "trained", client, ""] == near(outside[-1])
    for figure, values in (("in-local", inside), ("out-local", outside)):
        assert found[figure, "trained", None, ""] == near(np.mean(values))
        assert found[f"{figure} std", "trained", None, ""] == near(np.std(values))
    pooled = (COUNTS[0] + COUNTS[1]) / (COUNTS[0] + COUNTS[1]).sum()
    accuracy = class_accuracies_by_hand(layers(MERGED)["logits"])
    assert found["in-local", "global", None, ""] == near(pooled @ accuracy)
    assert found["out-local", "global", None, ""] == near((1 - pooled) @ accuracy / (CLASSES - 1))


def test_local_accuracy_without_test_samples_of_a_class():
    """Half of the client's data are of class 0, which nobody tests: class 1 counts for all of it."""
    model = fixed(onehot([1, 1, 1, 1]))
    one = participant(net_of(), 0, model, 10)
    people = (type(one)(0, one.net, model, model, model, ()),)
    seen = seen_with(
        onehot([1, 1, 1, 1]),
        labels=np.array([1, 2, 3, 3]),
        class_counts=np.array([[5, 5, 0, 0]]),
        participants_of=lambda: people,
    )
    found = rows_of("local-accuracy", seen)
    assert found["in-local", "trained", 0, ""] == near(1)
    # The complement's shares are 1/6, 1/6, 1/3 and 1/3; those of the classes tested add up to 5/6.
    assert found["out-local", "trained", 0, ""] == near((1 / 6) / (5 / 6))


def test_local_steps():
    """Of what each client has after 0, 4, 8 steps and the last; who takes fewer is not in later means."""
    net, start, seeds = net_of(), predictor(net_of(), BEFORE), {0: {4: 30, 8: 31}, 1: {4: 32}}
    people = tuple(
        replace(
            participant(net, k, start, 10 + k),
            steps=8 if k else 11,
            after=lambda n, k=k: predictor(net, seeds[k][n]),
        )
        for k in (0, 1)
    )
    found = rows_of("local-steps", observation(participants_of=lambda: people), every=4)
    # The second client's eighth step is its last.
    models = {
        "step 0": {0: BEFORE, 1: BEFORE},
        "step 4": {0: 30, 1: 32},
        "step 8": {0: 31, 1: 11},
        "": TRAINED,
    }
    for label, of in models.items():
        values: dict[str, list[float]] = {"": [], "in-local": [], "out-local": []}
        for client, seed in of.items():
            logits, shares = layers(seed)["logits"], COUNTS[client] / COUNTS[client].sum()
            accuracy = class_accuracies_by_hand(logits)
            values[""].append(np.mean(logits.argmax(axis=1) == LABELS))
            values["in-local"].append(shares @ accuracy)
            values["out-local"].append((1 - shares) @ accuracy / (CLASSES - 1))
            for figure, each in values.items():
                assert found.pop((figure, "trained", client, label)) == near(each[-1])
        for figure, each in values.items():
            assert found.pop((figure, "trained", None, label)) == near(np.mean(each))
            assert found.pop((f"{figure} std".strip(), "trained", None, label)) == near(np.std(each))
    assert not found


def test_personal_accuracy():
    """Mean, deviation (n) and the mean of the worst tenth, of clients' own models on their own sets."""
    seeds = [20, 21, 22, 23]
    models = [predictor(net_of(), seed) for seed in seeds]
    found = rows_of("personal-accuracy", observation(personal_model=models.__getitem__))
    accuracies = []
    for seed, places in zip(seeds, TESTS, strict=True):
        said = layers(seed)["logits"].argmax(axis=1)
        accuracies.append(sum(said[place] == LABELS[place] for place in places) / len(places))
    assert found == {
        ("", "personal", None, ""): near(np.mean(accuracies)),
        ("std", "personal", None, ""): near(
            np.sqrt(np.mean(np.square(accuracies)) - np.mean(accuracies) ** 2)
        ),
        ("worst decile", "personal", None, ""): near(min(accuracies)),
    }


def test_the_worst_decile_by_hand():
    """Of eleven clients two; known accuracies are not computed again."""
    known = dict(enumerate([0.9] * 9 + [0.2, 0.1]))
    seen = observation(clients=list(known), accuracies=known, personal_model=None)
    assert rows_of("personal-accuracy", seen)["worst decile", "personal", None, ""] == near(0.15)


def test_calibration_error_by_hand():
    """Certain and half right: 1/2. Equal logits of four classes and a quarter right: 0."""
    certain = seen_with(1e3 * onehot([0, 1, 0, 1]), labels=np.array([0, 1, 1, 0]))
    assert rows_of("calibration-error", certain)["", "global", None, ""] == near(0.5)
    # Confidences of 0.5, right, and of 0.75, wrong: a bin each, although 0.5 is on their border.
    logits = np.array([[0, 0, -1e3, -1e3], np.log([0.1, 0.75, 0.1, 0.05])])
    apart = seen_with(logits, labels=np.array([0, 2]))
    assert rows_of("calibration-error", apart, bins=2)["", "global", None, ""] == near((0.5 + 0.75) / 2)
    guesses = seen_with(np.zeros((4, 4)), labels=np.arange(4))
    assert rows_of("calibration-error", guesses)["", "global", None, ""] == near(0.0)


def test_logit_entropy():
    """The mean of -sum p ln p, and that of right and wrong samples."""
    logits = layers(2)["logits"]
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    entropy, right = -(shares * np.log(shares)).sum(axis=1), logits.argmax(axis=1) == LABELS
    assert rows_of("logit-entropy", observation()) == {
        ("", "global", None, ""): near(entropy.mean()),
        ("correct", "global", None, ""): near(entropy[right].mean()),
        ("wrong", "global", None, ""): near(entropy[~right].mean()),
    }


def test_certain_logits_have_no_entropy():
    """0 and no NaN."""
    certain = seen_with(1e5 * onehot([0, 1, 2, 3]), labels=np.arange(4))
    assert rows_of("logit-entropy", certain)["", "global", None, ""] == 0


def cka(x: np.ndarray, y: np.ndarray) -> float:
    """Linear CKA by its definition."""
    x, y = x.reshape(len(x), -1), y.reshape(len(y), -1)
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    return np.sum((y.T @ x) ** 2) / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y))


def test_linear_cka():
    """Each client to what it received and to what was merged, each pair, and their means, by layer."""
    found, trained = rows_of("linear-cka", observation()), {k: layers(seed) for k, seed in TRAINED.items()}
    means: dict[str, list[float]] = {}
    for name in layers(MERGED):
        for figure, other in (("to received", layers(BEFORE)), ("to global", layers(MERGED))):
            each = {client: cka(own[name], other[name]) for client, own in trained.items()}
            for client, value in each.items():
                assert found[figure, "trained", client, name] == near(value)
            means.setdefault(figure, []).append(np.mean(list(each.values())))
        means.setdefault("between clients", []).append(cka(trained[0][name], trained[1][name]))
        for figure, values in means.items():
            assert found[figure, "trained", None, name] == near(values[-1])
    for figure, values in means.items():
        assert found[figure, "trained", None, ""] == near(np.mean(values))


def test_linear_cka_of_each_pair():
    """With ``pairs`` each layer has a symmetric matrix; all other rows stay as they are."""
    net, start = net_of(), predictor(net_of(), BEFORE)
    people = tuple(participant(net, client, start, 10 + client) for client in (0, 2, 3))
    seen = observation(participants_of=lambda: people)
    plain, found = rows_of("linear-cka", seen), rows_of("linear-cka", seen, pairs=True)
    trained, means = {client: layers(10 + client) for client in (0, 2, 3)}, {}
    for one, other in itertools.permutations(trained, 2):
        place = "trained", one, f"client {other}"
        values = {name: cka(x, trained[other][name]) for name, x in trained[one].items()}
        for name, value in {**values, "": np.mean(list(values.values()))}.items():
            assert found.pop((f"pairs {name}".strip(), *place)) == near(value)
            means.setdefault(name, []).append(value)
    for name, values in means.items():
        assert plain["between clients", "trained", None, name] == near(np.mean(values))
    assert found == plain


def test_features_are_those_that_the_head_gets():
    """Where a method normalises them, as SphereFed does, their similarity is that of unit vectors."""
    inner = net_of()
    net = replace(inner, features=lambda w, x, train: (_unit(inner.features(w, x, train)[0]), {}))
    models = [predictor(net, seed) for seed in (MERGED, TRAINED[0])]
    one = participant(inner, 0, models[0], 10)
    one = type(one)(0, inner, models[0], models[1], models[1], ("body", "head"))
    seen = observation(inner, global_model=models[0], participants_of=lambda: (one,))
    found = rows_of("linear-cka", seen)
    raw = [layers(seed)["features"] for seed in (MERGED, TRAINED[0])]
    rows = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in raw]
    assert found["to global", "trained", 0, "features"] == near(cka(*rows))


def _unit(features: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.normalize(features, dim=-1)


def test_weight_divergence():
    """|w - w_k| over all weights and by layer; beside it |A_G - p_k| of the model received."""
    seen = observation()
    found = rows_of("weight-divergence", seen)
    names = {"body/fc1": [], "body/fc2": [], "head": []}
    start = class_accuracies_by_hand(layers(BEFORE)["logits"])
    total, apart = [], []
    for one in seen.participants:
        whole = 0.0
        for name, values in names.items():
            part, _, layer = name.partition("/")
            keys = [key for key in one.start.weights[part] if key.startswith(layer)]
            moved = sum(
                np.abs(one.trained.weights[part][key].numpy() - one.start.weights[part][key].numpy()).sum()
                for key in keys
            )
            values.append(moved)
            whole += moved
        total.append(whole)
        assert found["", "trained", one.client, ""] == near(whole)
        shares = COUNTS[one.client] / COUNTS[one.client].sum()
        apart.append(np.abs(start / start.sum() - shares).sum())
        assert found["distribution", "trained", one.client, ""] == near(apart[-1])
    for name, values in names.items():
        assert found["", "trained", None, name] == near(np.mean(values))
    assert found["", "trained", None, ""] == near(np.mean(total))
    assert found["std", "trained", None, ""] == near(np.std(total))
    assert found["distribution", "trained", None, ""] == near(np.mean(apart))


def preferences(activations: np.ndarray) -> np.ndarray:
    """Each neuron's class: the largest sum over equally many samples of each class."""
    least = np.bincount(LABELS).min()
    sums = np.array(
        [activations[np.flatnonzero(label == LABELS)[:least]].sum(axis=0) for label in range(CLASSES)]
    )
    return sums.argmax(axis=0)


def test_neuron_alignment():
    """The share of neurons of one class before and after training, and before and after the merge."""
    found, before, after = rows_of("neuron-alignment", observation()), layers(BEFORE), layers(MERGED)
    means = []
    for name in before:
        each = []
        for client, seed in TRAINED.items():
            each.append(np.mean(preferences(before[name]) == preferences(layers(seed)[name])))
            assert found["", "trained", client, name] == near(each[-1])
        means.append(np.mean(each))
        assert found["", "trained", None, name] == near(means[-1])
        assert found["", "global", None, name] == near(
            np.mean(preferences(before[name]) == preferences(after[name]))
        )
    assert found["", "trained", None, ""] == near(np.mean(means))


def test_no_neuron_stands_for_a_class_without_test_samples():
    """Of negative activations the largest sum is that of no sample at all, which does not count."""
    model = fixed(np.array([[-1.0, -2, -1, -2], [-2.0, -1, -2, -1]]))
    other = fixed(np.array([[-2.0, -1, -2, -1], [-1.0, -2, -1, -2]]))
    one = participant(net_of(), 0, model, 10)
    weights = weights_of(net_of(), 0)
    start, trained = (Predictor(weights, each.logits) for each in (model, other))
    people = (type(one)(0, one.net, start, trained, trained, ("body", "head")),)
    seen = observation(
        global_model=trained,
        before=start,
        pictures=numbered(2),
        labels=np.array([1, 2]),
        participants_of=lambda: people,
    )
    assert rows_of("neuron-alignment", seen)["", "trained", 0, "logits"] == 0


def gradient(weights, x: np.ndarray, labels: np.ndarray, parts=("body", "head")) -> np.ndarray:
    """The gradient of mean cross-entropy by hand: backward through two hidden layers."""
    flat = {name: leaf.numpy() for part in weights.values() for name, leaf in part.items()}
    found = layers_by_hand(weights, x)
    flat_x, first, second, logits = x.reshape(len(x), -1), found["relu1"], found["relu2"], found["logits"]
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    at_logits = (shares - np.eye(CLASSES)[labels]) / len(x)
    at_second = (at_logits @ flat["weight"]) * (second > 0)
    at_first = (at_second @ flat["fc2.weight"]) * (first > 0)
    body = [at_first.T @ flat_x, at_first.sum(0), at_second.T @ first, at_second.sum(0)]
    head = [at_logits.T @ second, at_logits.sum(0)]
    chosen = (body if "body" in parts else []) + (head if "head" in parts else [])
    return np.concatenate([each.ravel() for each in chosen])


@pytest.mark.parametrize(("samples", "sent"), [(3, ("body", "head")), (None, ("body",))])
def test_gradient_diversity(samples, sent):
    """Mean |g|^2 / |mean g|^2 at the new global model, over the parts that are sent."""
    net, start = net_of(), predictor(net_of(), BEFORE)
    seen = observation(
        participants_of=lambda: tuple(participant(net, k, start, 10 + k, sent) for k in (0, 1))
    )
    found = rows_of("gradient-diversity", seen, samples=samples)
    batches = [seen.training(client, samples) for client in (0, 1)]
    each = [gradient(seen.global_model.weights, b.x.numpy(), b.y.numpy(), sent) for b in batches]
    squares = [np.sum(one**2) for one in each]
    assert found["", "global", None, ""] == near(np.mean(squares) / np.sum(np.mean(each, axis=0) ** 2))
    for client in (0, 1):
        assert found["norm", "global", client, ""] == near(np.sqrt(squares[client]))


def test_gradients_of_many_samples_are_added_up(monkeypatch):
    """Chunks of a client's data give the gradient of all of it."""
    whole = rows_of("gradient-diversity", observation())
    monkeypatch.setattr("edgefl.measures.gradient_diversity.CHUNK", 3)
    parts = rows_of("gradient-diversity", observation())
    assert {key: near(value) for key, value in whole.items()} == parts


def one_gradient(weights, x: np.ndarray, label: int, temperature: float) -> dict[str, float]:
    """The norm of one sample's gradient by layer: the head's logits, and so their gradient, over T."""
    cold = {**weights, "head": {name: leaf / temperature for name, leaf in weights["head"].items()}}
    flat = gradient(cold, x[None], np.array([label]))
    sizes = {"body/fc1": 12 * 5 + 5, "body/fc2": 5 * 6 + 6, "head": 6 * CLASSES + CLASSES}
    found, start = {}, 0
    for name, size in sizes.items():
        # d/dw = (d/d(w / T)) / T of the head alone.
        scale = temperature if name == "head" else 1.0
        found[name] = np.linalg.norm(flat[start : start + size]) / scale
        start += size
    return {**found, "": np.sqrt(sum(value**2 for value in found.values()))}


@pytest.mark.parametrize(("of_net", "asked"), [(0.25, None), (0.25, 2.0)])
def test_gradient_norms(of_net, asked):
    """Sample by sample, by layer, right and wrong apart, at the method's temperature or another."""
    net = net_of()
    weights = predictor(net, MERGED).weights
    seen = observation(global_model=Predictor(weights, replace(net, temperature=of_net).logits))
    found = rows_of("gradient-norms", seen, samples=9, **({"temperature": asked} if asked else {}))
    groups: dict[str, dict[str, list[float]]] = {"": {}, "correct": {}, "wrong": {}}
    for client in (0, 1):
        batch = seen.training(client, 9)
        for x, label in zip(batch.x.numpy(), batch.y.tolist(), strict=True):
            right = layers_by_hand(weights, x[None])["logits"].argmax() == label
            for name, norm in one_gradient(weights, x, label, asked or of_net).items():
                for group in ("", "correct" if right else "wrong"):
                    groups[group].setdefault(name, []).append(norm)
    assert groups["correct"].keys() == groups["wrong"].keys()
    for group, by_layer in groups.items():
        for name, norms in by_layer.items():
            assert found.pop((group, "global", None, name)) == near(np.mean(norms))
            for words, share in {"p10": 10, "median": 50, "p90": 90}.items():
                key = f"{group} {words}".strip(), "global", None, name
                assert found.pop(key) == near(np.percentile(norms, share))
    assert not found


def test_oracle_head():
    """Two steps of gradient descent with momentum on the head, on all clients' samples pooled."""
    seen, lr = observation(), 3.0
    batches = [seen.training(client, None) for client in range(len(COUNTS))]
    x, y = (np.concatenate([values.numpy() for values in each]) for each in zip(*batches, strict=True))
    weights, velocity = seen.global_model.weights, 0.0
    for _ in range(2):
        velocity = 0.9 * velocity + gradient(weights, x, y, ("head",))
        flat = np.concatenate([leaf.numpy().ravel() for leaf in weights["head"].values()]) - lr * velocity
        split = np.split(flat, [6 * CLASSES])
        pairs = zip(weights["head"].items(), split, strict=True)
        head = {name: torch.from_numpy(part).reshape(leaf.shape) for (name, leaf), part in pairs}
        weights = {**weights, "head": head}
    right = np.mean(layers_by_hand(weights, X)["logits"].argmax(axis=1) == LABELS)
    before = np.mean(layers(MERGED)["logits"].argmax(axis=1) == LABELS)
    assert right != before
    assert rows_of("oracle-head", seen, epochs=2, lr=lr) == {
        ("", "global", None, ""): near(right),
        ("gain", "global", None, ""): near(right - before),
    }


def test_accuracy_drop():
    """Participants before and after: own trained and own new model; the others: the version before."""
    found = rows_of("accuracy-drop", observation())
    groups = {"participants": {0: 10, 1: 11}, "others": {2: BEFORE, 3: BEFORE}}
    for group, seeds in groups.items():
        changes = []
        for client, seed in seeds.items():
            was, now = (
                np.mean(layers(one)["logits"].argmax(axis=1)[TESTS[client]] == LABELS[TESTS[client]])
                for one in (seed, MERGED)
            )
            changes.append(now - was)
            key = "personal", client, ""
            assert found[f"{group} before", *key] == near(was)
            assert found[f"{group} after", *key] == near(now)
            assert found[f"{group} change", *key] == near(now - was)
        assert found[f"{group} change", "personal", None, ""] == near(np.mean(changes))


def test_classifier_consistency():
    """Cosines and differences of norms of the heads' rows, over pairs of three clients."""
    net, start = net_of(), predictor(net_of(), BEFORE)
    seen = observation(participants_of=lambda: tuple(participant(net, k, start, 10 + k) for k in range(3)))
    found = rows_of("classifier-consistency", seen)
    heads = [one.trained.weights["head"]["weight"].numpy() for one in seen.participants]
    pairs = list(itertools.combinations(heads, 2))
    for label in range(CLASSES):
        values = [
            one[label] @ two[label] / np.sqrt((one[label] @ one[label]) * (two[label] @ two[label]))
            for one, two in pairs
        ]
        assert found["cosine", "trained", None, str(label)] == near(np.mean(values))
    apart = [
        abs(np.sqrt(one[label] @ one[label]) - np.sqrt(two[label] @ two[label]))
        for one, two in pairs
        for label in range(CLASSES)
    ]
    assert found["norm difference", "trained", None, ""] == near(np.mean(apart))
