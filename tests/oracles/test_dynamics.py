"""Clients that leave, jobs that fail and runs that stop, on timelines that a reader can check on paper.

See ``told`` for how to read a line. A client of ``times(work=[...])`` receives for 1 s, works for so many
seconds and sends for 1 s.
"""

from plans import sourced
from told import times, told

from edgefl.core.availability.charging import Params as Charging
from edgefl.core.availability.intervals import Params as Intervals
from edgefl.core.devices import Battery

# c0 is there until 2 s and from 5 s on, c1 from 0 to 20 s, c2 from 4 s on.
THERE = Intervals(rows="0,0,2 0,5,100 1,0,20 2,4,100")
# Plugged in from the start and for long.
PLUGGED_IN = {"plug_in": 0, "hours": 20, "spread": 0, "days": 1, "start": 0.5, "drain": "0 W"}


def test_a_job_whose_client_leaves_is_lost():
    """c0 and c1 are there; c0 leaves at 2 s, at work since 1 s. The round is over when c1 arrives, at 6 s.

    Then all three are there, and 8 s later, at 14 s, all arrived.
    """
    found = told(times(work=[2, 4, 6]), "sync", rounds=2, availability=THERE)
    assert found.jobs == [
        "c0 of 0: 0 1 - -, lost at 2",
        "c1 of 0: 0 1 5 6, merged 1 at 6",
        "c0 of 1: 6 7 9 10, merged 2 at 14",
        "c1 of 1: 6 7 11 12, merged 2 at 14",
        "c2 of 1: 6 7 13 14, merged 2 at 14",
    ]
    assert found.merges == ["6: 1 = c1 x1 w1 (move)", "14: 2 = c0 x1 w1, c1 x1 w1, c2 x1 w1 (move)"]


def test_a_job_pauses_while_its_client_is_away():
    """c0 works from 1 to 2 s and, back at 5 s, for the second second until 6 s: it arrives at 7 s."""
    found = told(times(work=[2, 4, 6]), "sync", availability=THERE, on_leave="pause")
    assert found.jobs == ["c0 of 0: 0 1 6 7, merged 1 at 7", "c1 of 0: 0 1 5 6, merged 1 at 7"]


def test_a_job_is_finished_all_the_same():
    """c0 leaves at 2 s, works on and sends, and arrives at 4 s; it is asked again when it is back, at 5 s.

    FedAsync: 4 s, c0; nobody else is there but c2, who is asked then. c0 is back at 5 s and asked: nobody
    waits for the next arrival to do so, and it arrives at 9 s. c1 arrives at 6 s, c0 again at 9 s.
    """
    settings = {"staleness": {"shape": "constant"}}
    found = told(times(work=[2, 4, 6]), "fedasync", settings, rounds=3, availability=THERE, on_leave="finish")
    assert found.jobs == [
        "c0 of 0: 0 1 3 4, merged 1 at 4",
        "c1 of 0: 0 1 5 6, merged 2 at 6",
        "c2 of 1: 4 5 - -, cut at 9",
        "c0 of 1: 5 6 8 9, merged 3 at 9",
        "c1 of 2: 6 7 - -, cut at 9",
    ]
    assert found.merges == [
        "4: 1 = c0 x0.6 w1 (mix)",
        "6: 2 = c1 d1 x0.6 w1 (mix)",
        "9: 3 = c0 d1 x0.6 w1 (mix)",
    ]


def test_a_job_whose_client_is_away_when_it_arrives_is_lost_then():
    """c0 leaves at 2 s: its upload arrives at 4 s and is lost. c1 leaves at 20 s, when its own arrives."""
    found = told(times(work=[2, 18, 6]), "sync", availability=THERE, on_leave="check-at-end")
    assert found.jobs == ["c0 of 0: 0 1 3 -, lost at 4", "c1 of 0: 0 1 19 20, merged 1 at 20"]


def test_who_comes_is_asked_though_others_are_at_work():
    """FedBuff has room for two: c1 is asked when it comes, at 2 s, while c0 is at work until 10 s."""
    there = Intervals(rows="0,0,100 1,2,100")
    found = told(times(work=[8, 1]), "fedbuff", {"buffer": 1}, rounds=1, availability=there)
    assert found.jobs == ["c0 of 0: 0 1 - -, cut at 5", "c1 of 0: 2 3 4 5, merged 1 at 5"]


def test_a_phone_that_training_has_emptied_waits_for_its_charger():
    """c0 is a phone of 10 Wh that stops at 0.2 and charges with 2 W, c1 a board; jobs of an hour at 5 W.

    A job takes 18000 J and lasts 3602 s, in which the charger gives 7204 J. c0 has 14400 J at 0 s and 3604 at
    3602 s; it lacks 3596 J to 7200, so that it is away until 5400 s, and c1 works alone. At 7204 s c0 has
    10808 J and both work; at 10806 s c0 has 12 J and is away until 14400 s, and c1 works alone again.
    """
    numbers = {"capacity": "10 Wh", "charge_power": "2.5 W", "charge_efficiency": 0.8, "cut_off": 0.2}
    battery = Battery.model_validate({name: sourced(value) for name, value in numbers.items()})
    found = told(
        times(work=[3600, 3600], compute_w=5.0),
        "sync",
        rounds=4,
        availability=Charging.model_validate({**PLUGGED_IN, "initial": [0.4, 0.4]}),
        device=[0, 1],
        batteries=(battery, None),
        throttling=(None, None),
    )
    assert found.jobs == [
        "c0 of 0: 0 1 3601 3602, merged 1 at 3602",
        "c1 of 0: 0 1 3601 3602, merged 1 at 3602",
        "c1 of 1: 3602 3603 7203 7204, merged 2 at 7204",
        "c0 of 2: 7204 7205 10805 10806, merged 3 at 10806",
        "c1 of 2: 7204 7205 10805 10806, merged 3 at 10806",
        "c1 of 3: 10806 10807 14407 14408, merged 4 at 14408",
    ]


def test_until_so_many_bytes_with_jobs_in_flight():
    """FedAsync, c0 every 3 s, c1 every 8 s, 300 bytes down and 200 up: 1,700 are reached at 6 s, not at 3 s.

    3 s: 600 down, and 200 up. 6 s: c0's second job, 500 more, and c1 was given 300 in the first second:
    1,300. 8 s: c1's upload: 1,500, and c0's third download of 300: 1,800.
    """
    table = times(work=[1, 6], down_bytes=300, up_bytes=200)
    found = told(table, "fedasync", until={"bytes": "1700 B"})
    assert [merge.split(" = ")[0] for merge in found.merges] == ["3: 1", "6: 2", "8: 3"]
