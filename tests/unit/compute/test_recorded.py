"""The tape: a function's operators, replayed."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from edgefl.compute.tape import UnrecordableError, record


def drawn(*shapes):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(*shape, generator=generator) for shape in shapes]


def gradients(w, b, x, y):
    """Losses of four clients and the gradients of their linear layers, under vmap."""
    live = [w.detach().requires_grad_(), b.detach().requires_grad_()]

    def loss(w, b, x, y):
        return F.cross_entropy(F.linear(x, w, b).relu(), y)

    losses = torch.vmap(loss)(*live, x, y)
    return [losses.detach(), *torch.autograd.grad(losses.sum(), live)]


def test_a_replay_is_the_function():
    """On the recorded inputs and on others of their shapes, up to rounding, always with the same bits."""
    y = torch.arange(20).view(4, 5) % 3
    first, second = (drawn((4, 3, 8), (4, 3), (4, 5, 8)) for _ in range(2))
    second = [2 * one + 1 for one in second]
    tape = record(gradients, [*first, y])
    again = record(gradients, [*second, 2 - y])
    for inputs in (first, second, first):
        found, same = tape([*inputs, 2 - y]), again([*inputs, 2 - y])
        for got, one, expected in zip(found, same, gradients(*inputs, 2 - y), strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)
            assert torch.equal(got, one)


def test_writes_in_place_are_replayed():
    """If the function made the tensor, as with running statistics."""

    def function(x, mean):
        mean = mean.clone()
        mean.mul_(0.5).add_(x.mean(0))
        return [mean, F.batch_norm(x, mean, torch.ones_like(mean), training=False)]

    inputs = drawn((6, 2), (2,))
    tape = record(function, inputs)
    for given in (inputs, [3 * one for one in inputs]):
        before = [one.clone() for one in given]
        for got, expected in zip(tape(given), function(*given), strict=True):
            assert torch.equal(got, expected)
        assert all(torch.equal(one, old) for one, old in zip(given, before, strict=True))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: [x * x.sum().item()],
        lambda x: [x[x > 0]],
        lambda x: [x + torch.rand_like(x)],
        lambda x: [F.dropout(x, 0.5)],
    ],
    ids=["item", "mask", "rand", "dropout"],
)
def test_dependence_on_data_or_chance_is_refused(function):
    """The next call might do something else."""
    with pytest.raises(UnrecordableError):
        record(function, drawn((3,)))
