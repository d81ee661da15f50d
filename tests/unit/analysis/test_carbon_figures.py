"""Emissions of small runs, solved by hand."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from plans import plan, prices, told_all
from tails import CASES, PLAN, TAIL_W

from edgefl.analysis.bills import Amount, BilledUntil
from edgefl.analysis.carbon import J_PER_KWH, Intensities, bill, dealt, sums_of
from edgefl.analysis.repricing import Repriced
from edgefl.analysis.run import Run
from edgefl.core.carbon import Carbon, completed
from edgefl.core.corners import Interval
from edgefl.core.cost import Trace, Work
from edgefl.core.documents import document
from edgefl.core.draws import key, uniforms
from edgefl.core.errors import UserError
from edgefl.store import Store

# Hour h has h g/kWh.
RAMP = {"g_per_kwh": [*range(24)], "source": "test"}
FLAT = {"g_per_kwh": 100, "source": "test"}
HOUR_S = 3600.0
NOTHING = {"idle_w": 0, "compute_w": 0}


@contextmanager
def reading(plan_, carbon, category="sbc", told=None):
    """The reader of a run of a plan, whose fleet has this carbon record; all clients are ``board``s.

    ``told`` is what the world tells of it: the rows of its jobs and of the settled tails.
    """
    rows, tails = told or told_all(plan_)[2:]
    store = Store.in_memory()
    record = completed(Carbon.model_validate(carbon), ["cable"], {"board": category}, 0.0)
    store.set_meta({"seed": plan_.scenario.seed, "carbon": record.model_dump(mode="json")})
    nothing = Trace("train", {}, {}, Work(), (), Work(), {}, 0)
    priced = replace(plan_, prices=tuple(replace(one, traces=(nothing,)) for one in plan_.prices))
    store.write_plan(priced, {}, [1] * len(plan_.clients))
    store.add_jobs(rows, [each.exchange for each in plan_.prices])
    store.add_tails(tails)
    try:
        yield store.reader()
    finally:
        store.abandon()


def footprint(run, ended, reached):
    """That of a run which reached targets when it did."""
    reached = {model: SimpleNamespace(t_s=one.t_s, until=one) for model, one in reached.items()}
    return bill(run, None, ended, reached)


def emitted(plan_, carbon, virtual_s=0.0, reached_s=None, **more):
    """A run's footprint."""
    reached = {model: BilledUntil(t_s) for model, t_s in (reached_s or {}).items()}
    with reading(plan_, carbon, **more) as reader:
        return footprint(Run(reader), BilledUntil(virtual_s), reached)


def worked(hours, clients=1, **columns):
    """One round of work that lasts some hours, at 1 kW."""
    powers = {"idle_w": 400, "compute_w": 600, **columns}
    return plan([prices("train", clients, compute_s=hours * HOUR_S, **powers)])


def test_no_carbon_no_footprint():
    """A run whose fleet does not ask for it."""
    with reading(worked(1), {"regions": {"x": FLAT}}) as reader:
        del reader.meta["carbon"]
        assert footprint(Run(reader), BilledUntil(1.0), {}) is None


def test_a_job_over_several_hours_has_the_intensity_of_each():
    """2 h at 1 kW from 6:30: half an hour of 6, an hour of 7, half an hour of 8 g/kWh."""
    found = emitted(worked(2), {"regions": {"x": RAMP}, "start": 6.5}).whole
    assert found["devices"] == Amount(pytest.approx(0.5 * 6 + 7 + 0.5 * 8), 1, 1)
    assert found["total"].amount == pytest.approx(14)


def test_a_job_over_days_has_the_hours_again():
    """50 h from midnight: two days, and hours 0 and 1."""
    found = emitted(worked(50), {"regions": {"x": RAMP}}).whole
    assert found["devices"].amount == pytest.approx(2 * 276 + 0 + 1)


