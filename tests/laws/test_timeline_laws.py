"""Laws of what the page shows of a run in virtual time, under every policy."""

import math
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from fleets import fleets
from hypothesis import given
from plans import plan
from recorded import recorded
from told import times

from edgefl.analysis.explain.path import NOBODY, PHASES, critical_paths
from edgefl.analysis.run import Run
from edgefl.analysis.summary import summary
from edgefl.core import catalogue
from edgefl.show.page.records import Read
from edgefl.show.page.sections import activity, rounds

OF = {"rounds": "round", "jobs": "job", "receiving": "receive", "work": "work", "transmission": "transmit"}


def timed(reader, most_jobs=10**6) -> SimpleNamespace:
    """Durations by device and what; steps, mean and most; staleness; who took part; merges."""
    read = Read(Run(reader), summary(reader), 0, most_jobs)
    busy = activity.read(read)
    active = {block["of"]: block for block in busy if "clients" in block}
    stale = {block["of"]: block for block in busy if "behind" in block}
    return SimpleNamespace(
        durations={(one["device"], OF[one["of"]]): SimpleNamespace(**one) for one in rounds.took(read)},
        active={of: (block["t_s"], block["clients"]) for of, block in active.items()},
        stale={of: (block["t_s"], block["behind"]) for of, block in stale.items()},
        participation=[SimpleNamespace(**one) for one in activity.took_part(read)],
        rounds=[SimpleNamespace(**one) for one in rounds.read(read)],
    )


def played(plan_):
    """A plan's run: its summary, its jobs and merges as rows, and its records."""
    with recorded(plan_) as reader:
        found, run = Run(reader), summary(reader)
        parts = critical_paths(found)
        in_rounds = {row["exchange"] for row in reader.rows("exchanges") if row["at"] == "round"}
        return SimpleNamespace(
            run=run,
            jobs=reader.rows("jobs"),
            merges=reader.rows("merges", "version"),
            in_rounds=in_rounds,
            **vars(timed(reader)),
            parts=parts,
            device_of={one: found.device_names[at] for one, at in enumerate(found.clients.device)},
        )


def until_s(job):
    """When a job's client was free again."""
    return job["ended_s"] if job["arrived_s"] is None else job["arrived_s"]


def merged_in_rounds(found):
    """The jobs that were merged in rounds."""
    return [job for job in found.jobs if job["ending"] == "merged" and job["exchange"] in found.in_rounds]


def participation_ends_in_the_summary(found):
    """Its last values are the summary's, and no client is forgotten on the way."""
    numbers = {row["round"] for row in found.merges if row["exchange"] in found.in_rounds}
    if not merged_in_rounds(found):
        assert found.participation == []
        return
    (shown,) = found.participation
    assert shown.round == sorted(numbers)
    assert shown.distinct == sorted(shown.distinct)
    assert shown.distinct[-1] == found.run.merged_clients
    fairness = math.nan if found.run.fairness is None else found.run.fairness
    assert shown.fairness[-1] == pytest.approx(fairness, rel=1e-15, nan_ok=True)


def jobs_in_flight_are_those_between_dispatch_and_arrival(found):
    """Their mean is all jobs' time over the run's; the most at once is counted where one begins."""
    if not found.jobs or not found.run.virtual_s:
        assert found.active == {}
        return
    lives = [(job["dispatched_s"], until_s(job)) for job in found.jobs if job["dispatched_s"] < until_s(job)]
    whole_s = math.fsum(end - start for start, end in lives)
    # Steps begin at their times; the last is the end.
    for of, steps in ("", 40), ("mean over a four-hundredth", 400):
        times, mean = found.active[of]
        assert len(times) == len(mean) == steps + 1
        assert times[-1] == pytest.approx(found.run.virtual_s)
        assert math.fsum(mean[:-1]) * times[-1] / steps == pytest.approx(whole_s)
    most = max((sum(start <= at < end for start, end in lives) for at, _ in lives), default=0)
    assert max(found.active["most at once"][1]) == most
    columns = found.active["mean over a four-hundredth"][1], found.active["most at once"][1]
    assert all(mean <= most + 1e-9 for mean, most in zip(*columns, strict=True))


