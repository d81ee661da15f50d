"""Small runs on links that are shared or change, of which every number is known."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest
from fleets import valid
from plans import plan, prices, sourced, told

from edgefl.core import catalogue
from edgefl.core.event import ENDINGS, Kind
from edgefl.core.fleet import Failures
from edgefl.core.link import Link
from edgefl.world.driver import converse, simulate
from edgefl.world.job import Job
from edgefl.world.links import ClientTrace
from edgefl.world.needs import Feedback
from edgefl.world.pool import Pool

MERGED, LATE, LOST = (ENDINGS.index(kind) for kind in (Kind.MERGED, Kind.LATE, Kind.LOST))
MB = 10**6


def on(plan_, **server):
    """A plan with keys of the server's."""
    changed = plan_.scenario.server.model_copy(update=server)
    return replace(plan_, scenario=plan_.scenario.model_copy(update={"server": changed}))


def on_trace(plan_, up, **settings):
    """A plan whose clients' uploads follow a trace of (seconds, bit/s); downloads do not change."""
    rows = {"up": " ".join(f"{t},{bps}" for t, bps in up), "down": "0,8000000 1000,8000000"}
    trace = {"rows": [rows], **settings}
    link = Link.model_validate(
        {
            "title": "cable",
            "trace": trace,
            "latency": sourced("0 s"),
            "radio": {"status": "unknown", "source": "test"},
        }
    )
    return replace(plan_, fleet=plan_.fleet.model_copy(update={"links": {"cable": link}}))


def by_client(plan_):
    return sorted(told(plan_)[2], key=lambda row: row["client"])


def availability(rows):
    return valid(catalogue.load("availability", "intervals").Params, rows=rows)


def test_energy_follows_the_time_that_a_transfer_takes():
    """Two uploads of 1 MB share 8 Mbit/s: 2 s each at the radio's base power, and per bit as alone.

    Nobody receives, and the tail begins when the transfer ends.
    """
    table = prices(
        "train", 2, compute_s=1.0, up_bytes=MB, up_bps=8e6, idle_w=1.0, radio_w=0.5,
        transmit_j_per_mbit=0.25, receive_j_per_mbit=9.0, tail_w=0.125, tail_s=4.0,
    )  # fmt: skip
    alone, shared = (told(on(plan([table]), uplink=uplink))[2] for uplink in (None, 8e6))
    for rows, up_s in ((alone, 1.0), (shared, 2.0)):
        assert rows["transmit_s"].tolist() == [up_s, up_s]
        assert rows["transmit_j"].tolist() == [0.5 * up_s + 0.25 * 8] * 2
        assert rows["transmit_idle_j"].tolist() == [up_s, up_s]
        assert rows["arrived_s"].tolist() == [1 + up_s] * 2
        assert not rows["receive_j"].any()


def test_downloads_take_their_time_too():
    """Two of 1 MB share 8 Mbit/s: 2 s each at the radio's base power and idle power."""
    table = prices("train", 2, down_bytes=MB, down_bps=8e6, idle_w=1.0, radio_w=0.5, receive_j_per_mbit=0.25)
    rows = told(on(plan([table]), downlink=8e6))[2]
    assert rows["receive_s"].tolist() == rows["receive_idle_j"].tolist() == [2, 2]
    assert rows["receive_j"].tolist() == [0.5 * 2 + 0.25 * 8] * 2


def test_who_is_away_when_its_shared_upload_arrives_is_lost():
    """Both arrive at 2 s, not at 1 s as they would alone; one is away from 1.5 s on, and has sent it all."""
    table = prices("train", 2, up_bytes=MB, up_bps=8e6)
    there = availability("0,0,1.5 0,3,100 1,0,100")
    one, other = by_client(on(plan([table], availability=there, on_leave="check-at-end"), uplink=8e6))
    assert (one["ending"], one["ended_s"], one["up_bytes"], one["transmit_s"]) == (LOST, 2, MB, 2)
    assert (other["ending"], other["arrived_s"]) == (MERGED, 2)


def test_who_is_away_when_its_upload_arrives_is_lost():
    """Away from 0.5 s on, it arrives at 1 s."""
    table = prices("train", 1, up_bytes=MB, up_bps=8e6)
    plan_ = plan([table], availability=availability("0,0,0.5 0,3,100"), on_leave="check-at-end")
    (row,) = told(plan_)[2]
    assert (row["ending"], row["ended_s"], row["up_bytes"], row["transmit_s"]) == (LOST, 1, MB, 1)


