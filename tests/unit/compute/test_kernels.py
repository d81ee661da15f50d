"""Operators' costs: every operator is in one table, or refused."""

from __future__ import annotations

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
    assert ("kernels.py" in str(caught.value)) == placed
    assert caught.value.hint


def test_an_operator_is_in_one_table_under_atens_name():
    """A misspelt entry would never match."""
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


def test_composed_operators_move_what_each_step_moves():
    """4 x 5 floats are 80 bytes, their row sums 16, their mean 4; 6 x 7 with a border of 1, 168."""
    with torch.device("meta"):
        x, rows = torch.empty(4, 5), torch.empty(2, dtype=torch.int64)
        expected = {
            "logsumexp": (lambda: x.logsumexp(-1), [96, 32, 32, 32, 176, 160, 96, 32, 48]),
            "mean": (x.mean, [84, 8]),
            "masked_fill": (lambda: x.masked_fill(torch.empty(4, 5, dtype=torch.bool), 0.0), [160, 160]),
            "nothing": (lambda: x[:0].masked_fill(torch.empty(0, 5, dtype=torch.bool), 0.0), []),
            "constant_pad_nd": (lambda: F.pad(x, (1, 1, 1, 1)), [168, 160]),
            # Two rows of 40 bytes in all are read and put in place, by two indices of 8 bytes.
            "index_put": (lambda: x.index_put((rows,), x[:2]), [160, 96]),
            "index_add_": (lambda: x.index_add_(0, rows, x[:2]), [136]),
            "losses": (lambda: F.mse_loss(x, torch.empty(4, 5), reduction="none"), [240]),
            "sum": (lambda: F.mse_loss(x, torch.empty(4, 5), reduction="sum"), [240, 84]),
            "mse_loss": (lambda: F.mse_loss(x, torch.empty(4, 5)), [240, 84, 8]),
            # The gradient of one number, operands and their gradient, which begins as zeros.
            "mse_loss_backward": (
                lambda: torch.ops.aten.mse_loss_backward(torch.empty(()), x, torch.empty(4, 5), 1),
                [80, 244],
            ),
        }
        for name, (call, moved) in expected.items():
            assert [one.bytes for one in traced(call)] == moved, name


def test_an_expanded_operand_is_read_once():
    """4 x 5 floats by one number a row: 80 + 16 read and 80 written, expanded or not; in products too."""
    with torch.device("meta"):
        x, row, matrix = torch.empty(4, 5), torch.empty(4, 1), torch.empty(5, 6)
        for call in (lambda: x / row, lambda: x / row.expand_as(x)):
            assert [one.bytes for one in traced(call)] == [80 + 16 + 80]
        (one,) = traced(lambda: torch.empty(3, 4, 5).bmm(matrix.expand(3, 5, 6)))
        assert (one.flops, one.bytes) == (2 * 3 * 4 * 5 * 6, 4 * (3 * 4 * 5 + 5 * 6 + 3 * 4 * 6))
        assert traced(lambda: torch.empty(0, 5) + torch.empty(5).expand(0, 5)) == []


def test_bytes_are_operands_and_results_once():
    """10 floats: an addition moves 120 bytes, in place too; filling 40; copying 80; zeros of a shape 40."""
    with torch.device("meta"):
        x, y = torch.empty(10), torch.empty(10)
        expected = {
            "add": (lambda: x + y, 120),
            "add_": (lambda: x.add_(y), 120),
            "relu": (x.relu, 80),
            "zero_": (x.zero_, 40),
            "copy_": (lambda: x.copy_(y), 80),
            "new_zeros": (lambda: x.new_zeros(10), 40),
            "zeros_like": (lambda: torch.zeros_like(x), 40),
            # Swin's shift of its windows.
            "roll": (lambda: x.roll(3), 80),
        }
        for name, (call, moved) in expected.items():
            assert [(one.op, one.bytes, one.flops) for one in traced(call)] == [(name, moved, 0)]


def test_views_are_free_and_a_list_operator_is_one_kernel_per_item():
    """Adding over two pairs is two kernels of their own bytes; a copy does not read what it writes."""
    with torch.device("meta"):
        x = torch.empty(4, 6)
        assert traced(lambda: x.view(24)[3:5].reshape(2, 1).T.expand(5, 2)) == []
        assert traced(lambda: x.as_strided_((6, 4), (1, 6))) == []
        values, others = [torch.empty(10), torch.empty(3)], [torch.empty(10), torch.empty(3)]
        assert [one.bytes for one in traced(torch._foreach_add_, values, others)] == [120, 36]
        assert [one.bytes for one in traced(torch._foreach_copy_, values, others)] == [80, 24]


def test_products_count_two_operations_per_multiply_add():
    """(4 x 6) @ (6 x 5): 2 * 4 * 5 * 6 = 240, with bias and in place alike; three of them in a batch."""
    with torch.device("meta"):
        a, b, c = torch.empty(4, 6), torch.empty(6, 5), torch.empty(4, 5)
        for call in (lambda: a @ b, lambda: torch.addmm(c, a, b), lambda: c.addmm_(a, b)):
            (one,) = traced(call)
            assert (one.m, one.n, one.k, one.flops) == (4, 5, 6, 240)
        (many,) = traced(lambda: torch.empty(3, 4, 6).bmm(torch.empty(3, 6, 5)))
        assert (many.groups, many.flops) == (3, 720)
