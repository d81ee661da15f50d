"""Bundles: what several jobs came to, taken apart."""

from __future__ import annotations

import math

import pytest
import torch

from edgefl.compute.job import Bundle


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)], ids=["scalar", "vector", "matrix"])
@pytest.mark.parametrize("kept", [False, True], ids=["sent", "kept"])
def test_who_has_numbers_that_are_not_finite_is_told(shape, kept):
    """Whatever the shape of the leaf, and whether it is sent or kept."""
    leaf = torch.ones(3, *shape)
    leaf[1] = math.nan
    good, bad = {"a": {"weight": torch.ones(3, 4)}}, {"a": {"scale": leaf}}
    bundle = Bundle(("x", "y", "z"), good if kept else bad, bad if kept else good, {"loss": [0.0] * 3})
    assert [outcome.finite for outcome in bundle.outcomes()] == [True, False, True]