def test_stages_have_the_hours_in_which_they_are():
    """An hour's download at 100 W, two hours' work at 300 W, an hour's upload at 200 W, from 10 h."""
    columns = {"down_s": HOUR_S, "up_s": HOUR_S, "down_bytes": 1, "up_bytes": 1, "radio_w": 0}
    one = plan([prices("train", 1, compute_s=2 * HOUR_S, idle_w=100, compute_w=200, **columns)])
    found = emitted(one, {"regions": {"x": RAMP}, "start": 10, "network": "0 kWh/GB"}).whole
    assert found["devices"].amount == pytest.approx(0.1 * 10 + 0.3 * (11 + 12) + 0.1 * 13, rel=1e-6)


def test_traffic_emits_what_the_network_needs_for_it():
    """2 GB down in hour 3 and 1 GB up in hour 5 at 0.5 kWh/GB."""
    columns = {"down_s": HOUR_S, "up_s": HOUR_S, "down_bytes": 2_000_000_000, "up_bytes": 1_000_000_000}
    one = plan([prices("train", 1, compute_s=HOUR_S, **columns, **NOTHING)])
    found = emitted(one, {"regions": {"x": RAMP}, "start": 3, "network": "0.5 kWh/GB"}).whole
    assert (found["devices"].amount, found["network"].amount) == (0, pytest.approx(1.0 * 3 + 0.5 * 5))


def test_the_server_is_on_from_start_to_end():
    """200 W at a PUE of 1.5 over 2 h from 4 h in its own region; the clients' does not count."""
    server = {"power": "200 W", "pue": 1.5, "region": "there"}
    carbon = {"regions": {"x": FLAT, "there": {**RAMP, "share": 0}}, "start": 4, "server": server}
    found = emitted(worked(0, **NOTHING), carbon, virtual_s=2 * HOUR_S).whole
    assert found["server"].amount == pytest.approx(0.3 * (4 + 5))
    assert found["total"].amount == pytest.approx(found["server"].amount)


def test_hardware_counts_by_the_share_of_its_lifetime():
    """10 kg over 100 h: 2 h of work are 200 g; of a run of 5 h, both clients' owned hours are 1 kg."""
    devices = {"sbc": {"made": "10 kg", "lifetime": "100 h"}}
    one = worked(2)
    busy = emitted(one, {"regions": {"x": FLAT}, "embodied": {"devices": devices}}, 5 * HOUR_S).whole
    assert busy["embodied"] == Amount(pytest.approx(200), 1, 1)
    two = plan([prices("train", 2, compute_s=2 * HOUR_S, **NOTHING)], participants=1)
    owned = {"regions": {"x": FLAT}, "embodied": {"hours": "owned", "devices": devices}}
    assert emitted(two, owned, 5 * HOUR_S).whole["embodied"] == Amount(pytest.approx(1000), 2, 2)


def test_what_is_not_asked_for_is_not_counted():
    """Neither in the total nor in the document, and the boundary says so."""
    found = emitted(worked(1), {"regions": {"x": FLAT}}, virtual_s=HOUR_S)
    assert document(found)["whole"].keys() == {"devices", "network", "total", "waiting"}
    assert "not counted: waiting and idle time between jobs, home routers, the server" in found.about
    both = {"regions": {"x": FLAT}, "server": {"power": "1 W"}, "embodied": "owned"}
    text = emitted(worked(1), both).about
    assert "counted: energy of jobs, network, the server, owned hours of devices' making" in text
    assert text.endswith("not counted: waiting and idle time between jobs, home routers")


def test_an_unknown_energy_is_not_zero():
    """One of two clients: the rest is shown, and what it covers. Both: unknown, and so is the total."""
    flat = {"regions": {"x": FLAT}}
    one = emitted(worked(1, clients=2, compute_w=[600, math.nan]), flat).whole
    assert one["devices"] == Amount(pytest.approx(100), 1, 2)
    assert (one["total"].amount, one["total"].known, one["total"].clients) == (pytest.approx(100), 1, 2)
    none = emitted(worked(1, clients=2, idle_w=math.nan), flat).whole
    assert (none["devices"].amount, none["network"].amount, none["total"].amount) == (None, 0, None)


