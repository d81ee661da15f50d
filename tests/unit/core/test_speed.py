"""Changing speeds: throttling worked by hand, the law of co-running load, and products of both."""

from __future__ import annotations

import numpy as np
import pytest
from plans import plan, prices, sourced

from edgefl.core.devices import Throttling
from edgefl.core.speed import FleetCurve
from edgefl.core.speed.load import Params as Load
from edgefl.core.speed.thermal import Params as Thermal

HAND = {"onset": "100 s", "fall": "40 s", "floor": 0.6, "steps": 2, "recovery": "70 s"}


def people(count, *curves):
    """That many clients, on devices with these throttling curves, in turn."""
    columns = {"device": [nth % len(curves) for nth in range(count)], "batteries": (None,) * len(curves)}
    return plan([prices("train", count)], throttling=curves, **columns).clients


def throttling(after, over, to, recovery):
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
            assert 0 < factor <= 1
            done_s = t_s + left / factor
            after_s = min(done_s, until_s)
            state = self.curve.after(self.client, state, t_s, after_s, working=True)
            if done_s <= until_s:
                self.heat, self.since_s = state, after_s
                return after_s
            assert after_s > t_s
            left, t_s = left - (after_s - t_s) * factor, after_s


def test_throttling_by_hand():
    """Full speed for 100 s, 0.9 and 0.7 for 20 s each, then 0.6; half of the recovery halves the heat."""
    one = Worker(Thermal.model_validate(HAND).curve(people(1, None), 0))
    assert one.state(10) == 0
    assert one.worked(0, 100 + 18 + 14 + 6) == pytest.approx(150)
    # Heat 140 s; after 35 s of rest it is 70 s: 30 s at full speed remain.
    assert one.worked(185, 30 + 9) == pytest.approx(185 + 30 + 10)
    # Heat 110 s; rest for 10 s takes 20 s of it.
    assert one.worked(235, 10 + 1) == pytest.approx(245 + 1 / 0.9)
    assert one.state(1e4) == 0


def test_each_device_throttles_by_its_own_curve():
    """A board that does not throttle, one after 10 s to 0.5 over 20 s, one after 20 s to 0.4 over 10 s.

    70 s at full speed take 70 s; 10 + 20 x 0.75 = 25 in 30 s and 45 / 0.5 = 90; 20 + 10 x 0.7 = 27 in 30 s
    and 43 / 0.4 = 107.5. After 15 s of rest the one that recovers in 15 s is cold again; the other one has
    half its heat, 15 s: its steps are of 2 s, the first of them with 1 s left at 0.875 and the next at 0.825.
    """
    clients = people(3, None, throttling(10, 20, 0.5, 30), throttling(20, 10, 0.4, 15))
    curve = Thermal(steps=10).curve(clients, 0)
    workers = [Worker(curve, client) for client in range(3)]
    assert [worker.worked(0, 70) for worker in workers] == pytest.approx([70, 120, 137.5])
    heat = [worker.state(end + 15) for worker, end in zip(workers, (70, 120, 137.5), strict=True)]
    assert heat == pytest.approx([0, 15, 0])
    again = [worker.worked(end + 15, 1) for worker, end in zip(workers, (70, 120, 137.5), strict=True)]
    assert again == pytest.approx([85 + 1, 135 + 1 + 0.125 / 0.825, 152.5 + 1])


def test_what_a_fleet_gives_replaces_the_devices_numbers():
    """A floor of 0.25 for all: onset, fall and recovery stay the device's; a device without gets defaults."""
    law, clients = Thermal(floor=0.25), people(2, None, throttling(10, 20, 0.5, 30))
    assert law.heating(clients) == [(180, 60, 0.25, 240, 1), (10, 20, 0.25, 30, 1)]
    assert law.assumptions(clients) == ()
    assert Thermal().assumptions(clients) == ("thermal: no throttling known of board",)


@pytest.mark.parametrize(("steps", "begin"), [(1, 0.0), (100, 0.0), (1000, 1e8)])
def test_a_fall_in_steps_has_the_integral_of_a_line(steps, begin):
    """Whatever the number of steps; also at times of years, where seconds are rounded."""
    curve = Thermal(onset="180 s", steps=steps).curve(people(1, None), 0)
    lasted = Worker(curve).worked(begin, 180 + 60 * 0.85 + 70) - begin
    assert lasted == pytest.approx(340, abs=1e-3)


def test_load_takes_its_share_of_the_time():
    """A share of clients is slowed down at any time, for the mean length."""
    count, t_s = 25_000, 123456.7
    law = Load.model_validate({"share": 0.3, "length": "2 min", "factor": 0.4})
    curve = law.curve(people(count, None), 1)
    factor, until, _ = np.array([curve.at(client, t_s, 0.0) for client in range(count)]).T
    assert set(factor.tolist()) == {0.4, 1.0}
    assert (factor == 0.4).mean() == pytest.approx(0.3, abs=0.012)
    assert (until - t_s)[factor == 0.4].mean() == pytest.approx(120, rel=0.06)
    assert (until - t_s)[factor == 1].mean() == pytest.approx(280, rel=0.06)


def test_speeds_are_multiplied():
    """Each factor is its own curve's; the factor holds until the first of them changes."""
    laws = (Thermal.model_validate(HAND), Load(share=0.5), Load(share=0.5))
    both = FleetCurve(laws, people(1000, None), 7)
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
