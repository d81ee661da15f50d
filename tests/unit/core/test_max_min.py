"""Max-min fair shares that were worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from max_min import Uses, max_min

ALONE = [(0, 0, 1), (1, 0, 1)]
HEAVIER = [(0, 0, 1), (1, 0, 2)]
FOUR = [(flow, 0, 1) for flow in range(4)]
CELL = [(0, 0, 1), (1, 0, 1), (2, 0, 1), (1, 1, 1), (2, 1, 1)]
TWO = [(0, 0, 1), (1, 0, 2), (0, 1, 2), (2, 1, 1)]
"""Flow 0 uses both resources, and takes two units of the second for one of its rate."""


def uses(triples):
    """(flow, resource, weight) by row."""
    flow, resource, weight = zip(*triples, strict=True) if triples else ((), (), ())
    return Uses(np.array(flow, int), np.array(resource, int), np.array(weight, float))


@pytest.mark.parametrize(
    ("capacities", "used", "penalties", "shared", "expected"),
    [
        pytest.param([3], ALONE, [1, 2], True, [2, 1], id="shared, penalty"),
        pytest.param([3], HEAVIER, [1, 1], True, [1, 1], id="shared, weight"),
        pytest.param([20], HEAVIER, [1, 2], True, [10, 5], id="shared, both"),
        pytest.param([20, 60], TWO, [1, 2, 1], True, [10, 5, 40], id="two shared"),
        pytest.param([10], ALONE, [1, 2], False, [10, 5], id="fat pipe, penalty"),
        pytest.param([10], HEAVIER, [1, 1], False, [5, 5], id="fat pipe, weight"),
        pytest.param([10], HEAVIER, [1, 2], False, [10, 5], id="fat pipe, both"),
        pytest.param([10, 60], TWO, [1, 2, 1], False, [10, 5, 60], id="two fat pipes"),
    ],
)
def test_shares_of_simgrids_cases(capacities, used, penalties, shared, expected):
    """The eight systems that SimGrid's authors solved by hand (src/kernel/lmm/maxmin_test.cpp there).

    One or two resources, shared or fat pipes, with penalties, weights or both.
    """
    rates = max_min(capacities, uses(used), [math.inf] * len(expected), penalties, shared)
    assert rates.tolist() == expected


@pytest.mark.parametrize(
    ("capacities", "used", "caps", "expected"),
    [
        pytest.param([12], [(0, 0, 1)], [math.inf], [12], id="one link, one flow"),
        pytest.param([12], [(0, 0, 1)], [5], [5], id="own cap"),
        pytest.param([12], FOUR, [math.inf] * 4, [3] * 4, id="equal flows"),
        pytest.param([12], FOUR, [1.5, 9, 9, 9], [1.5, 3.5, 3.5, 3.5], id="one capped"),
        pytest.param([12, 4], CELL, [9] * 3, [8, 2, 2], id="cell"),
        pytest.param([0, 4], [(0, 0, 1), (0, 1, 1), (1, 1, 1)], [9, 9], [0, 4], id="no capacity"),
        pytest.param([4], [(0, 0, 1), (1, 0, 1)], [0, 9], [0, 4], id="a flow that may take nothing"),
        pytest.param([math.inf], [(0, 0, 1), (1, 0, 1)], [7, math.inf], [7, math.inf], id="no limit"),
        pytest.param([4], [], [7, math.inf], [7, math.inf], id="nothing used"),
        pytest.param([4], [], [], [], id="no flows"),
    ],
)
def test_closed_forms(capacities, used, caps, expected):
    """One link, equal flows, one capped flow, a cell; and where there is nothing to divide."""
    assert max_min(capacities, uses(used), caps).tolist() == expected


def test_a_fat_pipe_is_no_cap_of_each_flow():
    """The flow that fills it stops the others, unless its own cap stops it before."""
    full, capped = [math.inf, math.inf], [math.inf, 4]
    assert max_min([10], uses(HEAVIER), full, shared=False).tolist() == [5, 5]
    assert max_min([10], uses(HEAVIER), capped, shared=False).tolist() == [10, 4]


@pytest.mark.parametrize(
    ("capacities", "weight", "caps", "penalties"),
    [([-1], 1, [1], 1), ([math.nan], 1, [1], 1), ([1], 0, [1], 1), ([1], 1, [-1], 1), ([1], 1, [1], 0)],
)
def test_what_is_no_system_is_refused(capacities, weight, caps, penalties):
    """Negative capacities and caps, and weights and penalties that are not above 0."""
    with pytest.raises(ValueError, match=r"must be (0 or more|above 0)"):
        max_min(capacities, uses([(0, 0, weight)]), caps, penalties)
