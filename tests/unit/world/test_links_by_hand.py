"""Small runs on links that are shared or change, of which every number is known."""

import gc
from dataclasses import replace

import numpy as np
import pytest
from fleets import valid
from plans import plan, prices, sourced, told, with_server

from edgefl.core import catalogue
from edgefl.core.event import ENDINGS, Kind
from edgefl.core.fleet import Failures
from edgefl.core.link import Link
from edgefl.core.piecewise import Piecewise
from edgefl.world.driver import converse, simulate
from edgefl.world.job import Job
from edgefl.world.needs import Feedback

MERGED, LOST = (ENDINGS.index(kind) for kind in (Kind.MERGED, Kind.LOST))
MB = 10**6


def by_client(plan_):
    return sorted(told(plan_)[2], key=lambda row: row["client"])


def component(kind, name, **params):
    return valid(catalogue.load(kind, name).Params, **params)


def there(rows):
    return {"availability": component("availability", "intervals", rows=rows)}


def test_energy_follows_the_time_that_a_transfer_takes():
    """Two uploads of 1 MB share 8 Mbit/s: 2 s each at the radio's base power, and per bit as alone."""
    table = prices(
        "train", 2, compute_s=1.0, up_bytes=MB, up_bps=8e6, idle_w=1.0, radio_w=0.5,
        transmit_j_per_mbit=0.25, receive_j_per_mbit=9.0, tail_w=0.125, tail_s=4.0,
    )  # fmt: skip
    alone, shared = (told(with_server(plan([table]), uplink=uplink))[2] for uplink in (None, 8e6))
    for rows, up_s in ((alone, 1.0), (shared, 2.0)):
        assert rows["transmit_s"].tolist() == [up_s, up_s]
        assert rows["transmit_j"].tolist() == [0.5 * up_s + 0.25 * 8] * 2
        assert rows["transmit_idle_j"].tolist() == [up_s, up_s]
        assert rows["arrived_s"].tolist() == [1 + up_s] * 2
        assert not rows["receive_j"].any()


def test_who_is_away_when_its_shared_upload_arrives_is_lost():
    """Both arrive at 2 s, not at 1 s as they would alone; one is away from 1.5 s on, and has sent it all."""
    table = prices("train", 2, up_bytes=MB, up_bps=8e6)
    plan_ = plan([table], **there("0,0,1.5 0,3,100 1,0,100"), on_leave="check-at-end")
    one, other = by_client(with_server(plan_, uplink=8e6))
    assert (one["ending"], one["ended_s"], one["up_bytes"], one["transmit_s"]) == (LOST, 2, MB, 2)
    assert (other["ending"], other["arrived_s"]) == (MERGED, 2)


def test_partial_work_leaves_time_for_an_upload_on_the_clients_own_link():
    """Of 10 steps of 1 s, 4 fit before 5 s with an upload of 1 s, which takes 2 s on the server's link."""
    params = component("policies", "deadline", seconds="5 s", late="merge", allow_partial=True)
    table = prices("train", 1, compute_s=10.0, steps=10, up_bytes=MB, up_bps=8e6)
    plan_ = plan([table], policy="deadline", params=params, rounds=2)
    (row, *_) = told(with_server(plan_, uplink=4e6))[2]
    assert (row["steps"], row["worked_s"], row["arrived_s"]) == (4, 4, 6)


def test_a_lost_job_leaves_the_link_to_the_others():
    """From 2 s on the second client, who began at 1 s, has 8 Mbit/s alone: 0.5 MB by then, 1.5 MB after."""
    table = prices("train", 2, compute_s=[0.0, 1.0], up_bytes=2 * MB, up_bps=8e6)
    one, other = by_client(with_server(plan([table], **there("0,0,2 1,0,100")), uplink=8e6))
    assert (one["ending"], one["ended_s"], one["up_bytes"]) == (LOST, 2, 1.5 * MB)
    assert (other["ending"], other["arrived_s"], other["transmit_s"]) == (MERGED, 3.5, 2.5)


def test_who_pauses_twice_shakes_hands_once():
    """Away in the handshake and while bytes flow: 0.5 s and 0.5 s of handshakes, 1 s and 1 s of bytes."""
    table = prices("train", 1, up_bytes=2 * MB, up_bps=8e6, up_s=1.0)
    (row,) = told(plan([table], **there("0,0,0.5 0,2,3.5 0,5,100"), on_leave="pause"))[2]
    assert (row["arrived_s"], row["transmit_s"]) == (6, 3)


def test_an_upload_that_is_sent_again_shares_again():
    """Three uploads of 1 MB, each after its handshake; half as fast on a server's link of half the rate."""
    table = prices("train", 1, up_bytes=MB, up_bps=8e6, up_s=0.5)
    failures = Failures(corrupt=1 - 1e-12, retries=2)
    (alone,) = told(plan([table], failures=failures))[2]
    (slow,) = told(with_server(plan([table], failures=failures), uplink=4e6))[2]
    assert alone["ending"] == slow["ending"] == LOST
    assert (alone["ended_s"], alone["up_bytes"], alone["transmit_s"]) == (4.5, 3 * MB, 4.5)
    assert (slow["ended_s"], slow["up_bytes"], slow["transmit_s"]) == (7.5, 3 * MB, 7.5)


def test_repeated_traces_begin_anywhere():
    """1 and 3 Mbit/s by turns, a second each: 6 Mbit are a turn and 2 Mbit, as fast or slow as can be."""
    count = 200
    plan_ = plan([prices("train", count, up_bytes=MB * 3 // 4, up_bps=2e6)])
    trace = {"rows": [{"up": "0,1e6 1,3e6 2,1e6", "down": "0,8000000 1000,8000000"}], "end": "repeat"}
    radio = {"status": "unknown", "source": "test"}
    link = Link.model_validate({"title": "cable", "trace": trace, "latency": sourced("0 s"), "radio": radio})
    fleet = plan_.fleet.model_copy(update={"links": {"cable": link}})
    took_s = [row["transmit_s"] for row in by_client(replace(plan_, fleet=fleet))]
    assert min(took_s) == pytest.approx(2 + 2 / 3)
    assert max(took_s) == pytest.approx(2 + 4 / 3)
    assert len(set(took_s)) > count / 4


def test_jobs_that_ended_are_forgotten():
    """Not only once the timeouts that they did not need would have been due."""
    table = prices("train", 9, compute_s=[1 + 0.37 * each for each in range(9)], up_bytes=1000, up_bps=8e6)
    fedasync = valid(catalogue.load("policies", "fedasync").Params)
    failures = valid(Failures, timeout=86_400.0)
    plan_ = plan([table], policy="fedasync", params=fedasync, rounds=300, failures=failures)
    plan_ = with_server(plan_, uplink=8e6)
    found = []

    def answer(need):
        if need.version == 300:
            found.extend(one for one in gc.get_objects() if type(one) is Job)
        return Feedback()

    converse(simulate(plan_), answer)
    assert 1 <= len(found) < 150


def test_a_trace_is_passed_over_where_the_clock_cannot_follow_it():
    """After 1e15 s, when doubles are 1/8 s apart, a trace of 2 ms ends every look at it later than now."""
    trace = Piecewise(np.array([0.0, 0.001]), np.array([1e6, 2e6]), 0.002)
    assert trace.until(1e15, 0.0)[1] > 1e15
