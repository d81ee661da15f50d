"""KT-pFL against its formulas in plain NumPy: distilling, training, predicting, and what is learned of it."""

import numpy as np
import pytest
import torch
from builders import arrival, build_method, build_net, site_of
from complex_step import cross_entropy, descended, softmax
from exact import CLASSES, NET, RATE, arrays, data, logits, pixels, wide

from edgefl.compute import meta
from edgefl.core.errors import UserError
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.scenario import LocalTraining
from edgefl.methods import ktpfl
from edgefl.protocol import Batch, Ctx, Method, flatten
from edgefl.protocol.trees import unflatten

PUBLIC, CLIENTS, T = 16, 3, 4.0


def built(**settings) -> Method:
    local = LocalTraining(optimizer=Sgd(lr=RATE))
    return ktpfl.Params(temperature=T, **settings).build(site_of(NET, local, clients=CLIENTS))


def context(client: int, samples: int = 6) -> Ctx:
    return Ctx(client, 0, RATE, 4, samples, torch.ones(CLASSES))


def probabilities(rng: np.random.Generator, *shape: int) -> np.ndarray:
    drawn = rng.random((*shape, CLASSES)) + 0.05
    return drawn / drawn.sum(-1, keepdims=True)


def public_batches(rng: np.random.Generator) -> list[Batch]:
    """All 16 public samples in batches of 6, 6 and 4."""
    x = torch.from_numpy(rng.standard_normal((PUBLIC, 1, 3, 4)))
    places = torch.arange(PUBLIC)
    return [Batch(x[part], part) for part in torch.split(places, 6)]


def test_a_client_distils_trains_and_predicts():
    """Three steps towards the target, two on its own data, then softmax(z / T) of every public image."""
    rng = np.random.default_rng(0)
    target, public, own = probabilities(rng, PUBLIC), public_batches(rng), [data(6, 1), data(6, 2)]
    method, weights = built(), wide(NET.init(0))
    train = method.exchanges[1]
    carry = train.work.start({"target": torch.from_numpy(target)}, method.client(weights), context(0))
    names = [(phase.name, phase.data, phase.reports) for phase in train.work.phases]
    assert names == [("distil", "public", False), ("train", "train", True), ("predict", "public", False)]
    for phase, batches in zip(train.work.phases, (public, own, public), strict=True):
        for batch in batches:
            carry = phase.step(carry, batch)
    upload, state = train.work.finish(carry, context(0))

    def divergence(at, batch):
        """But for the target's own entropy."""
        return -(target[batch.y] * np.log(softmax(logits(at, pixels(batch)) / T))).sum() / len(batch.y)

    model = descended(divergence, arrays(weights), public, RATE)
    model = descended(
        lambda at, batch: cross_entropy(logits(at, pixels(batch)), batch.y.numpy()), model, own, RATE
    )
    expected = np.concatenate([softmax(logits(model, pixels(batch)) / T) for batch in public])
    np.testing.assert_allclose(upload["predictions"].numpy(), expected, atol=1e-10)
    for key, value in arrays(state).items():
        np.testing.assert_allclose(value, model[key], atol=1e-10)
    assert set(upload) == {"predictions"}


