"""What methods minimise and solve, against the papers' formulas written out anew."""

from __future__ import annotations

import pytest
import torch
from builders import arrival, build_method, build_net
from torch.nn import functional as F

from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.training import LocalTraining
from edgefl.methods.fedclassavg import supervised_contrastive
from edgefl.protocol import Batch, Ctx, Exchange, Method, Net, flatten
from edgefl.protocol.calibration import solve

CLASSES = 5
RATE = 0.5


@pytest.fixture(scope="module")
def net() -> Net:
    """A fully connected net of 8 features on 12 pixels."""
    return build_net("mlp", (1, 3, 4), CLASSES, hidden=(8,))


def ctx() -> Ctx:
    return Ctx(0, 0, RATE, 1, 6, torch.ones(CLASSES))


def batch(size: int = 6, seed: int = 0, views: int = 1) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*((views,) if views > 1 else ()), size, 1, 3, 4, generator=generator)
    return Batch(x, torch.randint(CLASSES, (size,), generator=generator))


def exchange(method: Method, name: str) -> Exchange:
    return next(one for one in method.exchanges if one.name == name)


def trained(method: Method, net: Net, name: str, batches: list[Batch]) -> dict[str, torch.Tensor]:
    """The upload of one job, flat."""
    initial = net.init(0)
    found = exchange(method, name)
    payload = found.down(method.server(initial), 0)
    carry = found.work.start(payload, method.client(initial), ctx())
    for one in batches:
        carry = found.work.phases[0].step(carry, one)
    return flatten(found.work.finish(carry, ctx())[0])


def plain(**settings) -> LocalTraining:
    return LocalTraining(optimizer=Sgd(lr=RATE, **settings))


def by_hand(net: Net, batches: list[Batch], loss) -> dict[str, torch.Tensor]:
    """SGD on ``loss(weights, start, batch)`` by autograd over body and head."""
    start = flatten({part: net.init(0)[part] for part in ("body", "head")})
    weights = {key: value.clone() for key, value in start.items()}
    for one in batches:
        live = {key: value.clone().requires_grad_() for key, value in weights.items()}
        gradients = torch.autograd.grad(loss(live, start, one), list(live.values()), allow_unused=True)
        weights = {
            key: value.detach() - (RATE * grad if grad is not None else 0)
            for (key, value), grad in zip(live.items(), gradients, strict=True)
        }
    return weights


def features(w: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x.flatten(1) @ w["body/fc1.weight"].T + w["body/fc1.bias"])