def test_who_is_timed_out_has_sent_its_share():
    """8 Mbit/s for one, from 1 s on for two; both are given up after 4 s."""
    table = prices("train", 2, compute_s=[0.0, 1.0], up_bytes=[4 * MB, 4 * MB], up_bps=8e6)
    plan_ = on(plan([table], failures=Failures(timeout="4 s")), uplink=8e6)
    one, other = by_client(plan_)
    assert (one["ending"], one["ended_s"], one["up_bytes"], one["transmit_s"]) == (LOST, 4, 2.5 * MB, 4)
    assert (other["ending"], other["ended_s"], other["up_bytes"]) == (LOST, 4, 1.5 * MB)


def test_partial_work_leaves_time_for_an_upload_on_the_clients_own_link():
    """Of 10 steps of 1 s, 4 fit before 5 s with an upload of 1 s, which takes 2 s on the server's link."""
    params = valid(
        catalogue.load("policies", "deadline").Params, seconds="5 s", late="merge", allow_partial=True
    )
    table = prices("train", 1, compute_s=10.0, steps=10, up_bytes=MB, up_bps=8e6)
    (row, *_) = told(on(plan([table], policy="deadline", params=params, rounds=2), uplink=4e6))[2]
    assert (row["steps"], row["worked_s"], row["arrived_s"]) == (4, 4, 6)


def test_a_lost_job_leaves_the_link_to_the_others():
    """From 2 s on the second client, who began at 1 s, has 8 Mbit/s alone: 0.5 MB by then, 1.5 MB after."""
    table = prices("train", 2, compute_s=[0.0, 1.0], up_bytes=2 * MB, up_bps=8e6)
    plan_ = on(plan([table], availability=availability("0,0,2 1,0,100")), uplink=8e6)
    one, other = by_client(plan_)
    assert (one["ending"], one["ended_s"], one["up_bytes"]) == (LOST, 2, 1.5 * MB)
    assert (other["ending"], other["arrived_s"], other["transmit_s"]) == (MERGED, 3.5, 2.5)


