"""Emissions of small runs, solved by hand."""

import math
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from plans import plan, prices, reasked, told_all

from edgefl.analysis.bills import J_PER_KWH, Amount, Emitted, Intensities, in_grams, regions_of
from edgefl.analysis.run import Run
from edgefl.core.cost import Trace, Work
from edgefl.core.draws import derive, uniforms
from edgefl.core.event import Kind
from edgefl.planning.carbon import Carbon, completed
from edgefl.store.writer import Store
from edgefl.world.world import World

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
    nothing = Trace("train", {}, {}, Work(), (), Work(), {})
    priced = replace(plan_, prices=tuple(replace(one, traces=(nothing,)) for one in plan_.prices))
    store.write_plan(priced, {}, [1] * len(plan_.clients))
    store.add_jobs(rows, [each.exchange for each in plan_.prices])
    store.add_tails(tails)
    try:
        yield store.reader()
    finally:
        store.abandon()


def emitted(plan_, carbon, virtual_s=0.0, reached_s=None, **more):
    times = (reached_s or {}).items()
    reached = {model: SimpleNamespace(t_s=t_s, t_s_between=None) for model, t_s in times}
    with reading(plan_, carbon, **more) as reader:
        return in_grams(Run(reader), None, (virtual_s, None), reached)


def worked(hours, clients=1, **columns):
    powers = {"idle_w": 400, "compute_w": 600, **columns}
    return plan([prices("train", clients, compute_s=hours * HOUR_S, **powers)])


def _one(clients=1, hours=1.0, until=None, **columns):
    return plan([prices("train", clients, compute_s=np.multiply(hours, HOUR_S), **columns)], until=until)


