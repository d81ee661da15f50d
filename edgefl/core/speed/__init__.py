"""Models of how a client's speed changes in time, one file each."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edgefl.core import seeds
from edgefl.core.draws import Floats
from edgefl.core.named import Named
from edgefl.core.poisson import Ints

if TYPE_CHECKING:
    from edgefl.core.plan import Clients


class Pace(NamedTuple):
    """How fast clients are.

    Attributes:
        factor: of each client's speed, (n,) in (0, 1].
        until_s: until when it holds, in seconds, (n,).
        power: of the power above idle that its work draws, (n,) in [0, 1], or one number for all.
    """

    factor: Floats
    until_s: Floats
    power: Floats | float = 1.0


class Curve(ABC):
    """The speeds of one run's clients: factors that are constant between certain times.

    A factor may depend on what the client did before, by a state: an array with one row for each client, (n,)
    or (n, k), that only the curve reads. At time 0 all clients have been idle for long.
    """

    @abstractmethod
    def state(self, clients: Ints, t_s: Floats) -> Floats:
        """The states at times (n,) of clients (n,) that have been idle since their last ``commit``."""

    @abstractmethod
    def at(self, clients: Ints, t_s: Floats, state: Floats) -> Pace:
        """The factors from ``t_s`` on, and how long they hold if the clients work from then on.

        ``until_s`` is later than ``t_s``; the factor may be the same afterwards.
        """

    @abstractmethod
    def after(self, clients: Ints, state: Floats, from_s: Floats, to_s: Floats, *, working: bool) -> Floats:
        """The states at ``to_s`` of clients with a state at ``from_s`` that work, or rest, from then on."""

    @abstractmethod
    def commit(self, clients: Ints, t_s: Floats, state: Floats) -> None:
        """Keeps the states in which different clients ended their jobs, at times (n,)."""


class StatelessCurve(Curve):
    """A curve that does not depend on what a client does: it has ``at`` alone."""

    def state(self, clients: Ints, t_s: Floats) -> Floats:  # noqa: ARG002
        """See ``Curve.state``."""
        return np.zeros(len(clients))

    def after(self, clients: Ints, state: Floats, from_s: Floats, to_s: Floats, *, working: bool) -> Floats:  # noqa: ARG002
        """See ``Curve.after``."""
        return state

    def commit(self, clients: Ints, t_s: Floats, state: Floats) -> None:
        """See ``Curve.commit``."""


class Speed(Named):
    """What every model has."""

    @abstractmethod
    def curve(self, clients: Clients, root: int) -> Curve:
        """The speeds of a run's clients, from the run's seed."""

    def assumptions(self, clients: Clients) -> tuple[str, ...]:  # noqa: ARG002
        """What the model assumes of the clients' devices, a line each, for tables."""
        return ()


class Product(Curve):
    """Several curves at once: the product of their factors; the state is theirs side by side, (n, curves)."""

    def __init__(self, curves: Sequence[Curve]) -> None:
        """The curves, each with one number a client as its state."""
        self._curves = tuple(curves)

    def state(self, clients: Ints, t_s: Floats) -> Floats:
        """See ``Curve.state``."""
        return np.stack([curve.state(clients, t_s) for curve in self._curves], axis=1)

    def at(self, clients: Ints, t_s: Floats, state: Floats) -> Pace:
        """See ``Curve.at``."""
        paces = [curve.at(clients, t_s, own) for curve, own in zip(self._curves, state.T, strict=True)]
        factors, untils, powers = zip(*paces, strict=True)
        return Pace(np.prod(factors, axis=0), np.min(untils, axis=0), math.prod(powers))

    def after(self, clients: Ints, state: Floats, from_s: Floats, to_s: Floats, *, working: bool) -> Floats:
        """See ``Curve.after``."""
        own = zip(self._curves, state.T, strict=True)
        return np.stack(
            [curve.after(clients, one, from_s, to_s, working=working) for curve, one in own], axis=1
        )

    def commit(self, clients: Ints, t_s: Floats, state: Floats) -> None:
        """See ``Curve.commit``."""
        for curve, own in zip(self._curves, state.T, strict=True):
            curve.commit(clients, t_s, own)


def curve_of(speeds: Sequence[Speed], clients: Clients, root: int) -> Product:
    """The product of a fleet's speeds, each with draws of its own."""
    curves = [
        speed.curve(clients, seeds.derive(root, "speed", nth=place)) for place, speed in enumerate(speeds)
    ]
    return Product(curves)