def test_a_late_job_that_is_dropped_leaves_the_link_to_the_next_round():
    """Each round, 0.5 MB take 1 s at half of 8 Mbit/s; the other upload is dropped after 2 s."""
    table = prices("train", 2, up_bytes=[MB // 2, 4 * MB], up_bps=8e6)
    params = valid(catalogue.load("policies", "deadline").Params, seconds="2 s")
    rows = told(on(plan([table], rounds=3, policy="deadline", params=params), uplink=8e6))[2]
    first, late = (rows[rows["client"] == client] for client in (0, 1))
    assert (first["arrived_s"] - first["dispatched_s"]).tolist() == pytest.approx([1] * 3)
    assert late["ending"].tolist() == [LATE] * 3
    assert late["up_bytes"].tolist() == pytest.approx([1.5 * MB] * 3, abs=1)


def test_who_pauses_gives_its_share_back():
    """Away from 1 s to 4 s: until 1 s half the link each, then the other's alone, then the first one's."""
    table = prices("train", 2, up_bytes=2 * MB, up_bps=8e6)
    there = availability("0,0,1 0,4,100 1,0,100")
    one, other = by_client(on(plan([table], availability=there, on_leave="pause"), uplink=8e6))
    assert (other["arrived_s"], other["transmit_s"]) == (2.5, 2.5)
    assert (one["arrived_s"], one["transmit_s"], one["up_bytes"]) == (5.5, 2.5, 2 * MB)


def test_who_pauses_for_ever_is_lost_as_it_leaves():
    """From 1 s on the other client has the link to itself: 0.5 MB by then, 1.5 MB after."""
    table = prices("train", 2, up_bytes=2 * MB, up_bps=8e6)
    plan_ = plan([table], availability=availability("0,0,1 1,0,100"), on_leave="pause")
    one, other = by_client(on(plan_, uplink=8e6))
    assert (one["ending"], one["ended_s"], one["up_bytes"]) == (LOST, 1, MB // 2)
    assert (other["ending"], other["arrived_s"]) == (MERGED, 2.5)


def test_who_pauses_twice_shakes_hands_once():
    """Away in the handshake and while bytes flow: 0.5 s and 0.5 s of handshakes, 1 s and 1 s of bytes."""
    table = prices("train", 1, up_bytes=2 * MB, up_bps=8e6, up_s=1.0)
    there = availability("0,0,0.5 0,2,3.5 0,5,100")
    plan_ = plan([table], availability=there, on_leave="pause")
    (row,) = told(plan_)[2]
    assert (row["arrived_s"], row["transmit_s"]) == (6, 3)


def test_an_upload_that_is_sent_again_shares_again():
    """Three uploads of 1 MB, each after its handshake; half as fast on a server's link of half the rate.

    The last one arrives with errors too, and the job is lost.
    """
    table = prices("train", 1, up_bytes=MB, up_bps=8e6, up_s=0.5)
    failures = Failures(corrupt=1 - 1e-12, retries=2)
    (alone,) = told(plan([table], failures=failures))[2]
    (slow,) = told(on(plan([table], failures=failures), uplink=4e6))[2]
    assert alone["ending"] == slow["ending"] == LOST
    assert (alone["ended_s"], alone["up_bytes"], alone["transmit_s"]) == (4.5, 3 * MB, 4.5)
    assert (slow["ended_s"], slow["up_bytes"], slow["transmit_s"]) == (7.5, 3 * MB, 7.5)


def test_an_upload_that_is_sent_again_after_a_pause_is_sent_whole():
    """Away from 0.5 s to 1 s in the first of two uploads of 1 s."""
    failures = Failures(corrupt=1 - 1e-12, retries=1)
    there = availability("0,0,0.5 0,1,100")
    table = prices("train", 1, up_bytes=MB, up_bps=8e6)
    (row,) = told(on(plan([table], failures=failures, availability=there, on_leave="pause"), uplink=8e6))[2]
    assert (row["ended_s"], row["transmit_s"], row["up_bytes"]) == (2.5, 2, 2 * MB)


def test_a_tail_lasts_from_a_shared_upload_to_the_next_job():
    """1 s of work lies between an upload and the next."""
    table = prices("train", 2, compute_s=1.0, up_bytes=MB, up_bps=8e6, tail_w=0.125, tail_s=4.0)
    rows = told(on(plan([table], rounds=2, every=2), uplink=8e6))[2]
    assert sorted(rows["earlier_tail_j"].tolist()) == [0, 0, 0.125, 0.125]


def test_a_transfer_integrates_over_a_trace():
    """8 Mbit/s for 1 s, an outage of 2 s, 4 Mbit/s for good: 3 MB need 1 + 2 + 4 s."""
    table = prices("train", 1, up_bytes=3 * MB, up_bps=8e6)
    up = [(0, 8e6), (1, 0), (3, 4e6), (10, 4e6)]
    (row,) = told(on_trace(plan([table]), up, end="hold"))[2]
    assert (row["arrived_s"], row["transmit_s"]) == (7, 7)
    failures = Failures(timeout="3.5 s")
    (row,) = told(on_trace(plan([table], failures=failures), up, end="hold"))[2]
    assert (row["ending"], row["up_bytes"], row["transmit_s"]) == (LOST, 1.25 * MB, 3.5)


def test_a_trace_is_a_cap_below_a_shared_link():
    """Two share 8 Mbit/s for 1 s, and have at most 2 each from then on: 0.5 MB, then 0.25 MB a second."""
    table = prices("train", 2, up_bytes=2 * MB, up_bps=8e6)
    plan_ = on(on_trace(plan([table]), [(0, 8e6), (1, 2e6), (100, 2e6)], end="hold"), uplink=8e6)
    assert [row["arrived_s"] for row in by_client(plan_)] == [7, 7]


def test_repeated_traces_begin_anywhere():
    """1 and 3 Mbit/s by turns, a second each: 6 Mbit are a turn and 2 Mbit, as fast or slow as can be."""
    count = 200
    table = prices("train", count, up_bytes=MB * 3 // 4, up_bps=2e6)
    rows = by_client(on_trace(plan([table]), [(0, 1e6), (1, 3e6), (2, 1e6)], end="repeat"))
    took_s = [row["transmit_s"] for row in rows]
    assert min(took_s) == pytest.approx(2 + 2 / 3)
    assert max(took_s) == pytest.approx(2 + 4 / 3)
    assert len(set(took_s)) > count / 4


def test_an_interrupt_ends_a_run_half_way_through_a_change(monkeypatch):
    """Nothing is reckoned from what is left, which would raise an error of its own."""
    table = prices("train", 2, up_bytes=MB, up_bps=8e6)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Pool, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        told(on_trace(plan([table]), [(0, 8e6), (10, 8e6)]))


def test_jobs_that_ended_are_forgotten():
    """Not only once the timeouts that they did not need would have been due."""
    table = prices("train", 9, compute_s=[1 + 0.37 * each for each in range(9)], up_bytes=1000, up_bps=8e6)
    fedasync = valid(catalogue.load("policies", "fedasync").Params)
    failures = valid(Failures, timeout=86_400.0)
    plan_ = on(plan([table], policy="fedasync", params=fedasync, rounds=300, failures=failures), uplink=8e6)
    found = []

    def answer(need):
        if need.version == 300:
            found.extend(one for one in gc.get_objects() if type(one) is Job)
        return Feedback()

    converse(simulate(plan_), answer)
    assert 1 <= len(found) < 150


def test_a_trace_is_passed_over_where_the_clock_cannot_follow_it():
    """After 1e15 s, when doubles are 1/8 s apart, a trace of 2 ms ends every look at it later than now."""
    trace = ClientTrace(([0.0, 0.001], [1e6, 2e6], [0.0, 0.0], 0.002), 0.0)
    assert trace.at(1e15).until_s > 1e15
