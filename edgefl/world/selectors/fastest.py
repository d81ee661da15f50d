"""The clients that are predicted to be done first: download, work at their usual speed, and upload.

The greedy baseline that Oort (Lai et al. 2021, Section 2) and TiFL (Chai et al. 2020, Section 5) compare
with: rounds are short, and slow clients' data are never seen.
"""

from edgefl.core.arrays import Ints
from edgefl.world.selectors import Selector, SelectorParams, lowest, round_s
from edgefl.world.world import World


class Params(SelectorParams):
    def build(self, world: World) -> Selector:
        return _Fastest(world)


class _Fastest(Selector):
    def __init__(self, world: World) -> None:
        self._seconds = round_s(world)

    def select(self, count: int, candidates: Ints) -> Ints:
        return lowest(self._seconds[candidates], candidates, count)
