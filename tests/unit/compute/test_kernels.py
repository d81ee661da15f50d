"""Operators' costs: every operator is in one table, or refused."""

import pytest
import torch
from torch.nn import functional as F

from edgefl.compute.kernels import (
    ADDS,
    COMPOSED,
    FREE,
    GATHERS,
    MOVES,
    PRODUCTS,
    RANDOM,
    SCATTERS,
    UNREAD,
    UnknownOperatorError,
)
from edgefl.compute.tracer import Tracer


def traced(function, *args):
    """The kernels of a call."""
    tracer = Tracer()
    with tracer:
        function(*args)
    return tracer.kernels


@pytest.mark.parametrize(
    ("call", "message", "placed"),
    [
        (torch.linalg.qr, "aten.linalg_qr", True),
        # Not because its cost is missing.
        (F.dropout, "draws random numbers", False),
    ],
)
def test_what_has_no_cost_is_refused(call, message, placed):
    """An unknown operator is named, with where to add it; a random one is refused as such."""
    with torch.device("meta"), pytest.raises(UnknownOperatorError, match=message) as caught:
        traced(call, torch.empty(3, 3))
    assert ("kernels.py" in caught.value.hint) == placed
    assert caught.value.hint


def test_an_operator_is_in_one_table_under_atens_name():
    entries = [*FREE, *MOVES, *PRODUCTS, *(GATHERS | SCATTERS | ADDS)]
    assert len(entries) == len(set(entries))
    assert not COMPOSED.keys() & (GATHERS | SCATTERS | ADDS)
    assert not RANDOM & (FREE | MOVES)
    assert UNREAD <= MOVES
    aten = torch.ops.aten
    entries += COMPOSED
    assert not [name for name in entries if not (hasattr(aten, name) or hasattr(aten, f"_foreach_{name}"))]


@pytest.mark.parametrize(
    ("call", "moved"),
    [
        # Three rows of 5 floats are read and written, 60 bytes each way, and three indices of 8 bytes.
        (lambda table, rows, _: table.index_select(0, rows), 2 * 60 + 24),
        (lambda table, rows, _: table[rows], 2 * 60 + 24),
        (lambda table, rows, values: table.index_put_((rows,), values), 2 * 60 + 24),
        (lambda table, rows, values: table.index_copy_(0, rows, values), 2 * 60 + 24),
        # Three indices that are each for five numbers.
        (lambda table, rows, values: table.scatter_(0, rows[:, None].expand(3, 5), values), 2 * 60 + 24),
        (lambda table, rows, _: table.scatter_(0, rows[:, None].expand(3, 5), 1.0), 60 + 24),
        (lambda table, rows, _: table.gather(0, rows[:, None].expand(3, 5)), 2 * 60 + 24),
    ],
)
def test_what_is_indexed_moves_no_more_than_that(call, moved):
    """However large the table is that rows are taken from or put into."""
    for size in (10, 1000):
        with torch.device("meta"):
            given = torch.empty(size, 5), torch.empty(3, dtype=torch.int64), torch.empty(3, 5)
            (kernel,) = traced(call, *given)
        assert kernel.bytes == moved


def meta(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device="meta")


X, ROW, ROWS, MASK = meta(4, 5), meta(4, 1), meta(2, dtype=torch.int64), meta(4, 5, dtype=torch.bool)
TEN, THREE = meta(10), meta(3)
# Operands and results once, by kernel: 4 x 5 floats are 80 bytes, their row sums 16, their mean 4.
MOVED = {
    "add": (lambda: TEN + meta(10), [120]),
    "in place": (lambda: TEN.add_(meta(10)), [120]),
    "relu": (TEN.relu, [80]),
    "filling": (TEN.zero_, [40]),
    "a copy does not read what it writes": (lambda: TEN.copy_(meta(10)), [80]),
    "zeros of a shape": (lambda: TEN.new_zeros(10), [40]),
    "zeros like it": (lambda: torch.zeros_like(TEN), [40]),
    "Swin's shift of its windows": (lambda: TEN.roll(3), [80]),
    "views are free": (lambda: X.view(20)[3:5].reshape(2, 1).T.expand(5, 2), []),
    "strides": (lambda: meta(4, 6).as_strided_((6, 4), (1, 6)), []),
    "a list": (lambda: torch._foreach_add_([TEN, THREE], [meta(10), meta(3)]), [120, 36]),
    "copies": (lambda: torch._foreach_copy_([TEN, THREE], [meta(10), meta(3)]), [80, 24]),
    "an operand of a row": (lambda: X / ROW, [80 + 16 + 80]),
    "expanded, it is read once": (lambda: X / ROW.expand_as(X), [80 + 16 + 80]),
    "in products": (
        lambda: meta(3, 4, 5).bmm(meta(5, 6).expand(3, 5, 6)),
        [4 * (3 * 4 * 5 + 5 * 6 + 3 * 4 * 6)],
    ),
    "of nothing": (lambda: meta(0, 5) + meta(5).expand(0, 5), []),
    "logsumexp": (lambda: X.logsumexp(-1), [96, 32, 32, 32, 176, 160, 96, 32, 48]),
    "mean": (X.mean, [84, 8]),
    "masked_fill": (lambda: X.masked_fill(MASK, 0.0), [160, 160]),
    "masked_fill of nothing": (lambda: X[:0].masked_fill(MASK[:0], 0.0), []),
    "a border of 1": (lambda: F.pad(X, (1, 1, 1, 1)), [168, 160]),
    # Two rows of 40 bytes in all are read and put in place, by two indices of 8 bytes.
    "index_put": (lambda: X.index_put((ROWS,), X[:2]), [160, 96]),
    "index_add_": (lambda: X.index_add_(0, ROWS, X[:2]), [136]),
    "losses": (lambda: F.mse_loss(X, meta(4, 5), reduction="none"), [240]),
    "their sum": (lambda: F.mse_loss(X, meta(4, 5), reduction="sum"), [240, 84]),
    "mse_loss": (lambda: F.mse_loss(X, meta(4, 5)), [240, 84, 8]),
    # The gradient of one number, operands and their gradient, which begins as zeros.
    "mse_loss_backward": (lambda: torch.ops.aten.mse_loss_backward(meta(), X, meta(4, 5), 1), [80, 244]),
}


@pytest.mark.parametrize(("call", "moved"), MOVED.values(), ids=MOVED)
def test_what_operators_move(call, moved):
    """Bytes of each kernel; composed operators and lists have several."""
    found = traced(call)
    assert [one.bytes for one in found] == moved
    assert not any(one.flops for one in found if one.op != "bmm")


def test_products_count_two_operations_per_multiply_add():
    """(4 x 6) @ (6 x 5): 2 * 4 * 5 * 6 = 240, with bias and in place alike; three of them in a batch."""
    with torch.device("meta"):
        a, b, c = torch.empty(4, 6), torch.empty(6, 5), torch.empty(4, 5)
        for call in (lambda: a @ b, lambda: torch.addmm(c, a, b), lambda: c.addmm_(a, b)):
            (one,) = traced(call)
            assert (one.m, one.n, one.k, one.flops) == (4, 5, 6, 240)
        (many,) = traced(lambda: torch.empty(3, 4, 6).bmm(torch.empty(3, 6, 5)))
        assert (many.groups, many.flops) == (3, 720)
