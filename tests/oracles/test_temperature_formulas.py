"""FLex&Chill's temperatures by job and by sample, in double precision against their formulas written anew."""

import math
from typing import Any

import pytest
import torch
from builders import build_method
from exact import CLASSES, NET, RATE, data, wide

from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.scenario import LocalTraining
from edgefl.methods.flexchill import Params
from edgefl.protocol import Assignment, Ctx, flatten

PLAIN = LocalTraining(optimizer=Sgd(lr=RATE))
# Settings, and the temperature of round 3 of 9 on a Raspberry Pi 5 with two fifths of the work.
BY_JOB: dict[str, tuple[dict[str, Any], float]] = {
    "device": ({"by": "device", "values": {"raspberry-pi-5": 0.4}}, 0.4),
    "other device": ({"by": "device", "values": {"laptop-cpu": 0.4}, "default": 0.7}, 0.7),
    "model": ({"by": "model", "values": {"mlp": 0.3}}, 0.3),
    "other model": ({"by": "model", "values": {"cnn2": 0.3}, "default": 2.0}, 2.0),
    "linear": ({"by": "round", "start": 0.2, "end": 1.0}, 0.2 + 0.8 * 3 / 8),
    "cosine": (
        {"by": "round", "start": 0.2, "end": 1.0, "shape": "cosine"},
        0.6 - 0.4 * math.cos(math.pi * 3 / 8),
    ),
    "step": ({"by": "round", "start": 0.2, "end": 1.0, "shape": "step"}, 0.2),
    "work": ({"by": "work", "full": 0.5}, 0.2),
    "work squared": ({"by": "work", "power": 2.0}, 0.16),
    "least": ({"by": "work", "power": 4.0, "least": 0.1}, 0.1),
}


BATCHES = [data(6, 0), data(6, 1)]


def trained(temperature: Any, round_: int = 3, **settings: Any) -> dict[str, torch.Tensor]:
    """The upload of one job, flat."""
    method = build_method("flexchill", NET, PLAIN, temperature=temperature, **settings)
    (exchange,), initial = method.exchanges, wide(NET.init(0))
    job = Ctx(0, round_, RATE, 2, 6, torch.ones(CLASSES), 0.4)
    ctx = exchange.context(Assignment(job, 9, "raspberry-pi-5"))
    carry = exchange.work.start(exchange.down(method.server(initial), 0), method.client(initial), ctx)
    for one in BATCHES:
        carry = exchange.work.phases[0].step(carry, one)
    return flatten(exchange.work.finish(carry, ctx)[0])


def by_hand(temperature) -> dict[str, torch.Tensor]:
    """Plain SGD on mean_i CE(z_i / T_i); ``temperature(z_i, y_i)`` is a plain number."""
    weights = flatten({part: wide(NET.init(0))[part] for part in ("body", "head")})
    for x, y in BATCHES:
        live = {key: value.clone().requires_grad_() for key, value in weights.items()}
        hidden = torch.relu(x.flatten(1) @ live["body/fc1.weight"].T + live["body/fc1.bias"])
        z = hidden @ live["head/weight"].T + live["head/bias"]
        terms = []
        for row, label in zip(z, y, strict=True):
            cold = row / temperature(row.detach(), label)
            terms.append(cold.exp().sum().log() - cold[label])
        gradients = torch.autograd.grad(sum(terms) / len(y), list(live.values()))
        pairs = zip(live.items(), gradients, strict=True)
        weights = {key: value.detach() - RATE * gradient for (key, value), gradient in pairs}
    return weights


def assert_equal(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        torch.testing.assert_close(found[key], value, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("variant", BY_JOB)
def test_a_job_trains_at_its_temperature(variant: str):
    """Two steps of SGD on CE(z / T) with the T of this job's device, model, round or share of the work."""
    settings, temperature = BY_JOB[variant]
    assert_equal(trained(settings), by_hand(lambda *_: temperature))


@pytest.mark.parametrize(
    ("round_", "expected"), [(-1, 0.2), (0, 0.2), (3, 0.2), (4, 1.0), (8, 1.0), (9, 1.0)]
)
def test_a_schedule_reaches_both_ends(round_: int, expected: float):
    """A step is taken in the middle round; outside the rounds, T is that of the nearer end."""
    settings = {"by": "round", "start": 0.2, "end": 1.0, "shape": "step"}
    assert_equal(trained(settings, round_), by_hand(lambda *_: expected))


@pytest.mark.parametrize(("easy", "hard"), [(1.0, 0.25), (0.5, 2.0)])
def test_a_sample_trains_at_its_temperature(easy: float, hard: float):
    """mean_i CE(z_i / T_i) with T_i = hard + (easy - hard) exp(-CE(z_i)), a constant in the gradient."""

    def temperature(z, label):
        loss = math.log(sum(math.exp(one) for one in z.tolist())) - z[label].item()
        return hard + (easy - hard) * math.exp(-loss)

    settings = {"by": "sample", "easy": easy, "hard": hard}
    assert_equal(trained(settings), by_hand(temperature))


def test_temperatures_multiply():
    """A chilled base that is chilled again divides the logits by both, whatever each depends on."""

    def temperature(z, label):
        right = torch.softmax(z, dim=0)[label].item()
        return 0.5 * 0.4 * (0.5 + 0.5 * right) * (0.8 + 0.2 * right)

    base: dict[str, Any] = {"name": "fedavg"}
    for one in (0.5, {"by": "device", "values": {"raspberry-pi-5": 0.8}}, {"by": "work", "full": 1.25}):
        base = {"name": "flexchill", "temperature": one, "base": base}
    for hard in (0.5, 0.8):
        base = {"name": "flexchill", "temperature": {"by": "sample", "hard": hard}, "base": base}
    assert_equal(trained(1.0, base=base), by_hand(temperature))


def test_a_models_name_is_read_in_both_spellings():
    """As files are: with hyphens or underscores."""
    spec = {"by": "model", "values": {"mobilenet-v2": 0.3, "cnn2": 0.4}}
    found = Params(temperature=spec).temperature
    assert [found.of(name) for name in ("mobilenet_v2", "cnn2", "mlp")] == [0.3, 0.4, 1.0]
