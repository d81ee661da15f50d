"""The critical paths of rounds, on timelines that a reader can check on paper."""

from dataclasses import replace

import pytest
from plans import link, plan, prices
from recorded import recorded
from told import times

from edgefl.analysis.explain.explain import Explainer
from edgefl.core import catalogue
from edgefl.core.availability.intervals import Params as Intervals
from edgefl.core.samplers.fixed import Params as Fixed
from edgefl.core.yamls import RESOLVED


def paths(table, policy="sync", params=None, *, links=None, look=None, **settings):
    """A line for each part of each round: ``0: 1 to 5 compute of c1, compute 4``, or what ``look`` finds."""
    params = catalogue.load("policies", policy).Params.model_validate(params or {}, context=RESOLVED)
    plan_ = plan(table, policy=policy, params=params, **settings)
    with recorded(plan_) as reader:
        fleet = plan_.fleet.model_copy(update={"links": links or {}})
        explainer = Explainer(reader, replace(plan_, fleet=fleet), {})
        if look:
            return look(explainer)
        numbers = explainer.rounds.number.tolist()
        return [f"{number}: {line(part)}" for number in numbers for part in explainer.round(number).path]


def line(part):
    who = "" if part.client is None else f" of c{part.client}{', lost' if part.lost else ''}"
    causes = ", ".join(f"{cause} {seconds:.4g}" for cause, seconds in part.by_cause.items())
    return f"{part.from_s:.4g} to {part.to_s:.4g} {part.phase}{who}, {causes}"


def by_phase(explainer):
    return {one.phase: one.by_cause for one in explainer.run().phases}


def test_a_server_that_waits_for_all():
    """c1 takes 1 + 4 + 1 s, c0 two seconds less; the next round begins when the first was merged."""
    assert paths([times(work=[2, 4])], rounds=2) == [
        "0: 0 to 1 download of c1, latency 1",
        "0: 1 to 5 compute of c1, compute 4",
        "0: 5 to 6 upload of c1, latency 1",
        "1: 6 to 7 download of c1, latency 1",
        "1: 7 to 11 compute of c1, compute 4",
        "1: 11 to 12 upload of c1, latency 1",
    ]


def test_exchanges_of_a_round_follow_each_other():
    """Each exchange waits for another client; the exchange after the rounds is a round of its own."""
    table = [
        prices("train", 2, compute_s=[2, 4]),
        prices("share", 2, compute_s=[3, 1]),
        prices("close", 2, at="end", compute_s=[0, 1]),
    ]
    assert paths(table) == [
        "0: 0 to 4 compute of c1, compute 4",
        "0: 4 to 7 compute of c0, compute 3",
        "1: 7 to 8 compute of c1, compute 1",
    ]


def test_a_lost_job_is_waited_for_until_then():
    """c1 is given up at 3 s, in its work."""
    assert paths([times(work=[0.5, 4])], failures={"timeout": "3 s"}) == [
        "0: 0 to 1 download of c1, lost, latency 1",
        "0: 1 to 3 compute of c1, lost, compute 2",
    ]


def test_a_deadline_is_waited_for_unless_all_are_earlier():
    """c1 would take 6 s: of 5 s the timer is all; of 8 s it is not waited for."""
    assert paths([times(work=[2, 4])], "deadline", {"seconds": 5}) == ["0: 0 to 5 timer, timer 5"]
    assert paths([times(work=[2, 4])], "deadline", {"seconds": 8})[-1] == "0: 5 to 6 upload of c1, latency 1"


def test_an_asynchronous_merge_waited_for_its_last_flight():
    """c0 takes 3 s and c1 5: merges at 3, 5 and 6 s. The second takes the end of c1's job, from 3 s on.

    c0 was asked again at 3 s.
    """
    assert paths([times(work=[1, 3])], "fedasync", rounds=3) == [
        "0: 0 to 1 download of c0, latency 1",
        "0: 1 to 2 compute of c0, compute 1",
        "0: 2 to 3 upload of c0, latency 1",
        "1: 3 to 4 compute of c1, compute 1",
        "1: 4 to 5 upload of c1, latency 1",
        "2: 5 to 6 upload of c0, latency 1",
    ]


