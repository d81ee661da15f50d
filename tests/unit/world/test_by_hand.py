"""Small runs of which every number is known."""

import pytest
from fleets import valid
from plans import plan, prices, told

from edgefl.core import catalogue
from edgefl.core.event import ENDINGS, Kind
from edgefl.core.fleet import Failures
from edgefl.world.needs import Merge
from edgefl.world.world import World

LOST = ENDINGS.index(Kind.LOST)


def component(kind, name, **params):
    return valid(catalogue.load(kind, name).Params, **params)


def world_of(plan_):
    return World(plan_, lambda _: None, lambda _: None)


def test_a_job_that_has_only_been_received_costs_no_work_yet():
    """Asked in the moment in which an instant download ends, nothing was computed or sent."""
    table = prices("train", 1, compute_s=4.0, up_bps=8e6, flops=10**6, up_bytes=10**6)
    world, seen = world_of(plan([table])), []

    def look():
        seen.append(world.totals())
        yield world.env.timeout(0)

    world.dispatch("train", 0)
    world.env.process(look())
    world.env.run(until=2.0)
    seen.append(world.totals())
    assert [(spent.flops, spent.up_bytes) for spent in seen] == [(0, 0), (500_000, 0)]


def test_a_client_cools_down_while_transfers_that_are_lost_last():
    """Hot at 7 s, it loses an upload at 8 s and a download at 8.5 s, and works again at 9.1 s."""
    thermal = component("speed", "thermal", onset=5.0, fall=1.0, floor=0.5, steps=1, recovery=6.0)
    plan_ = plan(
        [prices("train", 1, down_s=0.5, compute_s=6.0, up_s=10.0)],
        availability=component("availability", "intervals", rows="0,0,8 0,8.1,8.5 0,8.6,100"),
        speed=(thermal,),
        rounds=3,
    )
    rows = told(plan_)[2]
    rows = rows[rows["dispatched_s"].argsort()]
    assert rows["ending"][:2].tolist() == [LOST, LOST]
    assert (rows["worked_s"][0], rows["work_s"][2]) == pytest.approx((7, 1.1 + 1 + 2 * (6 - 1.1 - 0.75)))


@pytest.mark.parametrize("on_leave", ["check-at-end", "lose", "pause"])
def test_an_older_job_that_drains_a_battery_does_not_lose_the_one_in_flight(on_leave):
    """A job has the battery of its dispatch, whatever is taken from it until the job arrives."""
    half_full = {"capacity": 1000.0, "initial": (0.5, 0.5), "charger": 1.0, "minimum": 0.1}
    always = {"plug_in": 0.0, "start": 1.0, "spread": 0.0, "days": 1.0}
    charging = component("availability", "charging", **half_full, **always)
    table = prices("train", 1, compute_s=10.0, compute_w=50.0)
    world = world_of(plan([table], availability=charging, on_leave=on_leave))
    older = world.dispatch("train", 0)
    world.env.run(world.ended(older))
    newer = world.dispatch("train", 0)
    world.env.run(until=15.0)
    world.discard(older, Kind.LATE)
    world.env.run(until=21.0)
    assert newer[0].arrived
    assert world.candidates().tolist() == []


@pytest.mark.parametrize("count", [None, 1])
def test_who_waits_for_jobs_that_are_discarded_goes_on_at_once(count):
    world = world_of(plan([prices("train", 2, compute_s=10.0)]))
    jobs = world.dispatch("train", [0, 1])
    world.env.run(until=1.0)
    waits = [world.ended(jobs, count), world.change(clients=False)]
    world.env.run(until=3.0)
    assert not any(wait.triggered for wait in waits)
    world.env.run(world.discard(jobs, Kind.LATE))
    assert world.now_s == 3
    assert all(wait.triggered for wait in waits)
    assert world.candidates().tolist() == [0, 1]


def test_who_waits_goes_on_with_the_last_job_that_it_waits_for():
    """Of five, two have arrived at 3 s, since one is lost at 1.5 s; all that arrive have at 5 s."""
    rows = "0,0,100 1,0,1.5 2,0,100 3,0,100 4,0,100"
    away = component("availability", "intervals", rows=rows)
    plan_ = plan([prices("train", 5, compute_s=[1.0, 2, 3, 4, 5])], availability=away)
    world = world_of(plan_)
    jobs = world.dispatch("train", range(5))
    for count, when_s in ((2, 3), (None, 5)):
        world.env.run(world.ended(jobs, count))
        assert world.now_s == when_s


def test_a_job_that_is_lost_is_over_at_that_moment():
    """Its client is free, the job is not open, and half of its work is in the totals."""
    table = prices("train", 1, compute_s=10.0, flops=1000)
    world = world_of(plan([table], failures=valid(Failures, timeout=5.0)))
    (job,) = jobs = world.dispatch("train", 0)
    world.env.run(until=4.0)
    assert (job.open, world.candidates().tolist()) == (True, [])
    world.env.run(world.ended(jobs))
    assert world.now_s == 5
    assert not job.open
    assert not job.in_flight
    world.env.run(until=9.0)
    assert world.totals().flops == 500
    assert world.candidates().tolist() == [0]
    assert [job.job for job in world.dispatch("train", 0)] == [1]


@pytest.mark.parametrize(("end_s", "stations"), [(2.0, 1), (6.0, 2)])
def test_what_is_over_when_the_run_ends_counts(end_s, stations):
    """A job that is cut in the moment in which a stage ends has passed its station."""
    table = prices("train", 1, down_s=2.0, compute_s=4.0, up_s=1.0)
    (row,) = told(plan([table], until={"time": end_s}))[2]
    passed = [row[name] for name in ("received_s", "worked_s", "arrived_s") if row[name] <= end_s]
    assert passed == [2.0, 6.0][:stations]
    assert (row["receive_s"], row["work_s"], row["transmit_s"]) == (2, end_s - 2, 0)


def test_a_late_job_is_merged_before_its_client_s_next_one_of_another_exchange():
    """Every job of the second exchange is late: it is merged when its client has done the first one again."""
    table = [
        prices("all", 1, compute_s=1.0, everyone=True, stateful=True),
        prices("train", 1, compute_s=1.0, stateful=True),
    ]
    deadline = component("policies", "deadline", seconds=0.5, late="merge")
    needs = told(plan(table, policy="deadline", params=deadline, rounds=3))[1]
    merges = [(need.exchange, need.t_s) for need in needs if isinstance(need, Merge) and need.merged]
    assert merges == [("all", 1), ("train", 3), ("all", 3), ("train", 5), ("all", 5)]