def staleness_is_counted_in_versions_merge_by_merge(found):
    """Of each merge in rounds that took jobs: the version before it less theirs."""
    behind = {}
    for job in merged_in_rounds(found):
        behind.setdefault(job["into_version"], []).append(job["into_version"] - 1 - job["version"])
    if not any(each for one in behind.values() for each in one):
        assert found.stale == {}
        return
    times = {row["version"]: row["t_s"] for row in found.merges}
    merges = [times[version] for version in sorted(behind)]
    assert found.stale["most"] == (merges, [max(behind[version]) for version in sorted(behind)])
    assert found.stale[""] == (
        merges,
        pytest.approx([np.mean(behind[version]) for version in sorted(behind)]),
    )


def every_job_is_in_one_round(found):
    """With its stations; merged ones in that of their version; the jobs that are listed begin a round."""
    listed = Counter()
    assert [one.to_s for one in found.rounds] == sorted(one.to_s for one in found.rounds)
    for shown in found.rounds:
        assert shown.omitted == 0
        if shown.client:
            # Times are rounded.
            assert shown.from_s == pytest.approx(min(shown.dispatched_s), rel=1e-3, abs=1e-3)
        for client, ending in zip(shown.client, shown.ending, strict=True):
            listed[client, shown.exchange, ending, shown.version if ending == "merged" else None] += 1
    assert listed == Counter(
        (job["client"], job["exchange"], job["ending"], job["into_version"]) for job in found.jobs
    )


def a_job_is_away_where_it_is_not_busy(found):
    """Of each client's jobs: their time until they were free again, less the busy seconds of their stages."""
    away_s, expected = Counter(), Counter()
    for shown in found.rounds:
        columns = (shown.client, shown.receive_away_s, shown.work_away_s, shown.transmit_away_s)
        for client, *stages_s in zip(*columns, strict=True):
            assert min(stages_s) >= 0
            away_s[client] += sum(stages_s)
    for job in found.jobs:
        busy_s = job["receive_s"] + job["work_s"] + job["transmit_s"]
        expected[job["client"]] += until_s(job) - job["dispatched_s"] - busy_s
    # Times are rounded.
    assert away_s == pytest.approx(expected, rel=1e-3, abs=1e-3)


def spent(found):
    """The seconds of critical paths by the first merge at or after each part's end, client and phase."""
    seconds = Counter()
    for phase, job, from_s, to_s in zip(*(getattr(found.parts, one) for one in PART), strict=True):
        version = next(merge["version"] for merge in found.merges if merge["t_s"] >= to_s)
        client = found.jobs[job]["client"] if job >= 0 else -1
        seconds[version, client, PHASES[phase]] += to_s - from_s
    return seconds


PART = ("phase", "job", "from_s", "to_s")


def rounds_say_who_was_waited_for(found):
    """Of each merge the client with most of its critical path, and the phase that most of that was."""
    seconds = spent(found)
    for shown in found.rounds:
        version, client, phase, waited_s = (
            shown.version,
            shown.waited_client,
            shown.waited_phase,
            shown.waited_s,
        )
        mine = Counter()
        for (merge, who, _), part_s in seconds.items():
            if merge == version:
                mine[who] += part_s
        assert waited_s == pytest.approx(max(mine.values(), default=0))
        assert (phase == "") == (waited_s == 0)
        if phase:
            assert mine[client] == pytest.approx(waited_s)
            own = [part_s for (merge, who, _), part_s in seconds.items() if (merge, who) == (version, client)]
            assert seconds[version, client, phase] == pytest.approx(max(own))


def the_summary_says_which_devices_were_waited_for(found):
    """The same seconds by device and stage, most first; with nobody's they add up to the whole time."""
    by_device, by_stage = Counter(), Counter()
    for (_, client, phase), part_s in spent(found).items():
        by_device[found.device_of.get(client, NOBODY)] += part_s
        by_stage[found.device_of.get(client, NOBODY), phase] += part_s
    path = found.run.path
    assert {name: one.seconds for name, one in path.items()} == pytest.approx(by_device)
    assert [one.seconds for one in path.values()] == sorted(
        (one.seconds for one in path.values()), reverse=True
    )
    last_s = max((merge["t_s"] for merge in found.merges), default=0)
    assert sum(one.seconds for one in path.values()) == pytest.approx(last_s)
    for name, one in path.items():
        stages = [by_stage[name, stage] for stage in ("download", "compute", "upload")]
        assert (one.download_s, one.compute_s, one.upload_s) == pytest.approx(tuple(stages))


