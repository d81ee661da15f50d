"""What jobs take from batteries, reckoned by hand, and how it is told."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from commands import shown
from compared import every
from plans import plan, prices, told

from edgefl.analysis.bounds import bounds_of
from edgefl.analysis.device_use import device_use
from edgefl.analysis.usage import usage
from edgefl.core.cost import Trace, Work
from edgefl.planning.profile import profile
from edgefl.runs import drafts
from edgefl.runs.dry import dry_run
from edgefl.show.batteries import BatteryUse, battery_use, show_charge, show_days
from edgefl.show.comparison import dry_runs
from edgefl.show.profile import profile as costs
from edgefl.store import Store

FLEET = "fleet={members: [{device: pixel-6, link: ethernet}, {device: laptop-cpu, link: ethernet}]}"


def used(virtual_s, **columns):
    """By device, of two clients on a battery of 1 kJ and one on each of two boards without one.

    Every round trains for 10 s, every second one shares for 2 s, at 5 W above an idle power of 1 W.
    """
    draw = {"compute_w": 5.0, "idle_w": 1.0, **columns}
    tables = [prices("train", 4, compute_s=10.0, **draw), prices("share", 4, compute_s=2.0, every=2, **draw)]
    trace = Trace("", {}, {}, Work(), (), Work(), {}, 0)
    devices = {"batteries": (None,) * 3, "throttling": (None,) * 3}
    plan_ = plan(
        [replace(table, traces=(trace,)) for table in tables], rounds=2, device=[0, 1, 2, 0], **devices
    )
    store = Store.in_memory()
    store.set_meta({"batteries": {"board": 1000.0}})
    store.write_plan(plan_, {}, [0] * 4)
    store.add_jobs(told(plan_)[2], ["train", "share"])
    reader = store.reader()
    found = battery_use(reader, device_use(reader, usage(reader, 4)), virtual_s)
    store.abandon()
    return found


def test_shares_of_a_battery_by_hand():
    """Each client trains twice for 60 J and shares once for 12 J in 22 s.

    Two clients take 264 J of 2 kJ; a round takes 60 J and half of 12 J of one.
    """
    per_day = 264 / 2000 * 86_400 / 22
    assert used(22.0) == {
        "board": BatteryUse(
            2, 1000, 264, pytest.approx(0.066), pytest.approx(per_day), pytest.approx(1 / per_day)
        )
    }
    assert used(0.0)["board"] == BatteryUse(2, 1000, 264, pytest.approx(0.066), None, None)


def test_an_unknown_energy_is_no_share():
    """One client's power is unknown, and so is what its device's jobs took."""
    found = used(22.0, compute_w=[5.0, 5.0, 5.0, math.nan])
    assert found == {"board": BatteryUse(2, 1000, None, None, None, None)}
    assert used(22.0, compute_w=[5.0, math.nan, math.nan, 5.0])["board"].joules == 264


@pytest.mark.parametrize("rounds", [1, 3])
def test_bounds_of_a_round_by_hand(rounds):
    """None or more of the power above idle: 10 to 65 J of training, and half of 2 to 13 J of sharing.

    What is done once at the start is no part of a round; nor has a device a round that never took part.
    """
    draw = {"compute_w": [5.0, 5.0, 5.0], "idle_w": 1.0}
    times = {
        "greet": (100.0, {"at": "start", "everyone": True}),
        "train": (10.0, {}),
        "share": (2.0, {"every": 2}),
    }
    trace = Trace("", {}, {}, Work(), (), Work(), {}, 0)
    tables = []
    for name, (seconds, when) in times.items():
        own = replace(prices(name, 3, compute_s=seconds, **draw, **when), traces=(trace,))
        bare = replace(own, traces=())
        ends = tuple(replace(bare, compute_w=bare.compute_w * factor) for factor in (0.0, 1.1))
        tables.append(replace(own, corners=ends))
    none = (None,) * 2
    plan_ = plan(
        tables, rounds=rounds, device=[0, 1, 1], participants=1, refused=[2], batteries=none, throttling=none
    )
    store = Store.in_memory()
    store.set_meta({"batteries": {"board": 1000.0, "board 2": 1000.0}, "blind": True})
    store.write_plan(plan_, {}, [0] * 3)
    rows = told(plan_)[2]
    store.add_jobs(rows, list(times))
    reader = store.reader()
    found = battery_use(reader, device_use(reader, usage(reader, 2)), 224.0, bounds_of(reader))
    store.abandon()
    assert {name: use.clients for name, use in found.items()} == {"board": 1, "board 2": 1}
    trained = set(rows["client"][rows["exchange"] > 0])
    for client, use in enumerate(found.values()):
        mine = rows[rows["client"] == client]
        seconds = sum(
            times[name][0] / times[name][1].get("every", 1)
            for place, name in enumerate(times)
            if place and place in mine["exchange"]
        )
        expected = pytest.approx((seconds / 1000, 6.5 * seconds / 1000)) if client in trained else None
        assert use.per_round_between == expected
        assert use.per_round == (pytest.approx(6 * seconds / 1000) if client in trained else None)
    assert len(trained) > 0


def test_tails_drain_batteries_too():
    """All of a client's energy, also the tail of its last upload, which no job is charged with."""
    fleet = "fleet={members: [{device: pixel-6, link: 4g}]}"
    (found,) = dry_run("quickstart", ["sweep=null", fleet])
    (use,) = found.summary.batteries.values()
    assert found.summary.joules_by_phase["tail"] > 0
    assert use.joules == pytest.approx(found.summary.energy.joules)


