"""A client whose radio's tails alone draw power, solved by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from plans import plan, prices

from edgefl.core.event import Kind
from edgefl.world.world import World

TAIL_W = 4
# A job has 1 s of download, 8 s of work and 1 s of upload.
PLAN = plan([prices("train", 1, down_s=1, compute_s=8, up_s=1, tail_w=TAIL_W, tail_s=10)])


@dataclass(frozen=True)
class Case:
    """What its jobs, and the run's end, make of the tails, of 10 s each.

    Attributes:
        jobs: when each is dispatched, when it is given up, None for not before it arrives, and how it ends.
        end_s: when the run ends.
        of_jobs: the joules of each job's row: between its transfers, and before them.
        settled: rows of ``TAIL``.
        drawn: when the tails began and ended.
    """

    jobs: list
    end_s: float
    of_jobs: list
    settled: list
    drawn: list

    def told(self):
        """The rows of the jobs, those of the settled tails, and the joules of all."""
        chunks, tails = [], []
        world = World(PLAN, lambda _: None, chunks.append, settled=tails.append)
        for start_s, until_s, kind in self.jobs:
            world.env.run(until=start_s)
            jobs = world.dispatch("train", 0)
            over_s = start_s + 10 if until_s is None else until_s
            if over_s > start_s:
                world.env.run(until=over_s)
            world.env.run(world.discard(jobs, kind))
        world.env.run(until=self.end_s)
        total_j = world.totals().energy.joules
        world.close()
        return np.concatenate(chunks), np.concatenate(tails), total_j


ONE = (1, None, Kind.LATE)
CASES = [
    # The upload ends at 11 s, and its tail at 21 s; or at the run's end.
    Case([ONE], 30, [(32, 0)], [(0, 0, 21, 40)], [(2, 10), (11, 21)]),
    Case([ONE], 14, [(32, 0)], [(0, 0, 14, 12)], [(2, 10), (11, 14)]),
    # The next download ends it after 3 s; or it has run out by then.
    Case(
        [ONE, (14, None, Kind.LATE)],
        24.5,
        [(32, 0), (32, 12)],
        [(0, 1, 24.5, 2)],
        [(2, 10), (11, 14), (15, 23), (24, 24.5)],
    ),
    Case(
        [ONE, (40, None, Kind.LATE)],
        50.5,
        [(32, 0), (32, 40)],
        [(0, 1, 50.5, 2)],
        [(2, 10), (11, 21), (41, 49), (50, 50.5)],
    ),
    # Broken off half-way through the download: the tail lasts from then until the next one, 1.5 s later.
    Case(
        [(1, 1.5, Kind.LOST), (3, None, Kind.LATE)],
        13.5,
        [(0, 0), (32, 6)],
        [(0, 1, 13.5, 2)],
        [(1.5, 3), (4, 12), (13, 13.5)],
    ),
    # Between work and upload: since the end of the download, 8 s before, and 1 s more.
    Case(
        [(1, 10, Kind.LOST), (11, None, Kind.LATE)],
        21.5,
        [(0, 0), (32, 36)],
        [(0, 1, 21.5, 2)],
        [(2, 11), (12, 20), (21, 21.5)],
    ),
    # Given up at once: the second job transfers nothing, and the third ends the first one's tail.
    Case(
        [ONE, (12, 12, Kind.LOST), (13, None, Kind.LATE)],
        23.5,
        [(32, 0), (0, 0), (32, 8)],
        [(0, 2, 23.5, 2)],
        [(2, 10), (11, 13), (14, 22), (23, 23.5)],
    ),
    # ... or the run's end.
    Case([ONE, (12, 12, Kind.LOST)], 13, [(32, 0), (0, 0)], [(0, 0, 13, 8)], [(2, 10), (11, 13)]),
]
