"""A run's rounds, job by job, and how long they and their jobs took."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from edgefl.analysis.explain.path import PHASES, critical_paths, rounds_of
from edgefl.analysis.run import Run
from edgefl.core.arrays import Floats, Ints
from edgefl.core.event import ENDINGS, Kind
from edgefl.core.units import show_seconds
from edgefl.show.page.frames import Block, Frame, FrameColumn, Plot, Span, Switch
from edgefl.show.page.records import Read, Section, Told

# At most so many rounds, and jobs of each.
_ROUNDS, _JOBS = 200, 40
# At least the first, the last and the longest.
_FEWEST = 3
# Differences of times that are smaller, relative to the times, are rounding errors.
_ROUNDING = 1e-9
# Digits of a job's seconds, relative to a job's length: a round may be a wait of hours.
_DIGITS = 5
_CUT = ENDINGS.index(Kind.CUT)

_STATIONS = ("dispatched", "received", "worked", "arrived", "ended")
_TIMERS = {"timer": "a timer", "server": "the server's work", "waiting for clients": "clients to come"}
_COLUMNS = {
    "round": FrameColumn("round"),
    "exchange": FrameColumn("exchange"),
    "client": FrameColumn("client"),
    "device": FrameColumn("device"),
    **{f"{name}_s": FrameColumn(name, "s") for name in _STATIONS},
    "receive_away_s": FrameColumn("away while receiving", "s"),
    "work_away_s": FrameColumn("away while working", "s"),
    "transmit_away_s": FrameColumn("away while transmitting", "s"),
    "ending": FrameColumn("ending"),
    "waited_for": FrameColumn("waited for"),
}
_SPANS = [
    Span("receive", "dispatched_s", "received_s", "receive_away_s"),
    Span("work", "received_s", "worked_s", "work_away_s"),
    Span("transmit", "worked_s", "arrived_s", "transmit_away_s"),
    Span("wait for the merge", "arrived_s", "ended_s"),
]


def section(told: Told, read: Sequence[Sequence[Block]]) -> Section:
    """One round of one run, job by job."""
    del told
    blocks = [one for each in read for one in each]
    plot = Plot(
        "round",
        "Timeline of a round",
        "Each row is a client's job: receiving, work, transmission and the wait for the merge. Time in which"
        " the client was away or paused stands at the end of its stage.",
        "no round has been merged yet.",
        "gantt",
        Frame(_COLUMNS, blocks),
        x=[span.start for span in _SPANS],
        row="client",
        by=[Switch("at", "Round", "slider")],
        runs="one",
        spans=_SPANS,
    )
    return Section("rounds", "Rounds", [plot])


class _All(NamedTuple):
    """All rounds, columns (n,) by ascending ``to_s``, and the round of each job, -1 for none."""

    version: Ints
    round: Ints
    place: Ints
    to_s: Floats
    of_job: Ints


def read(one: Read) -> list[dict[str, Any]]:
    """A run's merges, and the jobs that ended with each; none without a merge and without a job.

    A job belongs to the merge that took it, whenever it was dispatched; one that was late or lost to the
    first merge of its exchange at or after its end. Those that no merge followed, and those that were cut
    when the rounds were over, have a block of their own, without a version, for each exchange. Of many
    merges, the first, the last, the longest and others, evenly spaced, are listed, at least three, and of
    many jobs those that arrived, or ended without, last. Rounds count from 0; -1 is before the first, the
    number of rounds after the last.
    """
    found = one.run
    every = _all(found)
    if not len(every.version):
        return []
    kept = _kept(found, every, one.most_jobs)
    # By merge, the last to arrive, or to end without, first.
    ordered = np.lexsort((-found.until_s, every.of_job))
    begins, stops = (np.searchsorted(every.of_job[ordered], kept, side) for side in ("left", "right"))
    listed = [ordered[slice(*ends)][:_JOBS] for ends in zip(begins, stops, strict=True)]
    jobs, ends = np.concatenate(listed), np.cumsum(list(map(len, listed)))
    columns = _columns(found, jobs)
    waits = _waited_of(found, every.version[kept])
    blocks = []
    for at, (place, mine, end, waited) in enumerate(zip(kept, listed, ends, waits, strict=True)):
        own = {name: column[end - len(mine) : end] for name, column in columns.items()}
        round_, to_s = int(every.round[place]), float(every.to_s[place])
        block = {
            "run": one.place,
            "at": at,
            "version": int(every.version[place]),
            "round": round_,
            "exchange": found.names[every.place[place]],
            "from_s": float(found.jobs.dispatched_s[mine].min(initial=to_s)),
            "to_s": to_s,
            "omitted": int(stops[at] - begins[at]) - len(mine),
            **waited,
            **own,
            "waited_for": [
                waited["waited_phase"] * (client == waited["waited_client"]) for client in own["client"]
            ],
        }
        rounds = one.summary.rounds
        when = f"round {round_}" if round_ < (rounds or math.inf) else "after the rounds"
        name = f"{when if round_ >= 0 else 'before the rounds'}, {block['exchange']}"
        label = name if block["version"] >= 0 else f"{name}, not merged"
        blocks.append({**block, "label": label, "notes": {"": _round_told(block)}})
    slowest = max(
        blocks, key=lambda block: (block["version"] >= 0, block["to_s"] - block["from_s"], block["at"])
    )
    slowest["slowest"] = True
    return blocks


def _round_told(block: Block) -> str:
    """A merge in words."""
    words = "No merge took these jobs."
    if block["version"] >= 0:
        took = show_seconds(block["to_s"] - block["from_s"])
        words = f"From the first of these jobs to the merge it took {took}"
        client, phase = block["waited_client"], block["waited_phase"]
        if phase:
            devices = dict(zip(block["client"], block["device"], strict=True))
            device = f" ({devices[client]})" if client in devices else ""
            of = f"client {client}{device}, most of it for its {phase}" if client >= 0 else _TIMERS[phase]
            words += f". The merge waited {show_seconds(block['waited_s'])} for {of}"
        words += "."
    counts = Counter(ending for ending in block["ending"] if ending != "merged")
    if counts:
        told = ", ".join(f"{counts[ending]} {ending}" for ending in ("late", "lost", "cut") if counts[ending])
        words += f" Faint jobs were not merged: {told} of {len(block['ending'])}."
    return words + (
        f" {block['omitted']:,} jobs that ended earlier are not listed." if block["omitted"] else ""
    )


def _all(found: Run) -> _All:
    """The merges, and then what no merge followed, exchange by exchange."""
    jobs, merges = found.jobs, found.merges
    of_job = np.full(len(jobs), -1, dtype=np.int64)
    at = np.searchsorted(merges.version, jobs.into_version)
    taken = np.flatnonzero(np.isin(jobs.into_version, merges.version))
    of_job[taken] = at[taken]
    after = int(merges.round[found.in_rounds[merges.exchange]].max(initial=-1)) + 1
    more: list[tuple[int, int, float]] = []
    for place, when in enumerate(found.at):
        own = np.flatnonzero(merges.exchange == place)
        rest = np.flatnonzero((jobs.exchange == place) & (jobs.into_version < 0))
        nearest = np.searchsorted(merges.t_s[own], jobs.ended_s[rest])
        nearest[jobs.ending[rest] == _CUT] = len(own)
        of_job[rest] = np.append(own, len(merges) + len(more))[nearest]
        if (nearest == len(own)).any():
            ends_s = jobs.ended_s[rest][nearest == len(own)]
            more.append((-1 if when == "start" else after, place, float(ends_s.max())))
    numbers, places, until_s = zip(*more, strict=True) if more else ((), (), ())
    return _All(
        version=np.append(merges.version, np.full(len(more), -1, dtype=np.int64)),
        round=np.append(merges.round, np.array(numbers, dtype=np.int64)),
        place=np.append(merges.exchange, np.array(places, dtype=np.int64)),
        to_s=np.append(merges.t_s, np.array(until_s)),
        of_job=of_job,
    )


def _kept(found: Run, every: _All, most_jobs: int) -> Ints:
    """The places of the merges that are listed, by time; of one time, merges come before what none took."""
    order = np.argsort(every.to_s, kind="stable")
    number = len(every.version)
    sizes = np.bincount(every.of_job[every.of_job >= 0], minlength=number)
    each = min(int(sizes.max(initial=1)), _JOBS)
    most = max(_FEWEST, min(_ROUNDS, most_jobs // max(each, 1)))
    if number <= most:
        return order
    from_s = every.to_s.copy()
    mine = every.of_job >= 0
    np.minimum.at(from_s, every.of_job[mine], found.jobs.dispatched_s[mine])
    spaced = np.linspace(0, number - 1, most - 1).astype(np.int64)
    return order[np.unique(np.append(spaced, np.argmax((every.to_s - from_s)[order])))]


def _waited_of(found: Run, versions: Ints) -> Iterator[Block]:
    """Whom merges waited for: the client with most of each one's critical path, for what, and how long.

    It is -1 for a timer, the server or clients to come, and the phase is empty where there is no path.
    """
    parts = critical_paths(found)
    spent: dict[int, dict[int, Counter[int]]] = {}
    ends = np.searchsorted(found.merges.t_s, parts.to_s)
    version = found.merges.version[ends]
    rows = np.flatnonzero(np.isin(version, versions))
    client = np.append(found.jobs.client, -1)[parts.job]
    seconds = (parts.to_s - parts.from_s)[rows].tolist()
    of_rows = (column[rows].tolist() for column in (version, client, parts.phase))
    for merge, who, phase, spent_s in zip(*of_rows, seconds, strict=True):
        spent.setdefault(merge, {}).setdefault(who, Counter())[phase] += spent_s
    for merge in versions.tolist():
        by_client = spent.get(merge, {-1: Counter()})
        who = max(by_client, key=lambda one: by_client[one].total())
        phases = by_client[who].most_common(1)
        yield {
            "waited_client": who,
            "waited_phase": PHASES[phases[0][0]] if phases else "",
            "waited_s": by_client[who].total(),
        }


def _columns(found: Run, places: Ints) -> dict[str, list[Any]]:
    jobs, until_s = found.jobs[places], found.until_s[places]
    typical_s = float(np.median(until_s - jobs.dispatched_s)) if len(places) else 0.0
    decimals = _DIGITS - math.floor(math.log10(typical_s)) if typical_s > 0 else _DIGITS
    columns = {f"{name}_s": jobs[f"{name}_s"] for name in _STATIONS}
    for stage, start, end, away in _SPANS[:-1]:
        # What of a stage its client was not busy.
        away_s = np.nan_to_num(found.over_s(end, places) - jobs[start] - jobs[f"{stage}_s"])
        columns[away] = np.where(away_s > _ROUNDING * jobs.ended_s, away_s, 0.0)
    return {
        "client": jobs.client.tolist(),
        "device": [found.device_names[place] for place in found.clients.device[jobs.client]],
        **{name: np.round(column, decimals).tolist() for name, column in columns.items()},
        "ending": [str(ENDINGS[ending]) for ending in jobs.ending.tolist()],
    }


_STEPS = 201
# Virtual seconds are equal that differ in less: differences of times are rounded.
_DECIMALS = 9
# What a merged job did between two of its stations.
_MEASURED = {
    "jobs": ("dispatched_s", "arrived_s"),
    "receiving": ("dispatched_s", "received_s"),
    "work": ("received_s", "worked_s"),
    "transmission": ("worked_s", "arrived_s"),
}
_DURATIONS = {
    "device": FrameColumn("device", told=False),
    "of": FrameColumn("of", told=False),
    "count": FrameColumn("how many"),
    "seconds": FrameColumn("virtual time", "s"),
    "share": FrameColumn("share that took at most so long", "share"),
}


def durations(told: Told, read: Sequence[Sequence[Block]]) -> Section:
    """Durations of all runs."""
    del told
    frame = Frame(_DURATIONS, [one for each in read for one in each])
    plot = Plot(
        "durations",
        "Durations of rounds and jobs (CDF)",
        "The share of rounds, jobs or stages that took at most a given virtual time. Choose a run to compare"
        " its classes of devices.",
        "no job has ended yet.",
        "lines",
        frame,
        x=["seconds"],
        y=["share"],
        by=[Switch("of", "Of")],
        runs="all",
        detail="device",
        whole="all devices",
        log="X",
        step=True,
        left="jobs that were not merged do not count",
        missing="nothing was merged",
    )
    return Section("durations", "Durations", [plot])


def took(one: Read) -> list[Block]:
    """The cumulative distributions of a run's durations, in virtual seconds.

    Of jobs, those count that were merged in rounds: a job takes from its dispatch until its upload has
    arrived, a stage from one station to the next, with the time in which its client was away or paused. A
    round takes from the last merge of the round before it, or of the exchanges at the start, to its own last
    merge. A fleet of one device has the distributions of all alone.
    """
    found, names = one.run, one.run.device_names
    jobs = found.jobs
    in_rounds = found.in_rounds[jobs.exchange]
    merged = in_rounds & (jobs.ending == ENDINGS.index(Kind.MERGED))
    device = found.clients.device[jobs.client]
    groups = [("", in_rounds), *((name, in_rounds & (device == place)) for place, name in enumerate(names))]
    blocks = list(_distribution("rounds", "", _rounds_s(found, one.summary.rounds), 0))
    for what, (start, end) in _MEASURED.items():
        for name, mine in groups if len(names) > 1 else groups[:1]:
            chosen = np.flatnonzero(mine & merged)
            seconds = jobs[end][chosen] - jobs[start][chosen]
            blocks += _distribution(what, name, seconds, int(np.count_nonzero(mine)) - len(chosen))
    return [{"run": one.place, **block} for block in blocks]


def _rounds_s(found: Run, number: int | None) -> Floats:
    """How long each round took that had a merge, in order; the last may have been broken off."""
    rounds = rounds_of(found)
    inside = found.in_rounds[found.merges.exchange[rounds.first]]
    mine = inside & (rounds.number < (np.inf if number is None else number))
    took_s: Floats = (rounds.to_s - rounds.from_s)[mine]
    return took_s


def _distribution(what: str, device: str, seconds: Floats, left: int) -> Iterator[Block]:
    """Different durations in ascending order, at most 201: all, or one for each half percent; none of none.

    It rises from nothing at the least. The share is of all that took at most so long.
    """
    if not len(seconds):
        return
    different, counts = np.unique(np.round(seconds, _DECIMALS), return_counts=True)
    share = np.cumsum(counts) / len(seconds)
    if len(different) > _STEPS:
        # The first duration that so large a share does not exceed; the least and the most are among them.
        quantiles = np.linspace(0.0, 1.0, _STEPS)
        kept = np.unique(np.minimum(np.searchsorted(share, quantiles), len(different) - 1))
        different, share = different[kept], share[kept]
    yield {
        "device": device,
        "of": what,
        "count": len(seconds),
        "seconds": [different[0].item(), *different.tolist()],
        "share": [0.0, *share.tolist()],
        "left": left,
    }
