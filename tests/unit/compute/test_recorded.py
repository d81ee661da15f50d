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
    """On the recorded inputs and on others of their shapes, bit for bit."""
    y = torch.arange(20).view(4, 5) % 3
    first, second = (drawn((4, 3, 8), (4, 3), (4, 5, 8)) for _ in range(2))
    second = [2 * one + 1 for one in second]
    tape = record(gradients, [*first, y])
    for inputs in (first, second, first):
        for got, expected in zip(tape([*inputs, 2 - y]), gradients(*inputs, 2 - y), strict=True):
            assert torch.equal(got, expected)


def test_it_is_shorter_than_what_was_called():
    """Views that change nothing, factors of one and what no input goes into are gone."""
    inputs = [*drawn((4, 3, 8), (4, 3), (4, 5, 8)), torch.zeros(4, 5, dtype=torch.int64)]
    code = record(gradients, inputs)._forward.__self__.code  # noqa: SLF001
    assert "detach" not in code
    assert "ones_like" not in code
    assert "bmm" in code


def test_constants_are_the_same_for_all_inputs():
    """What is made inside of no input is folded; what has an input's data in it is not."""

    def function(x):
        return [x * torch.ones_like(x).cumsum(0) + torch.tensor([1.0, 2.0]) + torch.zeros(2).sum()]

    tape = record(function, drawn((3, 2)))
    other = torch.full((3, 2), 5.0)
    assert torch.equal(tape([other])[0], function(other)[0])


def test_writes_in_place_are_replayed():
    """Into what was made inside; running statistics are such."""

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


def test_results_that_are_inputs_or_twice_the_same():
    """Come back as they are."""
    tape = record(lambda x, y: [x, x + y, x + y, y.detach()], drawn((2,), (2,)))
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    assert [one.tolist() for one in tape([x, y])] == [[1, 2], [4, 6], [4, 6], [3, 4]]


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
def test_data_and_chance_are_refused(function):
    """What a call did then need not be what the next one does."""
    with pytest.raises(UnrecordableError):
        record(function, drawn((3,)))


def test_several_results_of_one_operator():
    """Such as the values and places of a maximum."""
    tape = record(lambda x: [x.max(dim=0).values, x.sort(dim=0).indices], drawn((3, 2)))
    x = torch.tensor([[1.0, 5.0], [4.0, 2.0], [3.0, 3.0]])
    values, places = tape([x])
    assert values.tolist() == [4, 5]
    assert places.tolist() == [[0, 1], [2, 2], [1, 0]]
