"""What the page shows of a run in virtual time, on timelines that a reader can check on paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
from plans import plan, prices
from recorded import recorded
from timed import timed
from told import times

from edgefl.core import catalogue


def told(table, policy="sync", params=None, *, most_jobs=1000, **settings):
    """What the page is given of a plan's run."""
    params = catalogue.load("policies", policy).Params(**(params or {}))
    plan_ = plan(table, policy=policy, params=params, **settings)
    with recorded(plan_) as reader:
        return timed(reader, most_jobs)


def bars(found):
    """A line for each round and job: ``1: train 0, 0 to 6``, then ``c1: 0 1 5 6, merged at 6``."""
    lines = []
    for shown in found.rounds:
        lines.append(f"{shown.version}: {shown.exchange} {shown.round}, {shown.from_s:g} to {shown.to_s:g}")
        for job, client in enumerate(shown.client):
            stations = (shown.dispatched_s, shown.received_s, shown.worked_s, shown.arrived_s)
            passed = " ".join("-" if math.isnan(one[job]) else f"{one[job]:g}" for one in stations)
            lines.append(f"c{client}: {passed}, {shown.ending[job]} at {shown.ended_s[job]:g}")
    return lines


def waited(found):
    """Whom each merge waited for, in which phase, and how long."""
    return [(one.waited_client, one.waited_phase, one.waited_s) for one in found.rounds]


def at(found, t_s):
    """The mean and the largest number of jobs in flight in the interval of a time."""
    (times, mean), (_, most) = found.active["mean over a four-hundredth"], found.active["most at once"]
    place = int(t_s / times[1])
    return mean[place], most[place]


def test_rounds_of_a_server_that_does_not_wait():
    """A round begins with the oldest job that it takes; what no merge follows has a round without a version.

    c0 is back at 4, 8 and 12 s, c1 at 10: that ends the run, while c0 is at work.
    """
    found = told([times(work=[2, 8])], "fedbuff", {"buffer": 1}, rounds=3)
    assert bars(found) == [
        "1: train 0, 0 to 4",
        "c0: 0 1 3 4, merged at 4",
        "2: train 1, 4 to 8",
        "c0: 4 5 7 8, merged at 8",
        "3: train 2, 0 to 10",
        "c1: 0 1 9 10, merged at 10",
        "-1: train 3, 8 to 10",
        "c0: 8 9 - -, cut at 10",
    ]
    assert waited(found) == [(0, "compute", 4), (0, "compute", 4), (1, "compute", 2), (-1, "", 0)]


def test_exchanges_before_and_after_the_rounds_are_rounds_of_their_own():
    """What a limit of time broke off stands before the exchange at the end, and is none of its jobs."""
    table = [times(work=[1])]
    table += [prices(at, 1, at=at, everyone=True, compute_s=2) for at in ("start", "end")]
    found = told(table, until={"time": "7 s"})
    assert bars(found) == [
        "1: start -1, 0 to 2",
        "c0: 0 0 2 2, merged at 2",
        "2: train 0, 2 to 5",
        "c0: 2 3 4 5, merged at 5",
        "-1: train 1, 5 to 7",
        "c0: 5 6 7 -, cut at 7",
        "3: end 1, 7 to 9",
        "c0: 7 7 9 9, merged at 9",
    ]
    assert found.durations["", "round"].seconds == [3, 3]
    assert found.durations["", "job"].count == 1


def test_the_first_the_last_and_the_longest_round_are_listed():
    """Of 40 rounds of two jobs, six jobs; in the tenth round a pause makes it the longest."""
    away = {"rows": "0,0,28 0,31,1000 1,0,1000", "repeat": "1000 s"}
    params = catalogue.load("availability", "intervals").Params(**away)
    found = told([times(work=[1, 1])], rounds=40, most_jobs=6, availability=params, on_leave="pause")
    assert [(one.round, round(one.to_s - one.from_s)) for one in found.rounds] == [(0, 3), (9, 6), (39, 3)]
    assert [vars(one).get("slowest", False) for one in found.rounds] == [False, True, False]


def test_a_job_of_seconds_is_seen_in_a_round_of_hours():
    """Its stages are not rounded away with the wait for the merge."""
    (shown,) = told([times(work=[0.004])], "semi-sync", {"interval": "8 h"}, rounds=1).rounds
    assert shown.to_s - shown.from_s == 8 * 3600
    assert shown.worked_s[0] - shown.received_s[0] == pytest.approx(0.004, rel=0.01)


def test_of_many_jobs_the_last_to_arrive_are_listed():
    """Of 50 clients the 40 slowest, the slowest first."""
    (shown,) = told([times(work=list(range(1, 51)))], rounds=1).rounds
    assert (shown.omitted, shown.client) == (10, list(range(49, 9, -1)))


def test_at_most_201_durations_are_listed():
    """Of 1,000 different ones those at every half percent, among them the least and the most."""
    work_s = [1 + client / 1000 for client in range(1000)]
    found = told([times(work=work_s)], rounds=1).durations["", "work"]
    assert (found.count, len(found.seconds)) == (1000, 202)
    assert (found.seconds[0], found.seconds[-1], found.share[-1]) == (1, 1.999, 1)
    for seconds, share in zip(found.seconds[1:], found.share[1:], strict=True):
        assert share == pytest.approx(np.mean(np.array(work_s) <= seconds + 1e-9))
