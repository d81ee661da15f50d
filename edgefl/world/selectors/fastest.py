"""The clients that are predicted to be done first: download, work at their usual speed, and upload.

The greedy baseline that Oort (Lai et al. 2021, Section 2) and TiFL (Chai et al. 2020, Section 5) compare
with: rounds are short, and slow clients' data are never seen.
"""

from __future__ import annotations

from edgefl.core.clients import Ints
from edgefl.core.params import Component
from edgefl.world.selectors import Selector, lowest, round_s
from edgefl.world.world import World


class Params(Component):
    """Selection by speed has no parameters."""


def build(params: Params, world: World) -> Selector:  # noqa: ARG001 - every selector is built the same way
    """The selector of a run."""
    return _Fastest(world)


class _Fastest:
    def __init__(self, world: World) -> None:
        self._seconds = round_s(world)

    def select(self, count: int, candidates: Ints) -> Ints:
        """See ``Selector.select``."""
        return lowest(self._seconds[candidates], candidates, count)
