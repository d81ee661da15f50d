"""Changing speeds: throttling worked by hand, the law of co-running load, and products of both."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import plan, prices, sourced

from edgefl.core.devices import Throttling
from edgefl.core.speed import FleetCurve
from edgefl.core.speed.load import Params as Load
from edgefl.core.speed.thermal import Params as Thermal

MANY = 25_000
HAND = Thermal.model_validate(
    {"onset": "100 s", "fall": "40 s", "floor": 0.6, "steps": 2, "recovery": "70 s"}
)


def people(count, **columns):
    """That many clients."""
    return plan([prices("train", count)], **columns).clients


def throttling(after, over, to, recovery):
    """A device's curve."""
    numbers = {"after": f"{after} s", "over": f"{over} s", "to": to, "recovery": f"{recovery} s"}
    return Throttling.model_validate({name: sourced(value) for name, value in numbers.items()})


class Worker:
    """One client, on one curve: cold at first, and at rest between its jobs."""

    def __init__(self, curve, client=0):
        self.curve, self.client, self.heat, self.since_s = curve, client, 0.0, 0.0

    def state(self, t_s):
        """Its state at a time."""
        return self.curve.after(self.client, self.heat, self.since_s, t_s, working=False)

    def worked(self, t_s, seconds):
        """When it has done work of so many seconds at full speed that begins at a time."""
        state, left = self.state(t_s), seconds
        while True:
            factor, until_s, _ = self.curve.at(self.client, t_s, state)
            done_s = t_s + left / factor
            after_s = min(done_s, until_s)
            state = self.curve.after(self.client, state, t_s, after_s, working=True)
            if done_s <= until_s:
                self.heat, self.since_s = state, after_s
                return after_s
            assert after_s > t_s
            left, t_s = left - (after_s - t_s) * factor, after_s


def worked(curve, t_s, seconds, client=0):
    """As of a new worker."""
    return Worker(curve, client).worked(t_s, seconds)


def test_throttling_by_hand():
    """Full speed for 100 s, 0.9 and 0.7 for 20 s each, then 0.6; half of the recovery halves the heat."""
    curve = HAND.curve(people(1), 0)
    assert worked(curve, 0, 100) == pytest.approx(100)
    one = Worker(curve)
    assert one.worked(0, 100 + 18 + 14 + 6) == pytest.approx(150)
    # Heat 140 s; after 35 s of rest it is 70 s: 30 s at full speed remain.
    assert one.worked(185, 30 + 9) == pytest.approx(185 + 30 + 10)
    # Heat 110 s; rest for 10 s takes 20 s of it.
    assert one.worked(235, 10 + 1) == pytest.approx(245 + 1 / 0.9)


def test_each_device_throttles_by_its_own_curve():
    """A board that does not throttle, one after 10 s to 0.5 over 20 s, one after 20 s to 0.4 over 10 s.

    70 s at full speed take 70 s; 10 + 20 x 0.75 = 25 in 30 s and 45 / 0.5 = 90; 20 + 10 x 0.7 = 27 in 30 s
    and 43 / 0.4 = 107.5. After 15 s of rest the one that recovers in 15 s is cold again; the other one has
    half its heat, 15 s: its steps are of 2 s, the first of them with 1 s left at 0.875 and the next at 0.825.
    """
    curves = (None, throttling(10, 20, 0.5, 30), throttling(20, 10, 0.4, 15))
    clients = people(6, device=[2, 1, 0, 0, 1, 2], batteries=(None,) * 3, throttling=curves)
    curve = Thermal(steps=10).curve(clients, 0)
    workers = [Worker(curve, client) for client in range(6)]
    lasted = [worker.worked(0, 70) for worker in workers]
    assert lasted == pytest.approx([137.5, 120, 70, 70, 120, 137.5])
    heat = [worker.state(t_s) for worker, t_s in zip(workers, (152.5, 135, 85), strict=False)]
    assert heat == pytest.approx([0, 15, 0])
    again = [worker.worked(end + 15, 1) for worker, end in zip(workers, (137.5, 120, 70), strict=False)]
    assert again == pytest.approx([152.5 + 1, 135 + 1 + 0.125 / 0.825, 85 + 1])


def test_what_a_fleet_gives_replaces_the_devices_numbers():
    """A floor of 0.25 for all: onset, fall and recovery stay the device's; a device without gets defaults."""
    curves = (None, throttling(10, 20, 0.5, 30))
    law = Thermal(floor=0.25)
    clients = people(2, device=[0, 1], batteries=(None,) * 2, throttling=curves)
    assert law.heating(clients) == [(180, 60, 0.25, 240, 1), (10, 20, 0.25, 30, 1)]
    assert law.assumptions(clients) == ()
    assert Thermal().assumptions(clients) == ("thermal: no throttling known of board",)


