"""The bounds of a run's times and energies, where numbers of its devices or links are intervals."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgefl.analysis import timeline
from edgefl.core.corners import Interval
from edgefl.core.repricing import COLUMNS, Jobs, Taken, at_corners, is_unbounded
from edgefl.store import Reader, read_prices


class Bounds:
    """The bounds of a run's figures; see ``edgefl.core.repricing`` for what is bounded.

    Times are known at the corners where a run is blind to them (``edgefl.world.blind``). Elsewhere they stand
    as they are; where a device's launch overhead is unknown, as lower bounds.

    Attributes:
        jobs: the run's jobs.
    """

    def __init__(self, reader: Reader, jobs: timeline.Jobs | None = None) -> None:
        """Takes what ``bounds_of`` does, which says whether there are any bounds."""
        prices, (blind, shared) = read_prices(reader), depends(reader)
        own = self.jobs = read_jobs(reader, jobs)
        self._cheap, self._costly = at_corners(own, prices, blind=blind, shared=shared)
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


def bounds_of(reader: Reader, jobs: timeline.Jobs | None = None) -> Bounds | None:
    """The bounds of a run's figures.

    Args:
        reader: the run.
        jobs: its jobs, if they are read already.

    Returns:
        None where no number of its devices and links is an interval.
    """
    (found,) = reader.query("SELECT EXISTS (SELECT 1 FROM corner_prices) AS found")
    return Bounds(reader, jobs) if found["found"] else None


def depends(reader: Reader) -> tuple[bool, bool]:
    """Whether a run is blind to time, and whether its links are shared or change; see ``world.blind``."""
    return bool(reader.meta.get("blind")), bool(reader.meta.get("shared"))


def read_jobs(reader: Reader, jobs: timeline.Jobs | None = None) -> Jobs:
    """A run's jobs, to be priced anew; the arguments are those of ``bounds_of``."""
    found = timeline.jobs_of(reader) if jobs is None else jobs
    own = {
        "kind": timeline.fleet_of(reader).kind[found.client],
        "exchange": found.place,
        "into_version": np.maximum(found.into, 0),
    }
    return Jobs.of({name: own[name] if name in own else getattr(found, name) for name in COLUMNS})
