"""A colour and a dash for each of the runs that are shown together."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

# Each has a contrast of at least 3 to white and to the page's dark paper (WCAG 2.2, 1.4.11). To eyes with
# protanopia, deuteranopia or tritanopia too they differ more than those of Okabe and Ito, which three are.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#dd55ff", "#aa4433", "#8811ff", "#885577", "#9988bb")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def colour_of(name: str) -> str:
    """The colour of a run, "#rrggbb": the same wherever one of this name is shown."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return COLOURS[int.from_bytes(digest[:8], "big") % len(COLOURS)]


def styles(names: Sequence[str]) -> list[tuple[str, str]]:
    """The colour and the dash of each of these runs.

    The dash tells runs of one colour apart, and all of them where they are few or printed without colours.
    """
    found: list[tuple[str, str]] = []
    used: Counter[str] = Counter()
    for name in names:
        colour = colour_of(name)
        taken = Counter(dash for other, dash in found if other == colour)
        dash = min(DASHES, key=lambda dash: (taken[dash], used[dash], DASHES.index(dash)))
        used[dash] += 1
        found.append((colour, dash))
    return found