def test_a_buffer_waits_for_a_chain_of_flights():
    """c0 takes 3 s and c1 20: the buffer's two are c0's, one after the other."""
    found = paths([times(work=[1, 18])], "fedbuff", {"buffer": 2}, rounds=1)
    assert found == [
        "0: 0 to 1 download of c0, latency 1",
        "0: 1 to 2 compute of c0, compute 1",
        "0: 2 to 3 upload of c0, latency 1",
        "0: 3 to 4 download of c0, latency 1",
        "0: 4 to 5 compute of c0, compute 1",
        "0: 5 to 6 upload of c0, latency 1",
    ]


def test_a_server_waits_for_clients_to_come():
    """The only client comes at 3 s; its round lasts 4 s from then on."""
    there = Intervals.model_validate({"rows": "0,3,50", "repeat": 100}, context=RESOLVED)
    found = paths([times(work=[2])], availability=there)
    assert found[0] == "0: 0 to 3 waiting for clients, unavailable 3"
    assert found[1] == "0: 3 to 4 download of c0, latency 1"


def test_pauses_are_a_phase_of_their_own():
    """The client is away from 2 to 5 s, in its work of 2 s."""
    there = Intervals.model_validate({"rows": "0,0,2 0,5,90", "repeat": 100}, context=RESOLVED)
    settings = {"availability": there, "on_leave": "pause"}
    assert paths([times(work=[2])], **settings)[1] == "0: 1 to 6 compute of c0, away 3, compute 2"
    found = paths([times(work=[2])], look=by_phase, **settings)
    assert found.pop("away") == {"away": 3}
    assert found == {"compute": {"compute": 2}, "download": {"latency": 1}, "upload": {"latency": 1}}


def test_slowdown_and_jitter_add_to_work_at_full_speed():
    """2 s at full speed, 1.5 times as long for the client's slowdown, and then twice for this job."""
    found = paths([times(work=[2])], slowdown=1.5, jitter=Fixed(value=2))
    assert found[1] == "0: 1 to 7 compute of c0, jitter 3, compute 2, slowdown 1"


def test_a_changing_speed_adds_what_slowdown_and_jitter_do_not():
    """Hot from the first second on, at half the speed: 4 s of work take 8."""
    hot = catalogue.load("speed", "thermal").Params.model_validate(
        {"onset": 0, "fall": 1, "floor": 0.5, "recovery": 1000, "steps": 1}, context=RESOLVED
    )
    settings = {"speed": (hot,), "slowdown": 2.0}
    causes = paths([prices("train", 1, compute_s=2)], look=by_phase, **settings)["compute"]
    assert causes["compute"] == pytest.approx(2)
    assert causes["slowdown"] == pytest.approx(2)
    # Half a step between full speed and the floor for the first second: 3/4 of the speed.
    assert causes["speed"] == pytest.approx(1 + (4 - 0.75) / 0.5 - 4)


def test_transfers_are_bound_by_rate_latency_loss_and_repeats():
    """4 Mbit at 2 of the link's 4 Mbit/s, after a handshake of 0.5 s; the upload, a second, is sent twice."""
    table = [
        prices("train", 1, down_delay_s=0.5, down_bps=2e6, down_bytes=500_000, up_s=1, up_bytes=1),
    ]
    lossy = {"cable": link(down=4e6)}
    corrupt = {"failures": {"corrupt": 0.9, "retries": 1000}, "links": lossy}
    found = paths(table, look=by_phase, **corrupt)
    assert found["download"] == {"rate": 1, "loss": 1, "latency": 0.5}
    assert found["upload"]["latency"] == 1
    assert found["upload"]["repeats"] == pytest.approx(round(found["upload"]["repeats"]))
    assert found["upload"]["repeats"] >= 1


def test_a_stage_begun_in_an_earlier_round_counts_in_proportion():
    """c1 works from 1 to 7 s, 2 s of it slowdown. The merge of c0 at 4 s leaves half of that for the next."""
    settings = {"slowdown": [1.0, 1.5], "rounds": 2}
    found = paths([times(work=[2, 4])], "fedasync", {"concurrency": 2}, **settings)
    assert found[3] == "1: 4 to 7 compute of c1, compute 2, slowdown 1"
