"""Records that several runs share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar


@dataclass(frozen=True)
class OfRuns:
    """A record of one run, or of several that share it.

    Attributes:
        runs: their places.
    """

    runs: Sequence[int]


Shared = TypeVar("Shared", bound=OfRuns)


def shared(found: Iterable[Shared]) -> list[Shared]:
    """The records of all runs, those that differ in nothing but ``runs`` as one."""
    once: list[Shared] = []
    for one in found:
        same = (place for place, other in enumerate(once) if replace(other, runs=one.runs) == one)
        place = next(same, None)
        if place is None:
            once.append(one)
        else:
            once[place] = replace(one, runs=[*once[place].runs, *one.runs])
    return once