def durations_are_of_all_jobs_that_were_merged_in_rounds(found):
    """Their number, the least and the most; stages add up to jobs; devices add up to all."""
    merged = merged_in_rounds(found)
    shown = found.durations
    if not merged:
        assert not {what for _, what in shown} - {"round"}
        return
    spans = [job["arrived_s"] - job["dispatched_s"] for job in merged]
    every = shown["", "job"]
    assert every.count == len(merged)
    assert (every.seconds[0], every.seconds[-1]) == pytest.approx((min(spans), max(spans)), abs=1e-8)
    assert every.share == sorted(every.share)
    assert every.share[-1] == 1
    others = [job for job in found.jobs if job["exchange"] in found.in_rounds and job["ending"] != "merged"]
    assert every.left == len(others)
    devices = [one for (device, what), one in shown.items() if device and what == "job"]
    assert not devices or sum(one.count for one in devices) == every.count
    # Exact as long as all different durations are listed.
    means = {what: mean(shown["", what]) for what in ("job", "receive", "work", "transmit")}
    assert means["job"] == pytest.approx(means["receive"] + means["work"] + means["transmit"], abs=1e-7)


def mean(one):
    """The mean of the durations that a record lists."""
    return float(np.dot(one.seconds, np.diff(one.share, prepend=0)))


LAWS = (
    participation_ends_in_the_summary,
    jobs_in_flight_are_those_between_dispatch_and_arrival,
    staleness_is_counted_in_versions_merge_by_merge,
    every_job_is_in_one_round,
    a_job_is_away_where_it_is_not_busy,
    rounds_say_who_was_waited_for,
    the_summary_says_which_devices_were_waited_for,
    durations_are_of_all_jobs_that_were_merged_in_rounds,
)


@given(fleets())
def test_what_the_page_shows_of_a_run(plan_):
    """Of each run, all that is said above."""
    found = played(plan_)
    for law in LAWS:
        law(found)


def listed(table, policy="sync", params=None, *, most_jobs=1000, **settings):
    """What the page is given of a plan's run."""
    params = catalogue.load("policies", policy).Params(**(params or {}))
    plan_ = plan(table, policy=policy, params=params, **settings)
    with recorded(plan_) as reader:
        return timed(reader, most_jobs)


def test_the_first_the_last_and_the_longest_round_are_listed():
    """Of 40 rounds of two jobs, six jobs; in the tenth round a pause makes it the longest."""
    away = {"rows": "0,0,28 0,31,1000 1,0,1000", "repeat": "1000 s"}
    params = catalogue.load("availability", "intervals").Params(**away)
    found = listed([times(work=[1, 1])], rounds=40, most_jobs=6, availability=params, on_leave="pause")
    assert [(one.round, round(one.to_s - one.from_s)) for one in found.rounds] == [(0, 3), (9, 6), (39, 3)]
    assert [vars(one).get("slowest", False) for one in found.rounds] == [False, True, False]


def test_a_job_of_seconds_is_seen_in_a_round_of_hours():
    """Its stages are not rounded away with the wait for the merge."""
    (shown,) = listed([times(work=[0.004])], "semi-sync", {"interval": "8 h"}, rounds=1).rounds
    assert shown.to_s - shown.from_s == 8 * 3600
    assert shown.worked_s[0] - shown.received_s[0] == pytest.approx(0.004, rel=0.01)


def test_of_many_jobs_the_last_to_arrive_are_listed():
    """Of 50 clients the 40 slowest, the slowest first."""
    (shown,) = listed([times(work=list(range(1, 51)))], rounds=1).rounds
    assert (shown.omitted, shown.client) == (10, list(range(49, 9, -1)))


def test_at_most_201_durations_are_listed():
    """Of 1,000 different ones those at every half percent, among them the least and the most."""
    work_s = [1 + client / 1000 for client in range(1000)]
    found = listed([times(work=work_s)], rounds=1).durations["", "work"]
    assert (found.count, len(found.seconds)) == (1000, 202)
    assert (found.seconds[0], found.seconds[-1], found.share[-1]) == (1, 1.999, 1)
    for seconds, share in zip(found.seconds[1:], found.share[1:], strict=True):
        assert share == pytest.approx(np.mean(np.array(work_s) <= seconds + 1e-9))