def test_a_round_is_bounded_as_the_energy_is():
    """With one device and one exchange, jobs x what a round takes is the energy, at both corners too."""
    fleet = "fleet={members: [{device: pixel-6, link: 4g}]}"
    (run,) = dry_run("quickstart", ["sweep=null", "server={participants: 3, rounds: 3}", fleet])
    use, jobs_j = run.summary.batteries["pixel-6"], run.summary.jobs * 17.76 * 3600
    assert use.per_round * jobs_j == pytest.approx(run.summary.energy.joules)
    assert [end * jobs_j for end in use.per_round_between] == pytest.approx(list(run.summary.joules_between))


def test_a_profile_knows_a_day_where_the_policy_has_a_pace():
    """Merges an hour apart, of 4 of 8 phones: each does 12 jobs a day. Other policies take what jobs take."""
    settings = ["sweep=null", "task.clients=8", FLEET, "server.participants=4"]
    (paced,) = drafts("quickstart", [*settings, "server.policy={name: semi-sync, interval: 1 h}"])
    found = profile(paced)
    assert found.exchanges[0]["jobs_per_day"] == 12
    table = shown(costs(profile(paced)), 200)
    heads = next(line for line in table.splitlines() if "of battery" in line)
    *_, figures = (line for line in table.splitlines() if "pixel-6" in line and "│" in line)
    assert heads.split("┃")[-1].strip() == "a day"
    share = next(row["battery_share"] for row in found.prices if row["device"] == "pixel-6")
    assert figures.split("│")[-1].strip().startswith(show_charge(12 * share))
    (other,) = drafts("quickstart", settings)
    assert "jobs_per_day" not in profile(other).exchanges[0]
    assert "a day" not in shown(costs(profile(other)), 200)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0%"),
        (2e-6, "<0.001%"),
        (1.234e-5, "0.00123%"),
        (0.0312, "3.12%"),
        (9.99, "999%"),
        (23.4, "2,340%"),
    ],
)
def test_a_share_is_told_with_three_digits(share, text):
    """Also below a hundredth of a percent; a day may take several batteries."""
    assert show_charge(share) == text


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (0.5, "12 h 00 min"),
        (0.99, "23 h 46 min"),
        (1.001, "1 day"),
        (32.14, "32.1 days"),
        (4321, "4,321 days"),
    ],
)
def test_a_time_is_told_in_days(days, text):
    """Or in hours, if it is less than one."""
    assert show_days(days) == text


def test_tables_have_the_devices_with_batteries():
    """A run's table has three rows for each, a dry run's table one; a laptop is taken to be plugged in."""
    settings = ["sweep=null", "task.clients=4", "server={participants: 3, rounds: 3}", FLEET]
    (run,) = dry_run("quickstart", settings)
    use = run.summary.batteries["pixel-6"]
    assert (list(run.summary.batteries), use.clients) == (["pixel-6"], 2)
    assert use.days == pytest.approx(1 / use.per_day)
    lines = shown(every([run.summary]), 100).splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("battery of pixel-6, a round"))
    told_ = [line.split("│")[1].strip() for line in lines[at : at + 3]]
    a_round, *others = told_
    assert others == [show_charge(use.per_day), show_days(use.days)]
    low, high = use.per_round_between
    assert low < use.per_round < high
    assert a_round == f"{show_charge(use.per_round)} ({show_charge(low)} to {show_charge(high)})"
    assert not any("laptop" in line and "battery" in line for line in lines)
    table = [line.split("│") for line in shown(dry_runs([run]), 100).splitlines() if "pixel-6" in line]
    assert [[cell.strip() for cell in row[2:]] for row in table] == [["pixel-6", *told_]]
    (without,) = dry_run(
        "quickstart", [*settings[:3], "fleet.members=[{device: raspberry-pi-4b, link: ethernet}]"]
    )
    assert "battery" not in shown(dry_runs([without]), 100)
