"""Server policies, one file each."""

import math
from abc import abstractmethod
from typing import ClassVar

from edgefl.core.params import Component
from edgefl.core.plan import Plan
from edgefl.world.clock import Process
from edgefl.world.world import World


class Policy(Component):
    """The parameters of a policy, and what it does.

    Attributes:
        BLIND: whether what it does depends on no job's time or energy; see ``edgefl.world.blind``.
        STREAMS: whether it keeps clients at work in place of asking some in each round.
    """

    BLIND: ClassVar[bool] = False
    STREAMS: ClassVar[bool] = False

    @abstractmethod
    def serve(self, world: World) -> Process:
        """The server's loop over rounds, a SimPy process."""

    def check(self, plan: Plan) -> None:
        """Refuses, before the run, a plan that it cannot serve; raises a ``UserError``."""

    def merges_stale(self) -> bool:
        """Whether it merges uploads that began at an older version."""
        return False

    def asks(self, participants: int | None) -> int | None:
        """How many clients it has at work at a time, where a round has so many; None is all of them."""
        return participants

    def merges(self, asked: float) -> float:
        """About how many uploads a merge takes, with so many clients at work."""
        return asked

    def lasts_s(self) -> tuple[float, float]:
        """The shortest and the longest that a round takes, whatever its clients do."""
        return 0.0, math.inf