def test_an_unknown_network_or_hardware_is_not_zero():
    """A network and a category without figures."""
    columns = {"down_bytes": 1000, "down_s": 1.0}
    one = plan([prices("train", 1, compute_s=HOUR_S, **columns, **NOTHING)])
    unknown = {"status": "unknown", "source": "test"}
    found = emitted(one, {"regions": {"x": FLAT}, "network": unknown, "embodied": "busy"}, category="fpga")
    assert found.whole["network"] == Amount(None, 0, 1)
    assert found.whole["embodied"] == Amount(None, 0, 1)
    silent = emitted(worked(1), {"regions": {"x": FLAT}, "network": unknown}).whole
    assert silent["network"] == Amount(0, 1, 1)


def test_who_had_no_job_is_not_covered():
    """One of two clients took part."""
    two = plan([prices("train", 2, compute_s=HOUR_S, down_bytes=10**9, down_s=1.0)], participants=1)
    found = emitted(two, {"regions": {"x": FLAT}, "network": "1 kWh/GB", "embodied": "busy"}).whole
    assert found["network"] == Amount(pytest.approx(100), 1, 1)
    assert {
        each.clients for each in (found["devices"], found["embodied"], found["waiting"], found["total"])
    } == {1}


def test_what_lasts_as_long_as_the_run_has_the_bounds_of_its_time():
    """A run of 2 h that may take 1 h, and no one knows how long at most; the hours are those of the run."""
    devices = {"sbc": {"made": "10 kg", "lifetime": "100 h"}}
    carbon = {
        "regions": {"x": RAMP},
        "start": 4,
        "server": {"power": "1 kW", "pue": 1},
        "embodied": {"hours": "owned", "devices": devices},
    }
    one = worked(2)
    ends = (replace(one.prices[0], compute_w=np.array([factor])) for factor in (600.0, 1200.0))
    bounded = replace(one, prices=(replace(one.prices[0], corners=tuple(ends)),))
    for most_s, server, embodied in ((None, None, None), (3 * HOUR_S, 3 * 4.5, 300)):
        with reading(bounded, carbon) as reader:
            until = BilledUntil(2 * HOUR_S, Interval(HOUR_S, most_s))
            found = footprint(Run(reader), until, {}).whole
        assert (found["server"].amount, found["embodied"].amount) == pytest.approx((9, 200))
        assert found["server"].between == pytest.approx((4.5, server))
        assert found["embodied"].between == pytest.approx((100, embodied))


def test_bounds_of_numbers_are_bounds_of_grams():
    """2 GB at 0.1 to 0.4 kWh/GB, with and without a value; what is exact has no bounds."""
    one = plan([prices("train", 1, down_bytes=2_000_000_000, down_s=HOUR_S, **NOTHING)])
    number = {"low": "0.1 kWh/GB", "high": "0.4 kWh/GB", "status": "assumed", "source": "test"}
    bounded = emitted(one, {"regions": {"x": FLAT}, "network": number}).whole
    assert (bounded["network"].amount, bounded["devices"].between) == (None, None)
    assert bounded["network"].between == pytest.approx((20, 80))
    assert (bounded["total"].amount, bounded["total"].between) == (None, pytest.approx((20, 80)))
    both = emitted(one, {"regions": {"x": FLAT}, "network": number, "embodied": "busy"}, category="fpga")
    assert both.whole["embodied"].between == both.whole["total"].between._replace(low=0) == (0, None)
    number["value"] = "0.2 kWh/GB"
    total = emitted(one, {"regions": {"x": FLAT}, "network": number}).whole["total"]
    assert (total.amount, total.between) == (pytest.approx(40), pytest.approx((20, 80)))
    at_most = {"high": "0.4 kWh/GB", "status": "assumed", "source": "test"}
    total = emitted(one, {"regions": {"x": FLAT}, "network": at_most}).whole["total"]
    assert (total.amount, total.between) == (None, pytest.approx((0, 80)))


