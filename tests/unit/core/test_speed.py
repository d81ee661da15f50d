"""Changing speeds: the law of co-running load, and products; laws and oracles have jobs on them."""

import numpy as np
import pytest
from plans import plan, prices

from edgefl.core.speed.load import Params as Load
from edgefl.core.speed.thermal import Params as Thermal
from edgefl.world.pace import FleetCurve

HAND = {"onset": "100 s", "fall": "40 s", "floor": 0.6, "steps": 2, "recovery": "70 s"}


def people(count, *curves):
    columns = {"device": [nth % len(curves) for nth in range(count)], "batteries": (None,) * len(curves)}
    return plan([prices("train", count)], throttling=curves, **columns).clients


def test_load_takes_its_share_of_the_time():
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
