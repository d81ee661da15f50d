"""Cases where a tape could go wrong silently: memory that is shared, written to, or read outside torch."""

from __future__ import annotations

import pytest
import torch

from edgefl.compute.tape import UnrecordableError, record

ONE, OTHER = torch.tensor([1.0, -2.0, 3.0]), torch.tensor([5.0, 7.0, -11.0])


def assert_replayed(function, *rounds) -> None:
    """A tape of the first round's inputs gives what the function does on all of them, twice each."""
    tape = record(function, rounds[0])
    for inputs in (*rounds, *rounds):
        before = [one.clone() for one in inputs]
        found, expected = tape(inputs), function(*inputs)
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
        assert all(torch.equal(one, old) for one, old in zip(inputs, before, strict=True))


def test_inputs_that_were_one_tensor_may_be_two():
    """As with the server's last two versions, which are the same only before the first merge."""
    assert_replayed(lambda x, y: [2 * x + y, y], (ONE, ONE), (ONE, OTHER))


def test_undeclared_writes_to_running_statistics():
    """Batch norm's statistics, if made inside, start anew at each replay."""

    def function(x):
        mean, var = x.new_zeros(2), x.new_ones(2)
        out, *_ = torch.native_batch_norm(x, None, None, mean, var, True, 0.5, 1e-5)
        return [out, mean, var]

    assert_replayed(function, (torch.arange(6.0).view(3, 2),), (torch.arange(6.0).view(3, 2) ** 2,))


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
        (_written_constant, "writes"),
        (lambda x: [x.add_(0)], "writes"),
    ],
    ids=["mask", "nonzero", "tolist", "numpy", "equal", "a constant", "an input"],
)
def test_what_a_replay_cannot_repeat_is_refused(function, why):
    """Numbers read in any way, and writes to tensors that the function did not make."""
    with pytest.raises(UnrecordableError, match=why):
        record(function, [ONE.clone()])
