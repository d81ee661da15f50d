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
    entries = [*FREE, *MOVES, *PRODUCTS, *(GATHERS | SCATTERS | ADDS)]
    assert len(entries) == len(set(entries))
    assert not COMPOSED.keys() & (GATHERS | SCATTERS | ADDS)
    assert not RANDOM & (FREE | MOVES)
    assert UNREAD <= MOVES
    aten = torch.ops.aten
    entries += COMPOSED
    assert not [name for name in entries if not (hasattr(aten, name) or hasattr(aten, f"_foreach_{name}"))]


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
