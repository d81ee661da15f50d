"""Operators on meta tensors that are known from an earlier call: the same results, and none for views."""

from __future__ import annotations

import pytest
import torch

from edgefl.compute import known_shapes
from edgefl.compute.kernels import storage_key
from edgefl.compute.known_shapes import run

ATEN = torch.ops.aten


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch):
    monkeypatch.setattr(known_shapes, "_KNOWN", {})


def _meta(*shape):
    return torch.empty(*shape, device="meta")


@pytest.mark.parametrize(
    ("func", "make"),
    [
        (ATEN.mm.default, lambda: (_meta(3, 4), _meta(4, 5))),
        (ATEN.add.Tensor, lambda: (_meta(3, 4).t(), _meta(4, 3).half())),
        (ATEN.native_group_norm.default, lambda: (_meta(2, 4, 3, 3), None, None, 2, 4, 9, 2, 1e-5)),
        (ATEN.argmax.default, lambda: (_meta(3, 4), 1)),
    ],
)
def test_a_known_operator_gives_what_it_gave(func, make, monkeypatch):
    """Shapes, strides and types are those of the operator, each in a storage of its own."""
    real = func(*make())
    run(func, make(), {})
    monkeypatch.setattr(known_shapes, "_made", lambda *_: pytest.fail("it was run again"))
    again = run(func, make(), {})
    both = zip(*(one if isinstance(one, tuple) else (one,) for one in (real, again)), strict=True)
    for expected, found in both:
        assert (found.shape, found.stride(), found.dtype) == (
            expected.shape,
            expected.stride(),
            expected.dtype,
        )
        assert found.untyped_storage().nbytes() == expected.untyped_storage().nbytes()


@pytest.mark.parametrize("func", [ATEN.t.default, torch.ops.aten._unsafe_view.default])  # noqa: SLF001
def test_a_view_shares_its_storage_every_time(func):
    """A new tensor in its place would count its memory twice."""
    for _ in range(2):
        tensor = _meta(3, 4)
        seen = run(func, (tensor,) if func is ATEN.t.default else (tensor, [12]), {})
        assert storage_key(seen) == storage_key(tensor)
