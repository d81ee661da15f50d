"""Policies with rounds, on timelines that a reader can check on paper; see ``told`` for how to read a line.

A client of ``times(work=[...])`` receives for 1 s, works for so many seconds and sends for 1 s.
"""

import pytest
from told import times, told


def test_a_deadline_drops_who_is_late():
    """6 s a round: c0 takes 3 s and c1 5 s; c2 would take 8 s and is stopped at its work, 5 s of 6."""
    found = told(times(work=[1, 3, 6]), "deadline", {"seconds": "6 s"}, rounds=2, samples=[10, 20, 30])
    assert found.jobs == [
        "c0 of 0: 0 1 2 3, merged 1 at 6",
        "c1 of 0: 0 1 4 5, merged 1 at 6",
        "c2 of 0: 0 1 - -, late at 6",
        "c0 of 1: 6 7 8 9, merged 2 at 12",
        "c1 of 1: 6 7 10 11, merged 2 at 12",
        "c2 of 1: 6 7 - -, late at 12",
    ]
    assert found.merges == ["6: 1 = c0 x1 w10, c1 x1 w20 (move)", "12: 2 = c0 x1 w10, c1 x1 w20 (move)"]
    assert found.scores == ["6: 1", "12: 2"]


def test_a_round_is_over_when_all_are_there():
    """Nobody is waited for until 20 s when the slowest is done after 8 s."""
    found = told(times(work=[1, 6]), "deadline", {"seconds": "20 s"})
    assert found.merges == ["8: 1 = c0 x1 w1, c1 x1 w1 (move)"]


def test_a_deadline_from_predicted_times():
    """Predicted are 3, 5 and, at half speed, 8 s: their median is 5 s, and c1 arrives at 5 s: not too late.

    In the second round, from 5 s, it is the same.
    """
    table, slowdown = times(work=[1, 3, 3]), [1, 1, 2]
    found = told(table, "deadline", {"quantile": 0.5}, rounds=2, slowdown=slowdown)
    assert found.jobs == [
        "c0 of 0: 0 1 2 3, merged 1 at 5",
        "c1 of 0: 0 1 4 5, merged 1 at 5",
        "c2 of 0: 0 1 - -, late at 5",
        "c0 of 1: 5 6 7 8, merged 2 at 10",
        "c1 of 1: 5 6 9 10, merged 2 at 10",
        "c2 of 1: 5 6 - -, late at 10",
    ]
    assert found.merges == ["5: 1 = c0 x1 w1, c1 x1 w1 (move)", "10: 2 = c0 x1 w1, c1 x1 w1 (move)"]


@pytest.mark.parametrize("quantile", [0.25, 0.5, 0.75, 1.0])
def test_whose_predicted_time_is_the_deadline_is_in_time(quantile):
    """Times that no binary number has: of five clients the quantile is one's own time, in every round."""
    work, participate = [0.1, 0.3, 0.7, 1.1, 1.3], round(quantile * 4) + 1
    table = times(work=work, down_s=0.7, up_s=0.1)
    found = told(table, "deadline", {"quantile": quantile}, rounds=20, slowdown=1.1)
    assert [merge.count(" x1") for merge in found.merges] == [participate] * 20


def test_late_updates_are_merged_by_the_round_in_which_they_arrive():
    """6 s a round at most; c2 takes 8 s, its update counts 2 ** -1/2.

    The second round begins at 6 s without c2, which is busy until 8 s, and ends at 11 s with all there. In
    the third, until 17 s, c2 is too slow again; nothing follows, and it is cut.
    """
    found = told(times(work=[1, 3, 6]), "deadline", {"seconds": "6 s", "late": "merge"}, rounds=3)
    assert found.jobs == [
        "c0 of 0: 0 1 2 3, merged 1 at 6",
        "c1 of 0: 0 1 4 5, merged 1 at 6",
        "c2 of 0: 0 1 7 8, merged 2 at 11",
        "c0 of 1: 6 7 8 9, merged 2 at 11",
        "c1 of 1: 6 7 10 11, merged 2 at 11",
        "c0 of 2: 11 12 13 14, merged 3 at 17",
        "c1 of 2: 11 12 15 16, merged 3 at 17",
        "c2 of 2: 11 12 - -, cut at 17",
    ]
    assert found.merges == [
        "6: 1 = c0 x1 w1, c1 x1 w1 (move)",
        "11: 2 = c0 x1 w1, c1 x1 w1, c2 d1 x0.7071 w1 (move)",
        "17: 3 = c0 x1 w1, c1 x1 w1 (move)",
    ]
    assert found.scores == ["6: 1", "11: 2", "17: 3"]


def test_a_round_with_nobody_free_waits_for_one():
    """Both of two are late after 2 s: the second round begins when c0 is free, at 3 s, with c0 alone.

    It is over by 5 s: c0's update of version 0 and c1's, which arrives at 5 s, are there; c0's newer one is
    cut at its work.
    """
    settings = {"seconds": "2 s", "late": "merge", "staleness": {"shape": "constant"}}
    found = told(times(work=[1, 3]), "deadline", settings, rounds=2)
    assert found.jobs == [
        "c0 of 0: 0 1 2 3, merged 2 at 5",
        "c1 of 0: 0 1 4 5, merged 2 at 5",
        "c0 of 1: 3 4 5 -, cut at 5",
    ]
    assert found.merges == ["2: 1 = nothing (move)", "5: 2 = c0 d1 x1 w1, c1 d1 x1 w1 (move)"]


