"""Small runs of which every number is known."""

from __future__ import annotations

import pytest
from fleets import valid
from plans import plan, prices, told

from edgefl.core import catalogue
from edgefl.core.event import ENDINGS, Kind
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
