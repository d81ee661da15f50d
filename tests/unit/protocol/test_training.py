"""Local steps against torch's own optimizers."""

from typing import Any

import pytest
import torch
from builders import build_net

from edgefl.core.optimizers import Optimizer
from edgefl.core.optimizers.adam import Params as Adam
from edgefl.core.optimizers.adamw import Params as AdamW
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.protocol import (
    BUFFERS,
    Batch,
    Carry,
    GradientStep,
    Net,
    NetObjective,
    Tree,
    flatten,
    leaves,
    trainer,
)

STEPS = 10
RATE = 0.1

# Ours, torch's class and its settings.
OPTIMIZERS: dict[str, tuple[Optimizer, Any, dict[str, Any]]] = {
    "sgd": (Sgd(lr=RATE), torch.optim.SGD, {}),
    "decay": (Sgd(lr=RATE, weight_decay=0.1), torch.optim.SGD, {"weight_decay": 0.1}),
    "momentum": (Sgd(lr=RATE, momentum=0.9), torch.optim.SGD, {"momentum": 0.9}),
    "nesterov": (
        Sgd(lr=RATE, momentum=0.9, nesterov=True, weight_decay=0.1),
        torch.optim.SGD,
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    ),
    "clipped": (Sgd(lr=RATE, clip_norm=0.5, momentum=0.9), torch.optim.SGD, {"momentum": 0.9}),
    "adam": (
        Adam(lr=RATE, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
        torch.optim.Adam,
        {"betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.1},
    ),
    "adamw": (AdamW(lr=RATE), torch.optim.AdamW, {"weight_decay": 0.01}),
    "clipped adamw": (
        AdamW(lr=RATE, clip_norm=0.5, weight_decay=0.3),
        torch.optim.AdamW,
        {"weight_decay": 0.3},
    ),
}


@pytest.fixture(scope="module")
def net() -> Net:
    """Eight hidden units on twelve pixels."""
    return build_net("mlp", (1, 3, 4), 5, hidden=(8,))


def batches() -> list[Batch]:
    generator = torch.Generator().manual_seed(0)
    return [
        Batch(3 * torch.randn(6, 1, 3, 4, generator=generator), torch.randint(5, (6,), generator=generator))
        for _ in range(STEPS)
    ]


@pytest.mark.parametrize("key", OPTIMIZERS)
def test_steps_are_those_of_torch(net: Net, key: str):
    """Ten steps move the weights as torch's module, optimizer and ``clip_grad_norm_`` do."""
    ours, kind, settings = OPTIMIZERS[key]
    weights = net.init(0)
    carry = trainer(weights, ours, net.trained, RATE)
    step = GradientStep(NetObjective(net), ours, net.trained)
    module = net.module(weights).train()
    theirs = kind(module.parameters(), lr=RATE, **settings)
    total = 0.0
    for batch in batches():
        carry = step(carry, batch)
        theirs.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(batch.x), batch.y)
        loss.backward()
        if ours.clip_norm:
            norm = torch.nn.utils.clip_grad_norm_(module.parameters(), ours.clip_norm)
            assert norm > ours.clip_norm or total
        theirs.step()
        total += loss.item()
    found = leaves({part: carry["weights"][part] for part in net.trained})
    for value, expected in zip(found, module.parameters(), strict=True):
        torch.testing.assert_close(value, expected.detach(), rtol=1e-4, atol=1e-6)
    assert carry["scalars"]["loss"].item() == pytest.approx(total, rel=1e-4)
    assert carry["slots"][step.key].get("steps", STEPS) == STEPS


def shared_gradient(weights: Tree, batch: Batch, carry: Carry) -> tuple[torch.Tensor, Tree]:  # noqa: ARG001
    """Two weights that only meet as a sum: autograd gives both the very same gradient tensor."""
    first, second = weights["body"].values()
    return ((first + second) * batch.x).sum(), weights[BUFFERS]


def expanded_gradient(weights: Tree, batch: Batch, carry: Carry) -> tuple[torch.Tensor, Tree]:  # noqa: ARG001
    """A plain sum: its gradient is one number seen through an expanded view."""
    return sum(leaf.sum() for leaf in weights["body"].values()), weights[BUFFERS]


@pytest.mark.parametrize("objective", [shared_gradient, expanded_gradient])
@pytest.mark.parametrize("key", ["nesterov", "clipped", "clipped adamw"])
def test_gradients_may_share_memory(objective: Any, key: str):
    """Clipping and decay treat each gradient once, even if autograd returns one tensor twice."""
    ours, kind, settings = OPTIMIZERS[key]
    start = {"first": torch.tensor([1.0, -2.0, 3.0]), "second": torch.tensor([0.5, 0.5, -1.0])}
    batch = Batch(torch.tensor([3.0, 2.0, -1.0]), torch.zeros(1, dtype=torch.int64))
    carry = trainer({"body": start, BUFFERS: {}}, ours, ("body",), RATE)
    values = {name: value.clone().requires_grad_() for name, value in start.items()}
    theirs = kind(values.values(), lr=RATE, **settings)
    for _ in range(3):
        carry = GradientStep(objective, ours, ("body",))(carry, batch)
        theirs.zero_grad()
        objective({"body": values, BUFFERS: {}}, batch, {})[0].backward()
        if ours.clip_norm:
            torch.nn.utils.clip_grad_norm_(values.values(), ours.clip_norm)
        theirs.step()
    for name, value in carry["weights"]["body"].items():
        torch.testing.assert_close(value, values[name].detach())


def test_untrained_parts_stay(net: Net):
    """A part that is not trained is neither copied nor changed; trained ones are copies."""
    weights = net.init(0)
    before = flatten(weights)
    carry = trainer(weights, OPTIMIZERS["momentum"][0], ("head",), RATE)
    assert carry["weights"]["body"] is weights["body"]
    assert carry["weights"]["head"]["weight"] is not weights["head"]["weight"]
    assert len(carry["slots"]["head"]["momentum"]) == 2
    step = GradientStep(NetObjective(net), OPTIMIZERS["momentum"][0], ("head",))
    for batch in batches()[:2]:
        carry = step(carry, batch)
    after = flatten(carry["weights"])
    assert all(torch.equal(after[key], before[key]) for key in before if key.startswith("body"))
    assert not torch.equal(after["head/weight"], before["head/weight"])
