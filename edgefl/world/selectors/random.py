"""Uniform selection without replacement, in the order of clients (McMahan et al. 2017, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edgefl.core import seeds
from edgefl.core.params import Strict
from edgefl.world.world import World


class Params(Strict):
    """Random selection has no parameters."""


def build(params: Params, world: World) -> Callable[[int, Sequence[int]], list[int]]:  # noqa: ARG001 - every selector is built the same way
    """Gives (count, candidates) -> chosen clients, for a count below the number of candidates."""

    def select(count: int, candidates: Sequence[int]) -> list[int]:
        rng = seeds.generator(world.plan.scenario.seed, "cohort", nth=world.round)
        places = sorted(rng.choice(len(candidates), count, replace=False).tolist())
        return [candidates[place] for place in places]

    return select
