"""The colours and dashes of runs that are shown together."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from edgefl.report.colours import COLOURS, DASHES, colour_of, styles

# Machado, Oliveira, Fernandes 2009, severity 1, in linear RGB; the first is the eye of most.
EYES = {
    "most": np.eye(3),
    "protanopia": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]],
    "deuteranopia": [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
    "tritanopia": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}  # fmt: skip
OKABE_ITO = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442")
PAPERS = ("#ffffff", "#14171c")


def _linear(colour):
    """Linear RGB of "#rrggbb"."""
    rgb = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def _oklab(linear):
    """Björn Ottosson's OKLab, in which distances are about those that one sees."""
    cones = [[0.41222, 0.53633, 0.05145], [0.21190, 0.68070, 0.10740], [0.08830, 0.28172, 0.62998]]
    lab = [[0.21045, 0.79362, -0.00407], [1.97800, -2.42859, 0.45059], [0.02590, 0.78277, -0.80868]]
    return np.array(lab) @ np.cbrt(np.array(cones) @ np.clip(linear, 0, 1))


def _closest(colours, eye):
    """The least distance between two colours to an eye."""
    seen = [_oklab(np.array(EYES[eye]) @ _linear(one)) for one in colours]
    return min(np.linalg.norm(one - other) for one, other in combinations(seen, 2))


def test_colours_differ_to_every_eye():
    """Without one kind of cones, two colours are further apart than the closest two of Okabe and Ito."""
    known = min(_closest(OKABE_ITO, eye) for eye in EYES)
    for eye in EYES:
        assert _closest(COLOURS, eye) > known


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("colour", COLOURS)
def test_colours_stand_out_from_both_papers(colour, paper):
    """A line has a contrast of 3 to the page, light and dark."""
    weights = [0.2126, 0.7152, 0.0722]
    dark, bright = sorted(float(_linear(one) @ weights) for one in (colour, paper))
    assert (bright + 0.05) / (dark + 0.05) >= 3


def test_a_run_has_its_colour_unless_another_has_it():
    """The colour follows from the name; of runs with the same one, one keeps it."""
    names = [f"run {number}" for number in range(len(COLOURS))]
    found = [colour for colour, _ in styles(names)]
    kept = [name for name, colour in zip(names, found, strict=True) if colour == colour_of(name)]
    assert {colour_of(name) for name in kept} == {colour_of(name) for name in names}
    assert len(kept) < len(names)
    assert [styles([name])[0][0] for name in names] == [colour_of(name) for name in names]


@pytest.mark.parametrize("count", range(1, 25))
def test_colours_are_shared_by_as_few_as_can_be(count):
    """Eight runs have eight colours, sixteen share each by two."""
    found = Counter(colour for colour, _ in styles([f"run {number}" for number in range(count)]))
    assert len(found) == min(count, len(COLOURS))
    assert max(found.values()) == -(-count // len(COLOURS))


def test_the_order_of_runs_does_not_matter():
    """The same runs have the same colours and dashes, however they are given."""
    names = [f"run {number}" for number in range(12)]
    found = dict(zip(names, styles(names), strict=True))
    for shift in range(len(names)):
        turned = [*names[shift:], *names[:shift]][::-1]
        assert dict(zip(turned, styles(turned), strict=True)) == found


def test_few_runs_have_a_dash_each():
    """Six runs can be told apart without any colour."""
    assert len({dash for _, dash in styles([f"run {number}" for number in range(len(DASHES))])}) == len(
        DASHES
    )


def test_runs_of_one_colour_differ_in_their_dash():
    """As many are told apart as there are colours and dashes together."""
    names = [f"run {number}" for number in range(len(COLOURS) * len(DASHES))]
    assert len(set(styles(names))) == len(names)


def test_any_name_has_a_colour():
    """A name that is no UTF-8, an empty and a long one."""
    for name in ("", "\udcff", "x" * 10_000, "\u2028"):
        assert colour_of(name) in COLOURS
