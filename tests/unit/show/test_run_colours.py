"""The colours and dashes of runs that are shown together."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from edgefl.show.colours import COLOURS, DASHES, styles

# Machado, Oliveira, Fernandes 2009, severity 1, in linear RGB; the first is the eye of most.
EYES = {
    "most": np.eye(3),
    "protanopia": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]],
    "deuteranopia": [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
    "tritanopia": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}  # fmt: skip
# CIEDE2000 between any two of the first so many runs: the least to the eyes of most, and to those of others.
# Beside each other, 2 can be told apart; Okabe and Ito's eight are 21.7 and 10.9 apart, but yellow on white.
APART = {2: (49, 49), 3: (38, 12), 4: (24, 12), 5: (24, 12), 6: (24, 12), 7: (21, 9.5), 8: (21, 9.5)}
PAPERS = {"light": "#ffffff", "dark": "#14171c"}
CONTRAST = 3


def linear(colour):
    """Linear RGB of "#rrggbb"."""
    rgb = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIE L*a*b* of linear RGB, at D65."""
    rows = [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.072175],
        [0.0193339, 0.119192, 0.9503041],
    ]
    xyz = np.array(rows) @ np.clip(rgb, 0, 1) / [0.95047, 1, 1.08883]
    x, y, z = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def ciede2000(one, other):
    """The distance of two L*a*b* colours (Sharma, Wu, Dalal 2005)."""
    chromas = [np.hypot(a, b) for _, a, b in (one, other)]
    g = 1.5 - np.sqrt(np.mean(chromas) ** 7 / (np.mean(chromas) ** 7 + 25.0**7)) / 2
    (l1, c1, h1), (l2, c2, h2) = (
        (light, np.hypot(g * a, b), np.degrees(np.arctan2(b, g * a)) % 360) for light, a, b in (one, other)
    )
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    turn = (h2 - h1 + 180) % 360 - 180
    hue = (h1 + turn / 2) % 360
    cosines = zip((-0.17, 0.24, 0.32, -0.2), (1, 2, 3, 4), (-30, 0, 6, -63), strict=True)
    t = 1 + sum(by * np.cos(np.radians(times * hue + plus)) for by, times, plus in cosines)
    parts = (
        (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2)),
        (c2 - c1) / (1 + 0.045 * chroma),
        2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn) / 2) / (1 + 0.015 * chroma * t),
    )
    twist = -2 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7))
    twist *= np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2))))
    return np.sqrt(sum(part**2 for part in parts) + twist * parts[1] * parts[2])


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.5, 0), (58, 24, 15), 19.4535),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
    ],
)
def test_distances_are_those_of_the_paper(one, other, apart):
    """Of Sharma's table 1."""
    assert ciede2000(one, other) == pytest.approx(apart, abs=1e-4)


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("count", APART)
def test_two_to_eight_runs_are_far_apart(count, eye):
    """Whatever they are called; the papers that they are on do not change it, since lines are opaque."""
    colours = [colour for colour, _ in styles([f"run {number}" for number in range(count)])]
    seen = [lab(np.array(EYES[eye]) @ linear(colour)) for colour in colours]
    assert min(ciede2000(*two) for two in combinations(seen, 2)) > APART[count][eye != "most"]


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("paper", PAPERS)
def test_colours_stand_out_from_both_papers(paper, eye):
    """A line has a contrast of 3 to the page, light and dark, as most see it; others see it apart from it."""
    weights = [0.2126, 0.7152, 0.0722]
    for colour in COLOURS:
        dark, bright = sorted(float(linear(one) @ weights) for one in (colour, PAPERS[paper]))
        assert (bright + 0.05) / (dark + 0.05) >= CONTRAST
        seen = [lab(np.array(EYES[eye]) @ linear(one)) for one in (colour, PAPERS[paper])]
        assert ciede2000(*seen) > 2 * APART[8][1]


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