def test_bounds_of_joules_are_bounds_of_grams():
    """At 0.5 to 2 kW in place of 1, in the hours of the run, and at 1 to 4 h of work in place of 2."""
    one = worked(2)
    (own,) = one.prices
    ends = (
        replace(own, compute_w=np.array([100.0]), work_s=own.work_s / 2),
        replace(own, compute_w=np.array([1600.0]), work_s=own.work_s * 2),
    )
    bounded = replace(one, prices=(replace(own, corners=ends),))
    devices = {"sbc": {"made": "10 kg", "lifetime": "100 h"}}
    server = {"power": "1 kW", "pue": 1}
    carbon = {"regions": {"x": RAMP}, "start": 6.5, "embodied": {"devices": devices}, "server": server}
    with reading(bounded, carbon) as reader:
        found = footprint(Run(reader), BilledUntil(2 * HOUR_S), {}).whole
    # The mean intensity of the two hours is 7 g/kWh.
    assert found["devices"].amount == pytest.approx(2 * 7)
    assert found["devices"].between == pytest.approx((0.5 * 7, 8 * 7))
    assert (found["embodied"].amount, found["embodied"].between) == (
        pytest.approx(200),
        pytest.approx((100, 400)),
    )
    assert found["total"].between == pytest.approx((103.5 + 14, 456 + 14))


def test_what_it_took_to_reach_a_target():
    """Stages that were over by then, and the server until then: the upload comes later."""
    columns = {"down_s": HOUR_S, "up_s": HOUR_S, "down_bytes": 10**9, "up_bytes": 10**9}
    one = plan([prices("train", 1, compute_s=HOUR_S, idle_w=1000, compute_w=0, **columns)])
    server = {"power": "1 kW", "pue": 1.0}
    carbon = {"regions": {"x": FLAT}, "network": "1 kWh/GB", "server": server}
    found = emitted(one, carbon, 3 * HOUR_S, {"global": 2 * HOUR_S})
    assert found.whole["total"].amount == pytest.approx(300 + 200 + 300)
    to_target = found.to_target["global"]
    assert to_target["total"].amount == pytest.approx(200 + 100 + 200)


def test_bounds_until_a_target_have_the_tails_until_then():
    """One corner is the run itself: a tail that the next job is charged with comes after the target."""
    columns = {"down_s": HOUR_S, "up_s": HOUR_S, "tail_w": 1000, "tail_s": HOUR_S / 2}
    one = plan([prices("train", 2, compute_s=HOUR_S, compute_w=1000, **columns)], rounds=3, participants=1)
    (own,) = one.prices
    corners = (replace(own), replace(own, compute_w=2 * own.compute_w))
    with reading(replace(one, prices=(replace(own, corners=corners),)), {"regions": {"x": FLAT}}) as reader:
        found = footprint(
            Run(reader),
            BilledUntil(9 * HOUR_S),
            {"global": BilledUntil(3 * HOUR_S), "personal": BilledUntil(6 * HOUR_S)},
        )
    for until in (found.whole, *found.to_target.values()):
        assert until["devices"].between.low == pytest.approx(until["devices"].amount)
        assert until["devices"].between.high > until["devices"].amount


def test_a_target_at_the_end_took_the_whole_run():
    """Also what ends in that very moment: uploads, waiting, and a radio's tail, which outlasts the run."""
    columns = {"up_s": [HOUR_S, 2 * HOUR_S], "up_bytes": 10**9, "tail_w": 300, "tail_s": 2 * HOUR_S}
    two = plan([prices("train", 2, compute_s=HOUR_S, idle_w=100, **columns)])
    carbon = {"regions": {"x": FLAT}, "server": {"power": "1 kW", "pue": 1}, "network": "1 kWh/GB"}
    found = emitted(two, carbon, 3 * HOUR_S, {"global": 3 * HOUR_S})
    assert found.to_target["global"] == found.whole
    assert found.whole["waiting"].amount == pytest.approx(0.1 * 1 * 100)
    bounded = replace(two, prices=(replace(two.prices[0], corners=two.prices * 2),))
    with reading(bounded, carbon) as reader:
        end = BilledUntil(3 * HOUR_S)
        again = footprint(Run(reader), end, {"global": end})
    assert again.to_target["global"] == again.whole
    silent = replace(two, prices=(replace(two.prices[0], tail_w=np.zeros(2)),))
    without = emitted(silent, carbon, 3 * HOUR_S).whole
    assert found.whole["devices"].amount - without["devices"].amount == pytest.approx(0.3 * 1 * 100)


