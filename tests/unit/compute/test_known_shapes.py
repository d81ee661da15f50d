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


def test_the_default_type_may_change():
    """As by a user's file that sets it: what is made then is of the new type."""
    meta = {"device": torch.device("meta")}
    try:
        for dtype in (torch.float32, torch.float64):
            torch.set_default_dtype(dtype)
            assert run(ATEN.ones.default, ([3],), meta).dtype == dtype
    finally:
        torch.set_default_dtype(torch.float32)


def test_what_writes_into_its_argument_returns_it():
    """The tensor itself, not another of its shape."""
    for _ in range(2):
        tensor = _meta(3)
        assert run(ATEN.mul_.Tensor, (tensor, 2.0), {}) is tensor


@pytest.mark.parametrize("func", [ATEN.t.default, torch.ops.aten._unsafe_view.default])  # noqa: SLF001
def test_a_view_shares_its_storage_every_time(func):
    """A new tensor in its place would count its memory twice."""
    for _ in range(2):
        tensor = _meta(3, 4)
        seen = run(func, (tensor,) if func is ATEN.t.default else (tensor, [12]), {})
        assert storage_key(seen) == storage_key(tensor)


def test_numbers_of_other_types_are_other_arguments():
    """1 and 1.0 are equal, and give integers and floats."""
    integers = torch.empty(3, dtype=torch.int64, device="meta")
    assert run(ATEN.add.Scalar, (integers, 1), {}).dtype == torch.int64
    assert run(ATEN.add.Scalar, (integers, 1.0), {}).dtype == torch.float32


def test_what_changes_its_arguments_shape_is_run_every_time():
    """The tensor itself is turned, and not only returned."""
    for _ in range(2):
        tensor = _meta(3, 4)
        assert run(ATEN.t_.default, (tensor,), {}) is tensor
        assert tensor.shape == (4, 3)


def _both(tensor):
    made = tensor.neg()
    return made, made.t()


@pytest.mark.parametrize("func", [lambda x: (x.neg()[:2],), lambda x: (x.neg()[1:],), _both])
def test_what_does_not_fill_a_storage_of_its_own_is_run_every_time(func):
    """A part of a storage, and two tensors of one, keep all of it alive."""
    for _ in range(2):
        found = run(func, (_meta(3, 3),), {})
        assert {tensor.untyped_storage().nbytes() for tensor in found} == {36}
        assert len(set(map(storage_key, found))) == 1


def test_tensors_of_a_class_of_their_own_are_never_known():
    """What an operator makes of them is theirs to say."""

    class Own(torch.Tensor):
        pass

    own = _meta(3).as_subclass(Own)
    assert [type(run(ATEN.neg.default, (one,), {})) for one in (_meta(3), own)] == [torch.Tensor, Own]


def test_no_more_is_known_than_the_limit(monkeypatch):
    """A process that traces many models keeps its memory."""
    monkeypatch.setattr(known_shapes, "_MOST", 2)
    for size in range(1, 6):
        run(ATEN.neg.default, (_meta(size),), {})
        assert 1 <= len(known_shapes._KNOWN) <= 2  # noqa: SLF001


def test_tensors_with_values_are_never_known():
    """What they give depends on them."""
    assert [int(run(ATEN.sum.default, (torch.tensor([value]),), {})) for value in (1, 2)] == [1, 2]
    assert not known_shapes._KNOWN  # noqa: SLF001


def test_a_wrong_shape_is_an_error_every_time():
    """Nothing is known of what failed."""
    for _ in range(2):
        with pytest.raises(RuntimeError):
            run(ATEN.mm.default, (_meta(3, 4), _meta(3, 4)), {})
