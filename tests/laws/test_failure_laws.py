"""Laws of failures, of changing speed and of batteries."""

import math

import numpy as np
import pytest
from fleets import AVAILABILITY, fleets, only, valid
from hypothesis import given
from hypothesis import strategies as st
from plans import plan, prices, told

from edgefl.core import catalogue
from edgefl.core.availability.charging import Charging
from edgefl.core.event import ENDINGS, JOULES, Kind
from edgefl.core.fleet import Failures
from edgefl.core.samplers.lognormal import Params as LogNormal
from edgefl.world.pace import FleetCurve

LOST = ENDINGS.index(Kind.LOST)
CLIENTS = 2000
SIZE = 1_000_000


def rows_of(clients=CLIENTS, **options):
    """One synchronous round, by job: 1 s down, 4 s of work, a payload of 1 MB up in 2 s."""
    table = prices("train", clients, down_s=1, compute_s=4, up_bps=4e6, up_bytes=SIZE, flops=10**6, steps=10)
    rows = told(plan([table], jitter=LogNormal(sigma=0.3), **options))[2]
    return rows[np.argsort(rows["job"])]


@pytest.mark.parametrize(("corrupt", "retries"), [(0.2, 0), (0.7, 5)])
def test_corrupted_uploads_are_sent_again(corrupt, retries):
    """A geometric number of times, each at its bytes and seconds; after the retries the job is lost."""
    rows, intact = rows_of(failures=Failures(corrupt=corrupt, retries=retries)), rows_of()
    sends, left = np.divmod(rows["up_bytes"], SIZE)
    assert not left.any()
    np.testing.assert_allclose(rows["transmit_s"], 2 * sends)
    lost = rows["ending"] == LOST
    assert (sends >= 1).all()
    assert (sends <= retries + 1).all()
    assert (sends[lost] == retries + 1).all()
    np.testing.assert_allclose(rows["ended_s"][lost], rows["worked_s"][lost] + 2 * sends[lost])
    np.testing.assert_allclose(rows["arrived_s"][~lost], rows["worked_s"][~lost] + 2 * sends[~lost])
    np.testing.assert_array_equal(rows["worked_s"], intact["worked_s"])
    for send in range(1, retries + 1):
        share(rows["up_bytes"] > send * SIZE, corrupt**send)
    share(lost, corrupt ** (retries + 1))


def share(which, chance):
    """A share of clients is within four standard deviations of its chance."""
    assert abs(which.mean() - chance) <= 4 * math.sqrt(chance * (1 - chance) / len(which))


def test_a_timeout_loses_who_would_come_later():
    """At the moment of it, wherever they are; for the others nothing changes."""
    rows, patient = rows_of(failures=valid(Failures, timeout=7.0)), rows_of()
    slow = patient["arrived_s"] > 7
    assert 0.2 < slow.mean() < 0.8
    assert (rows["ending"][slow] == LOST).all()
    assert (rows["ended_s"][slow] == 7).all()
    for name in ("arrived_s", "ending", "up_bytes", "flops"):
        np.testing.assert_array_equal(rows[name][~slow], patient[name][~slow])
    working = slow & (patient["worked_s"] > 7)
    assert (rows["up_bytes"][working] == 0).all()
    part = (7 - patient["received_s"][working]) / patient["work_s"][working]
    np.testing.assert_allclose(rows["flops"][working], 10**6 * part, atol=1)
    sending = slow & ~working
    np.testing.assert_allclose(
        rows["up_bytes"][sending], SIZE * (7 - patient["worked_s"][sending]) / 2, atol=1
    )


def test_a_crash_loses_a_share_of_jobs_at_work():
    """Uniformly over their work; for the others nothing changes."""
    rows, safe = rows_of(failures=Failures(crash=0.3)), rows_of()
    lost = rows["ending"] == LOST
    share(lost, 0.3)
    done = (rows["ended_s"] - safe["received_s"])[lost] / safe["work_s"][lost]
    share(done < 0.25, 0.25)
    share(done < 0.75, 0.75)
    assert ((done >= 0) & (done <= 1)).all()
    np.testing.assert_array_equal(rows["arrived_s"][~lost], safe["arrived_s"][~lost])


def test_crashes_an_hour_lose_long_jobs():
    """A job of t seconds is lost with the chance 1 - exp(-rate t)."""
    rows, safe = rows_of(failures=Failures(crash_per_hour=300.0)), rows_of()
    chance = 1 - np.exp(-safe["arrived_s"] * 300 / 3600)
    lost = rows["ending"] == LOST
    deviation = math.sqrt((chance * (1 - chance)).sum())
    assert abs(lost.sum() - chance.sum()) <= 4 * deviation
    assert (rows["ended_s"][lost] < safe["arrived_s"][lost]).all()


def test_draws_of_one_failure_do_not_move_those_of_another():
    """Jobs that crash are the same, whether or not uploads are corrupted."""
    crash = rows_of(failures=Failures(crash=0.3))["ending"] == LOST
    both = rows_of(failures=Failures(crash=0.3, corrupt=0.5, retries=9))["ending"] == LOST
    assert both[crash].all()


THERMAL = st.fixed_dictionaries(
    {
        "onset": st.floats(0, 10),
        "fall": st.floats(1, 10),
        "floor": st.floats(0.2, 1),
        "steps": st.just(1000),
        "recovery": st.floats(2, 50),
    }
)