class Seconds:
    """A grid whose intensity grows by 3.6e6 g/kWh, 1 g/J, every second, from 0."""

    def mean(self, region, start_s, end_s):
        """As ``Intensities``."""
        return (start_s + end_s) / 2 * J_PER_KWH + 0 * region


@pytest.mark.parametrize("case", CASES)
def test_a_tail_emits_when_it_is_drawn(case):
    """After the transfer that it follows, whichever job is charged with it, and until it is over."""
    rows, tails, _ = case.told()
    times = [0.0, *(until_s for _, until_s in case.drawn), math.inf]
    with reading(PLAN, {"regions": {"x": FLAT}}, told=(rows, tails)) as reader:
        run, region = Run(reader), np.zeros(1, dtype=np.int64)
        corner = Repriced(run.repriced, PLAN.prices, PLAN.prices, blind=False)
        sums = sums_of(run, [corner.by_job(case.end_s)], region, Seconds(), times)
    for t_s, each in zip(times, sums, strict=True):
        drawn = [(since_s, until_s) for since_s, until_s in case.drawn if until_s <= t_s]
        expected = sum(TAIL_W * (until_s - since_s) * (since_s + until_s) / 2 for since_s, until_s in drawn)
        assert [one.devices_g for one in each] == [pytest.approx([expected])] * 2


def test_a_tail_may_be_over_before_the_work():
    """After an hour's download 1 kW from 1 to 2 h, however long the work lasts; the upload ends the run."""
    columns = {"down_s": HOUR_S, "up_s": HOUR_S, "tail_w": 1000, "tail_s": HOUR_S}
    one = plan([prices("train", 1, compute_s=4 * HOUR_S, **columns, **NOTHING)])
    assert emitted(one, {"regions": {"x": RAMP}}).whole["devices"].amount == pytest.approx(1)


def test_waiting_is_apart():
    """1 h and 3 h of work, and the first client waits from 1 to 3 h at 400 W: no part of the sum."""
    two = plan([prices("train", 2, compute_s=[HOUR_S, 3 * HOUR_S], idle_w=400, compute_w=0)])
    found = emitted(two, {"regions": {"x": RAMP}}).whole
    assert found["waiting"] == Amount(pytest.approx(0.4 * (1 + 2)), 2, 2)
    assert found["total"].amount == pytest.approx(0.4 * 0 + 0.4 * (0 + 1 + 2))


def test_regions_differ():
    """Each client has its own region's intensity."""
    carbon = {"regions": {"x": FLAT, "y": {**FLAT, "g_per_kwh": 900}}}
    found = emitted(worked(1, clients=40), carbon)
    in_y = (found.whole["devices"].amount - 40 * 100) / 800
    assert in_y == pytest.approx(round(in_y))
    assert 0 < in_y < 40


def test_a_job_that_broke_off_counts_as_far_as_it_went():
    """Its download of 4 h was cut after 2.5 h, at the grid's intensity until then."""
    columns = {"down_s": 4 * HOUR_S, "down_bytes": 1000}
    until = {"time": 2.5 * HOUR_S}
    one = plan([prices("train", 1, compute_s=HOUR_S, idle_w=1000, compute_w=0, **columns)], until=until)
    assert emitted(one, {"regions": {"x": RAMP}}).whole["devices"].amount == pytest.approx(0 + 1 + 0.5 * 2)


def test_a_run_without_jobs_emits_nothing():
    """But what the server does."""
    with reading(worked(1), {"regions": {"x": FLAT}}) as reader:
        reader.query("DELETE FROM jobs")
        assert footprint(Run(reader), BilledUntil(1.0), {}).whole["total"].amount == 0


