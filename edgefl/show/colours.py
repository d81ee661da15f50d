"""A colour and a dash for each of the runs that are shown together."""

from __future__ import annotations

from collections.abc import Sequence

# The first three are of Okabe and Ito (https://jfly.uni-koeln.de/color/); others of theirs are too bright or
# too dark for a paper: each of these has a contrast of at least 3 to the page's light and dark one (WCAG 2.2,
# 1.4.11). The rest were searched for on a grid, so that the first two, three ... eight are far apart to all
# eyes (CIEDE2000): eight by 21 to most, by 9.6, 10.5 and 11.4 with prot-, deuter- and tritanopia.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#9977ff", "#776644", "#bb2277", "#cc0022", "#aa8899")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_BOTH = 24  # after so many, each colour has met half of the dashes


def styles(names: Sequence[str]) -> list[tuple[str, str]]:
    """The colour and the dash of each of these runs, whatever their order; the first of each by their names.

    Up to eight runs differ in their colour, up to six in their dash, up to 48 in one or the other.
    """
    found = [("", "")] * len(names)
    for rank, place in enumerate(sorted(range(len(names)), key=names.__getitem__)):
        found[place] = COLOURS[rank % len(COLOURS)], DASHES[(rank + rank // _BOTH) % len(DASHES)]
    return found