@given(THERMAL, st.floats(1, 40), st.floats(0, 20), st.integers(1, 3))
def test_throttled_work_is_the_integral_of_the_speed(params, work_s, rest_s, rounds):
    """Heat, followed in small steps: a second a second at work, to 0 in ``recovery`` at rest."""
    speed = (valid(catalogue.load("speed", "thermal").Params, **params),)
    table = prices("train", 1, down_s=rest_s / 2, compute_s=work_s, up_s=rest_s / 2)
    rows = told(plan([table], rounds=rounds, speed=speed))[2]
    onset, fall, floor = params["onset"], params["fall"], params["floor"]
    heat, step = 0.0, work_s / 2000
    for row in rows:
        done, time_s = 0.0, 0.0
        heat = max(0.0, heat - (onset + fall) / params["recovery"] * (rest_s if row["round"] else 0))
        while done < work_s:
            middle = min(heat + step / 2, onset + fall)
            done += step * (1 - (1 - floor) * max(0.0, middle - onset) / fall)
            heat, time_s = min(heat + step, onset + fall), time_s + step
        assert math.isclose(row["work_s"], time_s, rel_tol=5e-3)


@given(THERMAL, st.sampled_from(["lose", "pause", "finish"]))
def test_heat_takes_time_and_no_energy_above_idle(params, on_leave):
    """Power falls with the speed: work takes its energy at full speed, as far as it came, and idles longer.

    Other programs take speed alone: the same work takes the more energy the longer it lasts.
    """
    # Fewer steps: no integral is taken here.
    thermal = valid(catalogue.load("speed", "thermal").Params, **{**params, "steps": 20})
    load = valid(catalogue.load("speed", "load").Params, share=0.5, length=5.0)
    markov = valid(catalogue.load("availability", "markov").Params, on=30.0, off=10.0)
    table = prices("train", 3, compute_s=[10.0, 20.0, 40.0], compute_w=3.0, idle_w=2.0, flops=10**9)

    def rows_of(*speed):
        plan_ = plan([table], rounds=2, speed=speed, availability=markov, on_leave=on_leave)
        return told(plan_)[2]

    for row in rows_of(thermal):
        done_s = [10, 20, 40][row["client"]] * row["flops"] / 10**9
        assert math.isclose(row["work_j"], 3 * done_s, rel_tol=1e-6, abs_tol=1e-6)
        assert math.isclose(row["work_idle_j"], 2 * row["work_s"])
        assert row["full_power_s"] <= row["work_s"] * (1 + 1e-9)
    for row in rows_of(load):
        assert math.isclose(row["work_j"], 3 * row["work_s"])


@pytest.mark.nightly
@given(st.floats(0.1, 0.9), st.floats(5, 20), st.floats(0.2, 1), st.sampled_from(["pause", "finish"]))
def test_loaded_work_is_the_integral_of_the_speed(share_, length, factor, on_leave):
    """Over the time for which the client is there, where it pauses."""
    speed = valid(catalogue.load("speed", "load").Params, share=share_, length=length, factor=factor)
    markov = valid(catalogue.load("availability", "markov").Params, on=30.0, off=10.0)
    table = prices("train", 3, down_s=1.0, compute_s=[10.0, 20.0, 40.0], up_s=1.0)
    plan_ = plan([table], speed=(speed, speed), availability=markov, on_leave=on_leave)
    timetable = markov.timetable(plan_.clients, 0)
    curve = FleetCurve((speed, speed), plan_.clients, 0)
    for row in told(plan_)[2]:
        edges = np.linspace(row["received_s"], row["worked_s"], 2_001)
        middles = (edges[1:] + edges[:-1]) / 2
        who = np.full(len(middles), row["client"])
        client = int(row["client"])
        pace = np.array([curve.at(client, middle, curve.idle).factor for middle in middles.tolist()])
        there = timetable.at(who, middles).available if on_leave == "pause" else np.ones(len(who), dtype=bool)
        step = edges[1] - edges[0]
        assert math.isclose((pace * there).sum() * step, [10, 20, 40][row["client"]], abs_tol=6 * step)
        assert math.isclose(there.sum() * step, row["work_s"], rel_tol=5e-3)


@given(fleets(availability=only(AVAILABILITY, "charging")))
def test_batteries_fall_by_what_jobs_used(plan_):
    """Each job once, when it ends: all but what the device draws when it is idle."""
    used, spend = np.zeros(len(plan_.clients)), Charging.spend

    def watched(self, clients, t_s, joules):
        full_j = np.nan_to_num(self._full_j[clients])
        before = self.level(clients, t_s) * full_j
        spend(self, clients, t_s, joules)
        fallen = before - self.level(clients, t_s) * full_j
        np.testing.assert_allclose(fallen, np.minimum(np.nan_to_num(joules), before), atol=1e-9)
        level = self.level(clients, t_s)
        assert ((level >= 0) & (level <= 1)).all()
        assert len(np.unique(clients)) == len(clients)
        np.add.at(used, clients, np.nan_to_num(joules))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Charging, "spend", watched)
        rows = told(plan_)[2]
    joules = sum(rows[name] for name in JOULES if not name.endswith("idle_j"))
    expected = np.bincount(rows["client"], weights=np.nan_to_num(joules), minlength=len(plan_.clients))
    np.testing.assert_allclose(used, expected, rtol=1e-9, atol=1e-9)