def test_chunks_change_nothing(monkeypatch):
    """Jobs are read in parts."""
    rounds = plan(
        [prices("train", 5, compute_s=[1, 2, 3, 4, math.pi], idle_w=100, compute_w=50)],
        rounds=4,
        participants=3,
    )
    carbon = {"regions": {"x": RAMP}, "start": 3.9995}
    whole = emitted(rounds, carbon, 60.0).whole
    monkeypatch.setattr("edgefl.analysis.repricing._CHUNK", 2)
    assert emitted(rounds, carbon, 60.0).whole["total"].amount == pytest.approx(
        whole["total"].amount, rel=1e-12
    )


def test_a_damaged_record_is_told():
    """As any damage is: with a message."""
    with reading(worked(1), {"regions": {"x": FLAT}}) as reader:
        reader.meta["carbon"] = {"regions": 3}
        with pytest.raises(UserError, match=r"carbon\.regions should be a mapping"):
            footprint(Run(reader), BilledUntil(1.0), {})


def test_clients_are_dealt_by_shares():
    """A client's region depends on the seed and its number alone, and regions get their shares."""
    record = Carbon.model_validate({"regions": {"DE": 1, "FR": 3, "NO": 0}})
    places = dealt(record, 40_000, root=5)
    shares = np.bincount(places, minlength=3) / 40_000
    assert shares[2] == 0
    assert shares[:2] == pytest.approx([0.25, 0.75], abs=0.01)
    huge = Carbon.model_validate({"regions": {"DE": 1e308, "FR": 1e308}})
    assert set(dealt(huge, 100, root=5)) == {0, 1}
    assert (dealt(record, 10, root=5) == places[:10]).all()
    assert (dealt(record, 40_000, root=6) != places).any()
    slow = uniforms(key(5, "slowdown"), np.arange(40_000), count=1)[0]
    assert np.corrcoef(places, slow)[0, 1] == pytest.approx(0, abs=0.02)


def test_means_over_hours():
    """Solved by hand: within an hour, over two, over midnight, over days, and of no time at all."""
    hours = [float(hour) for hour in range(24)]
    grid = Intensities({"flat": "50", "ramp": " ".join(map(str, hours))}, start_h=22.0)
    start = np.array([0.0, 0.5, 1.5, 0.0, 1.0, 7.0, 3.0]) * 3600
    end = np.array([0.5, 1.5, 2.5, 48.0, 27.0, 7.0, 4.0]) * 3600
    # From 22 h: 22; half of 22 and half of 23; half of 23 and half of 0; two whole days; 23 h and 25 hours
    # more, a day with a second hour 23 and a second hour 0; 5 h; from 1 h to 2 h.
    expected = [22, 22.5, 11.5, 11.5, (11.5 * 24 + 23 + 0) / 26, 5, 1]
    assert grid.mean(np.ones(7, dtype=np.int64), start, end) == pytest.approx(expected)
    assert grid.mean(np.zeros(7, dtype=np.int64), start, end).tolist() == [50.0] * 7


def test_means_are_those_of_small_steps():
    """Against a sum over minutes, with regions of different periods side by side."""
    rng = np.random.default_rng(4)
    texts = {"day": 24, "week": 168, "one": 1}
    series = {name: rng.uniform(10, 900, size=count) for name, count in texts.items()}
    grid = Intensities({name: " ".join(map(str, each)) for name, each in series.items()}, start_h=5.5)
    region = rng.integers(0, 3, size=60)
    start = rng.integers(0, 20_000, size=60)
    length = rng.integers(1, 3000, size=60)
    for place, found in enumerate(grid.mean(region, start * 60.0, (start + length) * 60.0)):
        values = series[list(series)[region[place]]]
        minutes = start[place] + np.arange(length[place]) + 0.5
        expected = values[((minutes / 60 + 5.5) % len(values)).astype(int)].mean()
        assert found == pytest.approx(expected, rel=1e-9)
