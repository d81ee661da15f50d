"""A run's rounds, job by job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgefl.store import Reader


@dataclass(frozen=True)
class Rounds:
    """Of one run.

    Attributes:
        run: its place.
        device_names: what ``device`` refers to.
        version: of each round that is listed, the version that its merge made.
        round: its number, from 0.
        exchange: its exchange.
        from_s: its first dispatch.
        to_s: its merge.
        first: the place of its first job in the columns of jobs.
        omitted: how many of its jobs are not listed.
        waited_client: the client that its merge waited for; -1 for nobody in particular.
        waited_part: what took that client so long: see ``waiting.PARTS``; empty where unknown.
        waited_s: virtual seconds lost to it.
        client: of each job, its client.
        device: the place of its device.
        dispatched_s: when it was dispatched.
        received_s: when it had received; NaN where it did not come so far, as below.
        worked_s: when it had worked.
        arrived_s: when it had arrived.
        ended_s: when it ended.
        ending: "merged", "late", "lost" or "cut".
    """

    run: int
    device_names: Sequence[str]
    version: Sequence[int]
    round: Sequence[int]
    exchange: Sequence[str]
    from_s: Sequence[float]
    to_s: Sequence[float]
    first: Sequence[int]
    omitted: Sequence[int]
    waited_client: Sequence[int]
    waited_part: Sequence[str]
    waited_s: Sequence[float]
    client: Sequence[int]
    device: Sequence[int]
    dispatched_s: Sequence[float]
    received_s: Sequence[float]
    worked_s: Sequence[float]
    arrived_s: Sequence[float]
    ended_s: Sequence[float]
    ending: Sequence[str]


def rounds(reader: Reader, run: int, most_jobs: int) -> list[Rounds]:
    """Those of a run, whose place is ``run``."""
    del reader, run, most_jobs
    return []
