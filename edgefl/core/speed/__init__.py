"""Models of how a client's speed changes in time, one file each."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from edgefl.core.clients import Clients
from edgefl.core.params import Component


class Pace(NamedTuple):
    """How fast a client is, and until when.

    Attributes:
        factor: of its speed, in (0, 1].
        power: of the power above idle that its work draws, in [0, 1].
    """

    factor: float
    until_s: float
    power: float = 1.0


class SpeedCurve(ABC):
    """The speeds of one run's clients: factors that are constant between certain times.

    A factor may depend on a client's state, a number that only the curve reads; 0 at first, and after rest.
    """

    @abstractmethod
    def at(self, client: int, t_s: float, state: float) -> Pace:
        """The factor from ``t_s`` on, and until when, later than that, it holds if the client works."""

    def after(self, client: int, state: float, from_s: float, to_s: float, *, working: bool) -> float:  # noqa: ARG002
        """The state at ``to_s`` of a client that works, or rests, from ``from_s`` on; by default the same."""
        return state


class Speed(Component):
    @abstractmethod
    def curve(self, clients: Clients, root: int) -> SpeedCurve:
        """The speeds of a run's clients, from the run's seed."""

    def assumptions(self, clients: Clients) -> tuple[str, ...]:  # noqa: ARG002
        """What the model assumes of the clients' devices, a line each, for tables."""
        return ()