def closest_on_simplex(row: np.ndarray) -> np.ndarray:
    """By bisection for the number whose subtraction, clipped at 0, leaves a sum of 1."""
    low, high = row.min() - 1, row.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(row - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(row - low, 0)


def adapted(c: np.ndarray, s: np.ndarray, p: np.ndarray, *, lr: float, rho: float) -> np.ndarray:
    """The step of sum p_k KL(sum c_km s_m || s_k) + rho ||c - 1/N||^2, number by number."""
    clients, samples = s.shape[:2]
    after = c.copy()
    for k in range(clients):
        mixed = sum(c[k, m] * s[m] for m in range(clients))
        for m in range(clients):
            slope = (s[m] * (np.log(mixed / s[k]) + 1)).sum() / samples
            after[k, m] -= lr * (p[k] * slope + 2 * rho * (c[k, m] - 1 / clients))
        after[k] = closest_on_simplex(after[k])
    return after


@pytest.mark.parametrize(("lr", "rho"), [(0.5, 0.7), (30.0, 0.01)], ids=["default", "far"])
def test_the_server_learns_who_knows_what(lr: float, rho: float):
    """Two merges: clients 0 and 2, then client 1, each with the latest predictions of the others.

    The far step leaves the simplex, and comes back to it on its border.
    """
    rng = np.random.default_rng(2)
    method = built(coefficient_lr=lr, rho=rho)
    announce, train = method.exchanges
    s, weight = probabilities(rng, CLIENTS, PUBLIC), np.array([10.0, 20.0, 30.0])

    def sent(clients: list[int]) -> list:
        return [
            arrival({"predictions": torch.from_numpy(s[client])}, context(client, int(weight[client])))
            for client in clients
        ]

    server = announce.merge(method.server(wide(NET.init(0))), sent([0, 1, 2]))
    c, p = np.full((CLIENTS, CLIENTS), 1 / CLIENTS), weight / weight.sum()
    np.testing.assert_allclose(server["ktpfl"]["coefficients"].numpy(), c)
    border = False
    for clients in ([0, 2], [1]):
        s[clients] = probabilities(rng, len(clients), PUBLIC)
        server, c = train.merge(server, sent(clients)), adapted(c, s, p, lr=lr, rho=rho)
        np.testing.assert_allclose(server["ktpfl"]["coefficients"].numpy(), c, atol=1e-10)
        for client in range(CLIENTS):
            target = train.down(server, client)["target"].numpy()
            np.testing.assert_allclose(target, np.einsum("m,mij->ij", c[client], s), atol=1e-10)
        border |= (c == 0).any()
    assert np.abs(c - 1 / CLIENTS).max() > 1e-4
    assert border == (lr > 1)


def test_shared_weights_are_mixed_like_predictions():
    """With "+weight", client k starts from sum c_km w_m and sends its model too."""
    method = built(share_weights=True)
    _, train = method.exchanges
    server, rng = method.server(wide(NET.init(0))), np.random.default_rng(4)
    models, s = [wide(NET.init(seed)) for seed in range(CLIENTS)], probabilities(rng, CLIENTS, PUBLIC)
    uploads = [{"predictions": torch.from_numpy(s[k]), **models[k]} for k in range(CLIENTS)]
    server = train.merge(server, [arrival(one, context(k, 6 + k)) for k, one in enumerate(uploads)])
    c = server["ktpfl"]["coefficients"].numpy()
    for client in range(CLIENTS):
        payload = train.down(server, client)
        carry = train.work.start(payload, method.client(wide(NET.init(9))), context(client))
        for part in ("body", "head"):
            for name, leaf in carry["weights"][part].items():
                mixed = sum(c[client, m] * models[m][part][name].numpy() for m in range(CLIENTS))
                np.testing.assert_allclose(leaf.numpy(), mixed, atol=1e-12)
        upload, _ = train.work.finish(carry, context(client))
        assert set(upload) == {"predictions", "body", "head", "buffers"}


@pytest.mark.parametrize("method", ["scaffold", "spherefed"])
def test_its_server_has_no_model_that_others_could_change(method: str):
    """With "+weight" it has one for each client, so that methods on a common model are refused."""
    with pytest.raises(UserError, match=f"{method} needs a base that .*, and ktpfl"):
        build_method(method, NET, base={"name": "ktpfl", "share_weights": True})


def test_a_client_that_is_stopped_early_predicts_its_target():
    """For the images that it did not reach; for the others it predicts itself."""
    rng = np.random.default_rng(5)
    target, (first, *_), method = probabilities(rng, PUBLIC), public_batches(rng), built()
    work = method.exchanges[1].work
    carry = work.start({"target": torch.from_numpy(target)}, method.client(wide(NET.init(0))), context(0))
    carry = work.phases[2].step(carry, first)
    predictions = work.finish(carry, context(0))[0]["predictions"].numpy()
    own = softmax(logits(arrays(wide(NET.init(0))), pixels(first)) / T)
    np.testing.assert_allclose(predictions[:6], own, atol=1e-12)
    np.testing.assert_array_equal(predictions[6:], target[6:])


def test_a_state_in_another_order_sends_the_same():
    """With client 10 before client 2, the coefficients' columns are the clients' numbers still."""
    rng, method = np.random.default_rng(6), ktpfl.Params().build(site_of(NET, clients=11))
    s = torch.from_numpy(probabilities(rng, 11, PUBLIC))
    arrivals = [arrival({"predictions": one}, context(k, 6 + k)) for k, one in enumerate(s)]
    server = method.exchanges[1].merge(method.server(wide(NET.init(0))), arrivals)
    again = unflatten(dict(sorted(flatten(server).items())))
    assert list(again["ktpfl"]["clients"]) != list(server["ktpfl"]["clients"])
    for client in (2, 10):
        sent = [method.exchanges[1].down(one, client)["target"] for one in (server, again)]
        assert torch.equal(*sent)


def test_predictions_that_a_codec_rounds_to_zero_leave_finite_coefficients():
    """Half precision cannot hold a tiny share."""
    method = built()
    certain = torch.zeros(PUBLIC, CLASSES)
    certain[:, 0] = 1.0
    uploads = [certain, certain.flip(1), torch.full((PUBLIC, CLASSES), 1 / CLASSES)]
    arrivals = [arrival({"predictions": one}, context(k)) for k, one in enumerate(uploads)]
    server = method.exchanges[1].merge(method.server(NET.init(0)), arrivals)
    c = server["ktpfl"]["coefficients"]
    assert c.isfinite().all()
    torch.testing.assert_close(c.sum(dim=1), torch.ones(CLIENTS, dtype=torch.float64))


def test_the_traffic_of_a_round_is_the_published_one():
    """3,000 colour images once, then 120 kB each way: with the images 8.90 MiB, FedClassAvg's Table 5."""
    net = build_net("cnn2", (3, 32, 32))
    public = torch.zeros(3000, 3, 32, 32, dtype=torch.uint8)
    site = site_of(net, clients=20)._replace(public=public)
    announce, train = (method := ktpfl.Params().build(site)).exchanges
    first = meta.trace(method, announce, net, [[{256: 11, 184: 1}]])
    assert dict(first.down) == {"public": 9_216_000}
    assert dict(first.up) == {"predictions": 120_000}
    each = meta.trace(method, train, net, [[{256: 11, 184: 1}, {64: 10}, {256: 11, 184: 1}]])
    assert (dict(each.down), dict(each.up)) == ({"target": 120_000}, {"predictions": 120_000})
    assert (first.down["public"] + each.down["target"]) / 2**20 == pytest.approx(8.90, abs=0.005)


def test_without_public_images_it_is_refused():
    """The message names the key."""
    with pytest.raises(UserError, match="ktpfl works on public data, and the task has none") as caught:
        ktpfl.Params().build(site_of(NET)._replace(public=None))
    assert caught.value.where == "task.public"
    assert "task.public" in caught.value.hint
