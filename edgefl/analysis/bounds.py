"""The bounds of a run's times and energies, where numbers of its devices or links are intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgefl.core.corners import Interval
from edgefl.core.plan import Prices
from edgefl.core.repricing import Jobs, Taken, at_corners, is_unbounded


class Bounds:
    """The bounds of a run's figures; see ``edgefl.core.repricing`` for what is bounded.

    Times are known at the corners where a run is blind to them (``edgefl.world.blind``). Elsewhere they stand
    as they are; where a device's launch overhead is unknown, as lower bounds.

    Attributes:
        jobs: the run's jobs.
    """

    def __init__(self, jobs: Jobs, prices: Sequence[Prices], *, blind: bool, shared: bool) -> None:
        """Takes a run's jobs and its prices, some of which are intervals.

        Args:
            jobs: what was done.
            prices: of each exchange.
            blind: whether the run is blind to time.
            shared: whether links are shared or change.
        """
        self.jobs = jobs
        self._cheap, self._costly = at_corners(jobs, prices, blind=blind, shared=shared)
        self._unbounded = any(map(is_unbounded, prices))

    def joules(self, t_s: float, version: int | None = None) -> Interval:
        """The bounds of the energy of all clients.

        Args:
            t_s: until this virtual time.
            version: the server's version then; None for the end of the run.
        """
        return Interval.of(self._cheap.joules(t_s, version), self._costly.joules(t_s, version))

    def by_job(self, t_s: float) -> tuple[Iterator[tuple[slice, Taken]], Iterator[tuple[slice, Taken]]]:
        """What each job took, some of ``jobs`` at a time, at the cheap and at the costly corner.

        Args:
            t_s: the run's end.
        """
        return self._cheap.by_job(t_s), self._costly.by_job(t_s)

    def seconds(self, t_s: float, version: int | None = None) -> Interval | None:
        """The bounds of a virtual time, of which the arguments are those of ``joules``; None for none."""
        low, high = (end.seconds(version) for end in (self._cheap, self._costly))
        if low is None or high is None:
            return Interval(t_s, None) if self._unbounded else None
        return Interval.of(low, high)
