"""A track per client: its jobs with their stages, and when it was away."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from edgefl.core.event import ENDINGS, Kind
from edgefl.show.perfetto.owners import Owner
from edgefl.show.perfetto.packets import Arguments, Packets
from edgefl.show.perfetto.server import flow_of


class Stage(NamedTuple):
    """A stage of a job: its slice's name, where it begins and ends, and the columns of its arguments."""

    name: str
    begins: str
    ends: str
    columns: Mapping[str, str]


STAGES = (
    Stage(
        "down", "dispatched_s", "received_s",
        {"bytes": "down_bytes", "busy_s": "receive_s", "active_j": "receive_j", "idle_j": "receive_idle_j",
         "tail_j": "earlier_tail_j"},
    ),
    Stage(
        "compute", "received_s", "worked_s",
        {"flops": "flops", "steps": "steps", "busy_s": "work_s", "full_power_s": "full_power_s",
         "active_j": "work_j", "idle_j": "work_idle_j", "tail_j": "work_tail_j"},
    ),
    Stage(
        "up", "worked_s", "arrived_s",
        {"bytes": "up_bytes", "busy_s": "transmit_s", "active_j": "transmit_j", "idle_j": "transmit_idle_j"},
    ),
)  # fmt: skip
"""The stages of a job.

``busy_s`` leaves out pauses. ``active_j`` is the energy above idle, ``idle_j`` that at idle power, and
``tail_j`` the radio's after an earlier transfer.
"""


TIMES = ("dispatched_s", "received_s", "worked_s", "arrived_s", "until_s")
COLUMNS = (
    "job", "client", "exchange", "round", "version", "into_version", "ending", "dispatched_turn", "energy_j",
    "waiting_j",
    *TIMES, *dict.fromkeys(column for stage in STAGES for column in stage.columns.values()),
)  # fmt: skip
"""What a job's slices are made of: columns of ``JOB`` and some that follow, ``TIMES`` among them."""


class Lane:
    """One client's track, written in order of time."""

    def __init__(self, packets: Packets, track: int, away: Sequence[tuple[int, int]]) -> None:
        """A track with the times that its client was away, in nanoseconds, ascending."""
        self._packets = packets
        self._track = track
        self._away = away
        self._nth = 0
        self._now = 0

    def begin(self, t_ns: int, name: str, category: str, arguments: Arguments, **flows: Any) -> None:
        """The beginning of a slice."""
        self.until(t_ns)
        self._packets.begin(self._track, t_ns, name, (category,), arguments, **flows)

    def end(self, t_ns: int) -> None:
        """The end of the slice that began last."""
        self.until(t_ns)
        self._packets.end(self._track, t_ns)

    def until(self, t_ns: int) -> None:
        """Writes the times away up to a time; inside a job they are parts of its stages."""
        while self._nth < len(self._away):
            from_ns, to_ns = self._away[self._nth]
            begins, ends = max(from_ns, self._now), min(to_ns, t_ns)
            if begins < ends:
                self._packets.begin(self._track, begins, "away", ("away",))
                self._packets.end(self._track, ends)
            if to_ns > t_ns:
                break
            self._nth += 1
        self._now = t_ns


def write_jobs(
    lane: Lane,
    jobs: Iterable[Mapping[str, Any]],
    owner: Owner,
    exchanges: Sequence[str],
    merged: Collection[int],
) -> None:
    """Writes a client's jobs.

    Args:
        lane: its track.
        jobs: its jobs in order: ``COLUMNS``, with times in whole nanoseconds, -1 for none.
        owner: the client.
        exchanges: their names, by place.
        merged: the versions whose merges are shown.
    """
    for job in jobs:
        ending, exchange = str(ENDINGS[job["ending"]]), exchanges[job["exchange"]]
        mark = "" if ending == Kind.MERGED else f" ({ending})"
        flow = (flow_of(job["job"]),)
        flows = {"through": flow} if job["into_version"] in merged else {"into": flow}
        facts = _facts(job, ending, owner)
        lane.begin(job["dispatched_s"], exchange + mark, ending, facts, **flows)
        for stage in STAGES:
            begins, ends = job[stage.begins], job[stage.ends]
            if begins < 0:
                break
            over = job["until_s"] if ends < 0 else ends
            arguments = {name: job[column] for name, column in stage.columns.items()}
            if over == begins and not any(arguments.values()):
                continue
            if stage.name == "compute":
                arguments["bound_by"] = owner.bounds.get(exchange)
            lane.begin(begins, stage.name + (mark if ends < 0 else ""), stage.name, arguments)
            lane.end(over)
        lane.end(job["until_s"])


def _facts(job: Mapping[str, Any], ending: str, owner: Owner) -> dict[str, Any]:
    """The arguments of a job's slice."""
    into = job["into_version"]
    merged = {"into_version": into, "staleness": into - 1 - job["version"]} if into >= 0 else {}
    facts = {name: job[name] for name in ("job", "round", "version")}
    return {
        **facts,
        "ending": ending,
        **merged,
        "energy_j": job["energy_j"],
        "waiting_j": job["waiting_j"],
        **owner.facts,
    }
