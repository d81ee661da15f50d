"""The colours and dashes of runs that are shown together."""

from __future__ import annotations

import pytest

from edgefl.show.colours import COLOURS, DASHES, styles


def test_the_order_of_runs_does_not_matter():
    """The same runs have the same colours and dashes, however they are given."""
    names = [f"run {number}" for number in range(12)]
    found = dict(zip(names, styles(names), strict=True))
    for shift in range(len(names)):
        turned = [*names[shift:], *names[:shift]][::-1]
        assert dict(zip(turned, styles(turned), strict=True)) == found


@pytest.mark.parametrize("count", range(1, 49))
def test_colour_and_dash_tell_48_runs_apart(count):
    """Eight runs differ in colour, six in dash; names that are equal, empty or no UTF-8 have theirs, too."""
    found = styles(["", "", "\udcff", "x" * 10_000, *map(str, range(44))][:count])
    assert len(set(found)) == count == len(found)
    assert len({colour for colour, _ in found}) == min(count, len(COLOURS))
    assert len({dash for _, dash in found}) == min(count, len(DASHES))