def test_a_fall_in_steps_has_the_integral_of_a_line():
    """Whatever the number of steps, onset and fall are passed with the same work."""
    for steps in (1, 3, 100):
        law = Thermal(onset="180 s", steps=steps)
        assert worked(law.curve(people(1), 0), 0, 180 + 60 * 0.85) == pytest.approx(240)
        assert worked(law.curve(people(1), 0), 0, 180 + 60 * 0.85 + 70) == pytest.approx(340)


def test_a_cold_client_stays_cold_at_rest():
    """Rest before the first job changes nothing, nor does more rest than the recovery takes."""
    one = Worker(HAND.curve(people(1), 0))
    assert (one.state(0.0), one.state(1e6)) == (0, 0)
    one.worked(0, 500)
    assert one.state(1e4) == 0
    assert one.state(600) >= 0


@given(st.lists(st.tuples(st.floats(0, 500), st.floats(0.1, 500)), max_size=5), st.integers(1, 9))
@settings(deadline=None)
def test_throttled_work_is_between_full_speed_and_the_floor(jobs, steps):
    """A job takes at least its work and at most its work at the floor; the factor never leaves [floor, 1]."""
    law = Thermal(onset="180 s", steps=steps)
    one, t_s = Worker(law.curve(people(1), 0)), 0.0
    for rest, seconds in jobs:
        begin = t_s + rest
        t_s = one.worked(begin, seconds)
        assert seconds - 1e-6 <= t_s - begin <= seconds / 0.7 + 1e-6
        assert 0.7 <= one.curve.at(0, t_s, one.state(t_s)).factor <= 1


@pytest.mark.parametrize("t_s", [0.0, 123456.7])
def test_load_takes_its_share_of_the_time(t_s):
    """A share of clients is slowed down at any time, for the mean length."""
    law = Load.model_validate({"share": 0.3, "length": "2 min", "factor": 0.4})
    curve = law.curve(people(MANY), 1)
    factor, until, _ = np.array([curve.at(client, t_s, 0.0) for client in range(MANY)]).T
    assert set(factor.tolist()) == {0.4, 1.0}
    assert (factor == 0.4).mean() == pytest.approx(0.3, abs=0.012)
    assert (until - t_s)[factor == 0.4].mean() == pytest.approx(120, rel=0.06)
    assert (until - t_s)[factor == 1].mean() == pytest.approx(280, rel=0.06)


def test_load_slows_work_by_its_mean():
    """Long work takes work / (1 - share (1 - factor))."""
    law = Load.model_validate({"share": 0.5, "length": "60 s", "factor": 0.5})
    assert worked(law.curve(people(1), 3), 0, 200_000) == pytest.approx(200_000 / 0.75, rel=0.03)


def test_speeds_are_multiplied():
    """Each factor is its own curve's; the factor holds until the first of them changes."""
    laws = (HAND, Load(share=0.5), Load(share=0.5))
    both = FleetCurve(laws, people(1000), 7)
    assert (len(both), both.idle) == (3, (0, 0, 0))
    hot = both.after(0, both.idle, 50.0, 160.0, working=True)
    assert hot == (110, 0, 0)
    factor, until, power = np.array([both.at(client, 160.0, hot) for client in range(1000)]).T
    assert set(np.round(factor, 12)) == {0.9, 0.45, 0.225}
    assert until.max() <= 50 + 120 + 1e-9
    # Heat takes its share of the power too, other programs do not.
    assert set(np.round(power, 12)) == {0.9}
    assert (until > 160).all()
    # Two equal entries have draws of their own: a quarter of clients has neither load.
    assert (factor > 0.8).mean() == pytest.approx(0.25, abs=0.05)


@pytest.mark.parametrize(
    "settings_", [{"floor": 0}, {"floor": 1.1}, {"steps": 0}, {"fall": "0 s"}, {"onset": "-1 s"}]
)
def test_bad_throttling_is_refused(settings_):
    """A client keeps some speed, and falls in at least one step."""
    with pytest.raises(ValueError, match=next(iter(settings_))):
        Thermal.model_validate(settings_)


def test_throttling_ends_late_in_a_long_run():
    """Also at times of years, where seconds are rounded, work goes on from step to step."""
    begin = 1e8
    lasted = worked(Thermal(onset="180 s", steps=1000).curve(people(1), 0), begin, 300) - begin
    assert lasted == pytest.approx(240 + (300 - 231) / 0.7, abs=1e-3)