def logits(w: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    return features(w, x) @ w["head/weight"].T + w["head/bias"]


def log_likelihood(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return -torch.stack([z[i, y[i]] - z[i].exp().sum().log() for i in range(len(y))]).mean()


def test_supervised_contrastive_by_loops():
    """SupCon over pairs one by one; the lone label of the batch has no positive and adds 0."""
    labels = [0, 1, 0, 2, 1, 0]
    found = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    temperature = 0.3
    unit = [row / row.norm() for row in found]
    total = 0.0
    for i in range(6):
        positives = [p for p in range(6) if p != i and labels[p] == labels[i]]
        share = sum(torch.exp(unit[i] @ unit[a] / temperature) for a in range(6) if a != i)
        for p in positives:
            total += torch.log(torch.exp(unit[i] @ unit[p] / temperature) / share) / len(positives)
    loss = supervised_contrastive(found, torch.tensor(labels), temperature)
    torch.testing.assert_close(loss, -total / 6)


def test_fedprox_pulls_by_hand(net: Net):
    """Each step moves by the gradient of cross-entropy plus mu times the way from the received weights."""
    mu, batches = 0.7, [batch(seed=seed) for seed in range(3)]

    def loss(w, start, one):
        away = sum(((w[key] - start[key]) ** 2).sum() for key in w)
        return log_likelihood(logits(w, one.x), one.y) + mu / 2 * away

    expected = by_hand(net, batches, loss)
    found = trained(build_method("fedprox", net, plain(), mu=mu), net, "train", batches)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        torch.testing.assert_close(found[key], value)


@pytest.mark.parametrize("temperature", [0.25, 4.0])
def test_chilled_gradient(net: Net, temperature: float):
    """The head's bias moves by the batch mean of (softmax(z/T) - onehot(y)) / T: no T^2 factor."""
    one, method = batch(), build_method("flexchill", net, plain(), temperature=temperature)
    start = flatten(net.init(0))
    z = logits(start, one.x)
    gradient = (torch.softmax(z / temperature, dim=-1) - F.one_hot(one.y, CLASSES)) / temperature
    found = trained(method, net, "train", [one])
    torch.testing.assert_close(found["head/bias"], start["head/bias"] - RATE * gradient.mean(dim=0))


def test_fedclassavg_minimises_its_three_terms(net: Net):
    """SupCon on both views, cross-entropy on the first, and rho times the norm of the head's move."""
    rho, weight, t = 0.4, 0.6, 0.5
    batches = [batch(seed=seed, views=2) for seed in range(3)]

    def loss(w, start, one):
        found = torch.cat([features(w, one.x[0]), features(w, one.x[1])])
        away = torch.cat([(w[key] - start[key]).flatten() for key in w if key.startswith("head/")])
        pull = (away**2).sum().sqrt() if away.abs().sum() else 0.0
        contrast = supervised_contrastive(found, torch.cat([one.y, one.y]), t)
        return log_likelihood(logits(w, one.x[0]), one.y) + rho * pull + weight * contrast

    expected = by_hand(net, batches, loss)
    settings = {"share_body": True, "rho": rho, "contrastive": weight, "contrastive_temperature": t}
    found = trained(build_method("fedclassavg", net, plain(), **settings), net, "train", batches)
    for key, value in expected.items():
        torch.testing.assert_close(found[key], value, rtol=1e-4, atol=1e-5)


def test_fedclassavg_scores_a_client_with_the_head_it_trained(net: Net):
    """A client's own model is its body under its own head, not under the merged one."""
    method = build_method("fedclassavg", net, plain())
    (found,) = method.exchanges
    initial = net.init(0)
    server, state = method.server(initial), method.client(initial)
    carry = found.work.start(found.down(server, 0), state, ctx())
    carry = found.work.phases[0].step(carry, batch(views=2))
    upload, state = found.work.finish(carry, ctx())
    other = {"head": {key: value + 1 for key, value in upload["head"].items()}}
    merged = found.merge(server, [arrival(upload, ctx()), arrival(other, ctx())])
    own = method.personal_model(merged, state).weights["head"]
    assert all(torch.equal(own[key], upload["head"][key]) for key in own)
    # The next round starts from the merged head all the same.
    again = found.work.start(found.down(merged, 0), state, ctx())
    assert all(torch.equal(again["weights"]["head"][key], merged["head"][key]) for key in own)


def test_spherefed_head_is_orthonormal(net: Net):
    """W W^T = I for W of C rows, no bias; the same at the server and at every client."""
    method, initial = build_method("spherefed", net), net.init(3)
    head = method.server(initial)["head"]
    assert tuple(head) == ("weight",)
    assert head["weight"].shape == (CLASSES, 8)
    torch.testing.assert_close(head["weight"] @ head["weight"].T, torch.eye(CLASSES), atol=1e-6, rtol=0)
    assert torch.equal(head["weight"], method.client(initial)["head"]["weight"])
    assert not torch.equal(head["weight"], method.server(net.init(4))["head"]["weight"])


def test_spherefed_minimises_squared_error_on_the_sphere(net: Net):
    """(1/C) ||W f/||f|| - onehot(y)||^2, batch mean; the body alone moves."""
    method = build_method("spherefed", net, plain())
    w_fixed = method.server(net.init(0))["head"]["weight"]
    batches = [batch(seed=seed) for seed in range(3)]

    def loss(w, start, one):  # noqa: ARG001
        found = features(w, one.x)
        unit = found / found.norm(dim=1, keepdim=True)
        errors = [
            ((w_fixed @ unit[i] - F.one_hot(one.y[i], CLASSES)) ** 2).sum() / CLASSES
            for i in range(len(one.y))
        ]
        return torch.stack(errors).mean()

    expected = by_hand(net, batches, loss)
    found = trained(method, net, "train", batches)
    assert set(found) == {"body/fc1.weight", "body/fc1.bias"}
    for key, value in found.items():
        torch.testing.assert_close(value, expected[key])


def unit_features(net: Net, method: Method, one: Batch) -> torch.Tensor:
    body = method.server(net.init(0))
    found = features(flatten(body), one.x).to(torch.float64)
    return found / found.norm(dim=1, keepdim=True)


def calibrated(net: Net, method: Method, clients: list[list[Batch]]) -> torch.Tensor:
    found, server = exchange(method, "calibrate"), method.server(net.init(0))
    arrivals = []
    for batches in clients:
        carry = found.work.start(found.down(server, 0), method.client(net.init(0)), ctx())
        for one in batches:
            carry = found.work.phases[0].step(carry, one)
        arrivals.append(arrival(found.work.finish(carry, ctx())[0], ctx()))
    return found.merge(server, arrivals)["head"]["weight"]


def test_ffc_is_least_squares_on_all_features(net: Net):
    """Equation 10: the calibrated head solves min ||F W^T - Y|| over every client's stacked features."""
    method, clients = (
        build_method("spherefed", net),
        [[batch(20, seed=0), batch(9, seed=1)], [batch(15, seed=2)]],
    )
    found = torch.cat([unit_features(net, method, one) for batches in clients for one in batches])
    labels = torch.cat([one.y for batches in clients for one in batches])
    alive = found.abs().sum(dim=0) > 0
    expected = torch.zeros(CLASSES, 8, dtype=torch.float64)
    targets = F.one_hot(labels, CLASSES).to(torch.float64)
    expected[:, alive] = torch.linalg.lstsq(found[:, alive], targets).solution.T
    torch.testing.assert_close(
        calibrated(net, method, clients).to(torch.float64), expected, rtol=1e-3, atol=1e-3
    )


def test_a_dead_feature_takes_the_pseudo_inverse():
    """A feature that is always 0 makes V singular; the least-norm solution gives it no weight."""
    f = torch.randn(30, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    f[:, 2] = 0
    y = F.one_hot(torch.arange(30) % 4, 4).to(torch.float64)
    head = solve(f.T @ y, f.T @ f, 0.0)
    torch.testing.assert_close(head, torch.linalg.lstsq(f, y, driver="gelsd").solution.T)
    assert head[:, 2].abs().max() < 1e-12


def test_the_ridge_is_equation_12():
    """W* = [(V + lambda I)^-1 U]^T, with lambda added to the sum as it is."""
    f = torch.randn(30, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = F.one_hot(torch.arange(30) % 4, 4).to(torch.float64)
    expected = (torch.linalg.inv(f.T @ f + 3.0 * torch.eye(6, dtype=torch.float64)) @ f.T @ y).T
    torch.testing.assert_close(solve(f.T @ y, f.T @ f, 3.0), expected)
    assert (solve(f.T @ y, f.T @ f, 0.0) - expected).abs().max() > 1e-3


def test_the_calibration_upload_is_u_and_v(net: Net):
    """l*(l + C) numbers: 8 * 13 of 4 bytes, whatever the samples."""
    found = trained(build_method("spherefed", net), net, "calibrate", [batch()])
    assert sum(value.numel() for value in found.values()) == 8 * (8 + CLASSES)
    assert {value.shape for value in found.values()} == {(8, CLASSES), (8, 8)}