def test_partial_work_stops_in_time_for_the_upload():
    """6 s a round, of which the last is the upload's: work stops at the last step before 5 s.

    c0 does its 2 steps of half a second. c1 has 6 s for 4 steps of 1.5 s: from 1 s to 5 s it does 2, until
    4 s, and arrives at 5 s. c2 has 6 steps of 1 s and does 4, until 5 s. c3 receives for 4.5 s, so that it
    cannot do one of its steps of 1 s: it goes on to the end, and is late.
    """
    table = times(work=[1, 6, 6, 2], down_s=[1, 1, 1, 4.5], steps=[2, 4, 6, 2])
    found = told(table, "deadline", {"seconds": "6 s", "allow_partial": True})
    assert found.jobs == [
        "c0 of 0: 0 1 2 3, 2 steps, merged 1 at 6",
        "c1 of 0: 0 1 4 5, 2 steps, merged 1 at 6",
        "c2 of 0: 0 1 5 6, 4 steps, merged 1 at 6",
        "c3 of 0: 0 4.5 - -, 2 steps, late at 6",
    ]
    assert found.merges == ["6: 1 = c0 x1 w1, c1 x1 w1, c2 x1 w1 (move)"]


def test_partial_work_is_never_late_by_a_rounding_error():
    """Six steps of 0.1 s, of which two fit exactly; in binary numbers they end a little after 0.6 s."""
    table = times(work=[0.6], down_s=0.1, up_s=0.3, steps=6)
    found = told(table, "deadline", {"seconds": "0.6 s", "allow_partial": True})
    assert found.jobs == ["c0 of 0: 0 0.1 0.3 0.6, 2 steps, merged 1 at 0.6"]


def test_more_are_asked_than_needed():
    """Two are needed and 1.5 times as many asked, in turn; the third is dropped where it is.

    Round 1 asks c0, c1 and c2, who arrive at 3, 6 and 8 s: it is over at 6 s, with c2 at its work. Round 2
    asks c3, who was not asked yet, c0 and c1: c3 arrives after 4 s, at 10 s, and c1 is at its work.
    """
    found = told(
        times(work=[1, 4, 6, 2]),
        "overselect",
        {"factor": 1.5},
        rounds=2,
        participants=2,
        selector="round-robin",
        samples=[10, 20, 30, 40],
    )
    assert found.jobs == [
        "c0 of 0: 0 1 2 3, merged 1 at 6",
        "c1 of 0: 0 1 5 6, merged 1 at 6",
        "c2 of 0: 0 1 - -, late at 6",
        "c0 of 1: 6 7 8 9, merged 2 at 10",
        "c1 of 1: 6 7 - -, late at 10",
        "c3 of 1: 6 7 9 10, merged 2 at 10",
    ]
    assert found.merges == ["6: 1 = c0 x1 w10, c1 x1 w20 (move)", "10: 2 = c0 x1 w10, c3 x1 w40 (move)"]
    assert found.scores == ["6: 1", "10: 2"]


def test_of_equal_arrivals_the_lower_client_is_taken():
    """All three arrive at 3 s and two are needed: c2 has arrived too, and is late all the same."""
    found = told(times(work=[1, 1, 1]), "overselect", {"factor": 1.5}, participants=2)
    assert found.jobs[2] == "c2 of 0: 0 1 2 3, late at 3"
    assert found.merges == ["3: 1 = c0 x1 w1, c1 x1 w1 (move)"]


@pytest.mark.parametrize(
    ("participants", "factor", "asked"),
    [(5, 1.3, 6), (3, 1.3, 3), (2, 1, 2), (6, 1.3, 7), (9, 1.3, 10), (9, 1e308, 10)],
)
def test_how_many_are_asked(participants, factor, asked):
    """The product is rounded down, as in FedScale's ``select_participants``; there are no more than 10."""
    found = told(times(work=[1] * 10), "overselect", {"factor": factor}, participants=participants)
    assert len(found.jobs) == asked


def test_semi_synchronous_merges():
    """A merge every 4 s takes who has arrived, and asks those again.

    c0 takes 3 s, c1 6 s and c2 8 s. At 4 s c0 is there. At 8 s all are, c1 and c2 with updates of version 0:
    2 ** -1/2 of them counts. At 12 s it is c0 again, and the others, at work since 9 s, are cut.
    """
    found = told(times(work=[1, 4, 6]), "semi-sync", {"interval": "4 s"}, rounds=3, samples=[10, 20, 30])
    assert found.jobs == [
        "c0 of 0: 0 1 2 3, merged 1 at 4",
        "c1 of 0: 0 1 5 6, merged 2 at 8",
        "c2 of 0: 0 1 7 8, merged 2 at 8",
        "c0 of 1: 4 5 6 7, merged 2 at 8",
        "c0 of 2: 8 9 10 11, merged 3 at 12",
        "c1 of 2: 8 9 - -, cut at 12",
        "c2 of 2: 8 9 - -, cut at 12",
    ]
    assert found.merges == [
        "4: 1 = c0 x1 w10 (move)",
        "8: 2 = c0 x1 w10, c1 d1 x0.7071 w20, c2 d1 x0.7071 w30 (move)",
        "12: 3 = c0 x1 w10 (move)",
    ]
    assert found.scores == ["4: 1", "8: 2", "12: 3"]