BOTH = {"down_s": HOUR_S, "up_s": HOUR_S, "down_bytes": 2 * 10**9, "up_bytes": 10**9}
THERE = {"x": FLAT, "there": {**RAMP, "share": 0}}
BY_HAND = {
    # 2 h at 1 kW from 6:30.
    "a job has each hour's intensity": (worked(2), {"start": 6.5}, 0, {"devices": 0.5 * 6 + 7 + 0.5 * 8}),
    # An hour's download at 100 W, two hours' work at 300 W, an hour's upload at 100 W, from 10 h.
    "stages have the hours in which they are": (
        _one(hours=2, idle_w=100, compute_w=200, radio_w=0, **BOTH),
        {"start": 10, "network": "0 kWh/GB"}, 0, {"devices": 0.1 * 10 + 0.3 * (11 + 12) + 0.1 * 13},
    ),
    "traffic emits what the network needs for it": (
        _one(**BOTH, **NOTHING), {"start": 3, "network": "0.5 kWh/GB"}, 0, {"devices": 0, "network": 5.5},
    ),
    # 200 W at a PUE of 1.5 over 2 h from 4 h in its own region.
    "the server is on from start to end": (
        worked(0, **NOTHING),
        {"regions": THERE, "start": 4, "server": {"power": "200 W", "pue": 1.5, "region": "there"}},
        2 * HOUR_S, {"server": 0.3 * (4 + 5), "total": 0.3 * (4 + 5)},
    ),
    # After an hour's download 1 kW from 1 to 2 h, however long the work lasts; the upload ends the run.
    "a tail may be over before the work": (
        _one(hours=4, down_s=HOUR_S, up_s=HOUR_S, tail_w=1000, tail_s=HOUR_S, **NOTHING),
        {}, 0, {"devices": 1},
    ),
    # 1 h and 3 h of work, and the first client waits from 1 to 3 h at 400 W: no part of the sum.
    "waiting is apart": (
        _one(2, [1, 3], idle_w=400, compute_w=0), {}, 0, {"waiting": 0.4 * (1 + 2), "total": 0.4 * (1 + 2)},
    ),
    # Its download of 4 h was cut after 2.5 h.
    "a job that broke off counts as far as it went": (
        _one(down_s=4 * HOUR_S, down_bytes=1000, idle_w=1000, compute_w=0, until={"time": 2.5 * HOUR_S}),
        {}, 0, {"devices": 0 + 1 + 0.5 * 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("one", "carbon", "end_s", "grams"), BY_HAND.values(), ids=BY_HAND)
def test_emissions_by_hand(one, carbon, end_s, grams):
    found = emitted(one, {"regions": {"x": RAMP}, **carbon}, end_s).whole
    assert {part: found[part].amount for part in grams} == pytest.approx(grams)


def test_hardware_counts_by_the_share_of_its_lifetime():
    """10 kg over 100 h: 2 h of work are 200 g; of a run of 5 h, both clients' owned hours are 1 kg."""
    devices = {"sbc": {"made": "10 kg", "lifetime": "100 h"}}
    one = worked(2)
    busy = emitted(one, {"regions": {"x": FLAT}, "embodied": {"devices": devices}}, 5 * HOUR_S).whole
    assert busy["embodied"] == Amount(pytest.approx(200), 1, 1)
    two = plan([prices("train", 2, compute_s=2 * HOUR_S, **NOTHING)], participants=1)
    owned = {"regions": {"x": FLAT}, "embodied": {"hours": "owned", "devices": devices}}
    assert emitted(two, owned, 5 * HOUR_S).whole["embodied"] == Amount(pytest.approx(1000), 2, 2)


def test_what_is_unknown_is_not_zero():
    """The rest is shown, and what it covers: an energy of one client or of both, a network, hardware."""
    flat = {"regions": {"x": FLAT}}
    one = emitted(worked(1, clients=2, compute_w=[600, math.nan]), flat).whole
    assert one["devices"] == Amount(pytest.approx(100), 1, 2)
    assert (one["total"].amount, one["total"].known, one["total"].clients) == (pytest.approx(100), 1, 2)
    none = emitted(worked(1, clients=2, idle_w=math.nan), flat).whole
    assert (none["devices"].amount, none["network"].amount, none["total"].amount) == (None, 0, None)
    unknown = {**flat, "network": {"status": "unknown", "source": "test"}}
    found = emitted(_one(down_bytes=1000, down_s=1.0), {**unknown, "embodied": "busy"}, category="fpga").whole
    assert found["network"] == found["embodied"] == Amount(None, 0, 1)
    assert emitted(worked(1), unknown).whole["network"] == Amount(0, 1, 1)


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


def test_a_target_at_the_end_took_the_whole_run():
    """Also what ends in that very moment: uploads, waiting, and a radio's tail, which outlasts the run."""
    columns = {"up_s": [HOUR_S, 2 * HOUR_S], "up_bytes": 10**9, "tail_w": 300, "tail_s": 2 * HOUR_S}
    two = plan([prices("train", 2, compute_s=HOUR_S, idle_w=100, **columns)])
    carbon = {"regions": {"x": FLAT}, "server": {"power": "1 kW", "pue": 1}, "network": "1 kWh/GB"}
    found = emitted(two, carbon, 3 * HOUR_S, {"global": 3 * HOUR_S})
    assert found.to_target["global"] == found.whole
    assert found.whole["waiting"].amount == pytest.approx(0.1 * 1 * 100)
    silent = replace(two, prices=(reasked(two.prices[0], tail_w=np.zeros(2)),))
    without = emitted(silent, carbon, 3 * HOUR_S).whole
    assert found.whole["devices"].amount - without["devices"].amount == pytest.approx(0.3 * 1 * 100)


class Seconds:
    """A grid whose intensity grows by 3.6e6 g/kWh, 1 g/J, every second, from 0."""

    def mean(self, region, start_s, end_s):
        """As ``Intensities``."""
        return (start_s + end_s) / 2 * J_PER_KWH + 0 * region


TAIL_W = 4
# A job has 1 s of download, 8 s of work and 1 s of upload; each transfer has a tail of 10 s.
TAILED = plan([prices("train", 1, down_s=1, compute_s=8, up_s=1, tail_w=TAIL_W, tail_s=10)])


def tailed(jobs, end_s):
    """The rows of jobs and of settled tails; a job is dispatched and given up, None for once it arrived."""
    rows, tails = [], []
    world = World(TAILED, lambda _: None, rows.append, settled=tails.append)
    for start_s, until_s in jobs:
        world.env.run(until=start_s)
        given = world.dispatch("train", 0)
        over_s = start_s + 10 if until_s is None else until_s
        if over_s > start_s:
            world.env.run(until=over_s)
        world.env.run(world.discard(given, Kind.LATE if until_s is None else Kind.LOST))
    world.env.run(until=end_s)
    world.close()
    return np.concatenate(rows), np.concatenate(tails)


ONE = (1, None)


@pytest.mark.parametrize(
    ("jobs", "end_s", "drawn"),
    [
        # The upload ends at 11 s, and its tail at 21 s; or at the run's end.
        ([ONE], 30, [(2, 10), (11, 21)]),
        ([ONE], 14, [(2, 10), (11, 14)]),
        # The next download ends it after 3 s; or it has run out by then.
        ([ONE, (14, None)], 24.5, [(2, 10), (11, 14), (15, 23), (24, 24.5)]),
        ([ONE, (40, None)], 50.5, [(2, 10), (11, 21), (41, 49), (50, 50.5)]),
        # Broken off half-way through the download: the tail lasts from then until the next one, 1.5 s later.
        ([(1, 1.5), (3, None)], 13.5, [(1.5, 3), (4, 12), (13, 13.5)]),
        # Between work and upload: since the end of the download, 8 s before, and 1 s more.
        ([(1, 10), (11, None)], 21.5, [(2, 11), (12, 20), (21, 21.5)]),
        # Given up at once: the second job transfers nothing; the third, or the end, ends the first's tail.
        ([ONE, (12, 12), (13, None)], 23.5, [(2, 10), (11, 13), (14, 22), (23, 23.5)]),
        ([ONE, (12, 12)], 13, [(2, 10), (11, 13)]),
    ],
)
def test_a_tail_emits_when_it_is_drawn(jobs, end_s, drawn):
    """After the transfer that it follows, whichever job is charged with it, and until it is over."""
    times = [0.0, *(until_s for _, until_s in drawn), math.inf]
    with reading(TAILED, {"regions": {"x": FLAT}}, told=tailed(jobs, end_s)) as reader:
        run, region = Run(reader), np.zeros(1, dtype=np.int64)
        vars(run)["corners"] = [run.repriced_at([one.demand for one in TAILED.prices])]
        flat = Carbon.model_validate({"regions": {"x": FLAT}})
        found = Emitted(run, flat, Seconds(), region, end_s)
    for t_s in times:
        over = [(since_s, until_s) for since_s, until_s in drawn if until_s <= t_s]
        expected = sum(TAIL_W * (until_s - since_s) * (since_s + until_s) / 2 for since_s, until_s in over)
        assert found.devices_g(t_s) == [pytest.approx([expected])] * 2


def test_means_are_those_of_small_steps():
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


def test_clients_are_dealt_by_shares():
    """A client's region depends on the seed and its number alone, on no slowdown; no share is too large."""
    record = Carbon.model_validate({"regions": {"DE": 1, "FR": 3, "NO": 0}})
    places = regions_of(record, 40_000, root=5)
    assert np.bincount(places, minlength=3) / 40_000 == pytest.approx([0.25, 0.75, 0], abs=0.01)
    assert (regions_of(record, 10, root=5) == places[:10]).all()
    assert (regions_of(record, 40_000, root=6) != places).any()
    slow = uniforms(derive(5, "slowdown"), np.arange(40_000), count=1)[0]
    assert np.corrcoef(places, slow)[0, 1] == pytest.approx(0, abs=0.02)
    huge = Carbon.model_validate({"regions": {"DE": 1e308, "FR": 1e308}})
    assert set(regions_of(huge, 100, root=5)) == {0, 1}
