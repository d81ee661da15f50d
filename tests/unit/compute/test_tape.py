"""The tape: a function's operators, replayed, and where it could go wrong silently."""

import pytest
import torch
from torch.nn import functional as F

from edgefl.compute.tape import UnrecordableError, record

ONE, OTHER = torch.tensor([1.0, -2.0, 3.0]), torch.tensor([5.0, 7.0, -11.0])


def assert_replayed(function, *rounds) -> None:
    """A tape of the first round's inputs gives what the function does on all of them, twice each."""
    tape = record(function, rounds[0])
    for inputs in (*rounds, *rounds):
        before = [one.clone() for one in inputs]
        found, expected = tape(*inputs), function(*inputs)
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
        assert all(torch.equal(one, old) for one, old in zip(inputs, before, strict=True))


def gradients(w, b, x, y):
    """Losses of four clients and the gradients of their linear layers, under vmap."""
    live = [w.detach().requires_grad_(), b.detach().requires_grad_()]

    def loss(w, b, x, y):
        return F.cross_entropy(F.linear(x, w, b).relu(), y)

    losses = torch.vmap(loss)(*live, x, y)
    return [losses.detach(), *torch.autograd.grad(losses.sum(), live)]


def test_a_replay_is_the_function():
    """On the recorded inputs and on others of their shapes, up to rounding, always with the same bits."""
    y, generator = torch.arange(20).view(4, 5) % 3, torch.Generator().manual_seed(0)
    first, second = (
        [torch.randn(*shape, generator=generator) for shape in ((4, 3, 8), (4, 3), (4, 5, 8))] for _ in "ab"
    )
    tape, again = record(gradients, [*first, y]), record(gradients, [*second, 2 - y])
    for inputs in (first, second, first):
        found, same = tape(*inputs, 2 - y), again(*inputs, 2 - y)
        for got, one, expected in zip(found, same, gradients(*inputs, 2 - y), strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)
            assert torch.equal(got, one)


def test_inputs_that_were_one_tensor_may_be_two():
    """As with the server's last two versions, which are the same only before the first merge."""
    assert_replayed(lambda x, y: [2 * x + y, y], (ONE, ONE), (ONE, OTHER))


def test_writes_to_what_the_function_made():
    """As running statistics are: on a clone, or undeclared in tensors that start anew at each replay."""

    def cloned(x, mean):
        mean = mean.clone()
        mean.mul_(0.5).add_(x.mean(0))
        return [mean, F.batch_norm(x, mean, torch.ones_like(mean), training=False)]

    def made(x, _):
        mean, var = x.new_zeros(2), x.new_ones(2)
        out, *_ = torch.native_batch_norm(x, None, None, mean, var, True, 0.5, 1e-5)
        return [out, mean, var]

    inputs = torch.arange(6.0).view(3, 2), torch.tensor([1.0, 2.0])
    for function in (cloned, made):
        assert_replayed(function, inputs, [3 * one for one in inputs])


def _counted(x):
    chosen = x[x > 0]
    return [chosen.sum() / chosen.shape[0]]


def _written_constant(x):
    total = torch.tensor([0.0, 0.0, 0.0])
    total += x
    return [total]


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (_counted, "index"),
        (lambda x: [x / len(x.nonzero())], "nonzero"),
        (lambda x: [x * x.tolist()[0]], "tolist"),
        (lambda x: [x * float(x.numpy()[0])], "numpy"),
        (lambda x: [x if torch.equal(x, x) else 2 * x], "equal"),
        (lambda x: [x + torch.rand_like(x)], "chance"),
        (lambda x: [F.dropout(x, 0.5)], "chance"),
        (_written_constant, "writes"),
        (lambda x: [x.add_(0)], "writes"),
    ],
    ids=["mask", "nonzero", "tolist", "numpy", "equal", "rand", "dropout", "a constant", "an input"],
)
def test_what_a_replay_cannot_repeat_is_refused(function, why):
    """Numbers read in any way, chance, and writes to tensors that the function did not make."""
    with pytest.raises(UnrecordableError, match=why):
        record(function, [ONE.clone()])
