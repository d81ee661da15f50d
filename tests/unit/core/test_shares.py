"""Shares as percentages."""

from __future__ import annotations

import pytest

from edgefl.core.units import show_share


@pytest.mark.parametrize(
    ("share", "digits", "shown"),
    [
        (0.0, 0, "0%"),
        (0.0, 1, "0.0%"),
        (2.5e-5, 1, "<0.01%"),
        (2.5e-5, 3, "<0.01%"),
        (-2.5e-5, 1, ">-0.01%"),
        (0.0001, 0, "0.01%"),
        (0.00095, 1, "0.1%"),
        (0.0003, 0, "0.03%"),
        (0.004, 0, "0.4%"),
        (0.8667, 1, "86.7%"),
        (1.0, 0, "100%"),
    ],
)
def test_a_share_does_not_round_to_nothing(share, digits, shown):
    """What is not nothing is not shown as nothing, and no digits below a hundredth of a percent are shown."""
    assert show_share(share, digits) == shown
