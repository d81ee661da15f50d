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
    """The colour of a run, "#rrggbb": the same wherever one of this name is shown without others."""
    return COLOURS[int.from_bytes(_digest(name)[:8], "big") % len(COLOURS)]


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()


def styles(names: Sequence[str]) -> list[tuple[str, str]]:
    """The colour and the dash of each of these runs, whatever their order.

    Each has its ``colour_of``, unless another has that too: then one of them has it, and the others have the
    next ones that are free, so that as many runs as there are colours differ. More have a colour of few, and
    the dash tells them apart. Up to as many runs as there are dashes have a dash each.
    """
    places = sorted(range(len(names)), key=lambda place: _digest(names[place]))
    first = {COLOURS.index(colour_of(names[place])): place for place in reversed(places)}
    colour = {place: own for own, place in first.items()}
    used = Counter(colour.values())
    for place in places:
        if place not in colour:
            own, count = COLOURS.index(colour_of(names[place])), len(COLOURS)
            colour[place] = min(range(count), key=lambda one, own=own: (used[one], (one - own) % count))  # type: ignore[misc]
            used[colour[place]] += 1
    dashes = _dashes([colour[place] for place in places])
    dash = dict(zip(places, dashes, strict=True))
    return [(COLOURS[colour[place]], dash[place]) for place in range(len(names))]


def _dashes(colours: Sequence[int]) -> list[str]:
    """A dash for each; those that few have, above all among those of the same colour."""
    found: list[str] = []
    for colour in colours:
        taken = Counter(dash for other, dash in zip(colours, found, strict=False) if other == colour)
        used = Counter(found)
        found.append(min(DASHES, key=lambda one: (taken[one], used[one], DASHES.index(one))))
    return found
