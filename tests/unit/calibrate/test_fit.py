"""The fit recovers the device behind simulated timings, in the roofline's own terms."""

import random
from itertools import chain

import pytest
from plans import device, sourced

from edgefl.calibrate import suites
from edgefl.calibrate.fit import TimedWork, fit
from edgefl.calibrate.workloads import FIT
from edgefl.core.devices.roofline import Roofline
from edgefl.core.yamls import RESOLVED

BANDWIDTH = 12e9
PEAK = 60e9
TRUE = {
    "dense": 0.7,
    "depthwise": 0.08,
    "elementwise": 0.4,
    "half_side": 9.0,
    "launch_s": 7e-6,
    "backward_s": 90e-6,
}


def roofline(*, half_side, launch_s, backward_s, peak=PEAK, **numbers):
    """A device with these numbers."""
    board = device(peak=peak, launch=launch_s, backward=backward_s, **{"bandwidth": BANDWIDTH, **numbers})
    given = {**board.model_dump(mode="json"), "half_side": sourced(half_side)}
    return Roofline.model_validate(given, context=RESOLVED)


@pytest.fixture(scope="module")
def works():
    """The kernels of all workloads that the fit may use."""
    return [
        one.computation.work(one.batch)
        for one in chain(suites.kernels(), suites.overheads(), *suites.steps())
        if one.use == FIT
    ]


def timings(works, noise=0.0):
    """Their times on the device, by the roofline's own clock."""
    clock, draw = roofline(**TRUE).clock("made up", "fp32"), random.Random(1)  # noqa: S311
    return [TimedWork(one, clock.time(one).seconds * (1 + draw.uniform(0, noise))) for one in works]


def check(found, within):
    """Every fitted number is the device's."""
    assert found.dense == pytest.approx(PEAK * TRUE["dense"], rel=within)
    assert found.depthwise == pytest.approx(PEAK * TRUE["depthwise"], rel=within)
    for name in ("elementwise", "half_side", "launch_s", "backward_s"):
        assert getattr(found, name) == pytest.approx(TRUE[name], rel=within)


def test_exact_timings_give_the_exact_numbers(works):
    """From the roofline's own times the fit gets the roofline's numbers, with no spread."""
    found = fit(timings(works), BANDWIDTH)
    check(found, 1e-3)
    assert found.spread < 1e-3
    assert found.workloads == len(works)


def test_noise_and_one_outlier_change_the_numbers_little(works):
    """Times up to a tenth too long, or one kernel a hundred times too slow: by no more than a third."""
    check(fit(timings(works, noise=0.1), BANDWIDTH), 0.33)
    given = timings(works)
    place = next(nth for nth, one in enumerate(suites.kernels()) if one.name.startswith("conv 3x3 64"))
    given[place] = TimedWork(given[place].work, given[place].seconds * 100)
    check(fit(given, BANDWIDTH), 0.33)


def test_what_the_fit_cannot_know_or_may_not_exceed(works):
    """Work without backward passes gives no overhead of one; a bound below the true rate is reached."""
    forward = [one for one in timings(works) if not one.work.backwards]
    assert fit(forward, BANDWIDTH).backward_s == 0
    assert fit(timings(works), BANDWIDTH, most_dense=20e9).dense == pytest.approx(20e9, rel=1e-3)


def test_one_network_of_inference_is_held_out(tmp_path):
    names = [one.name for one in suites.inferences(tmp_path) if one.use == suites.HELD_OUT]
    assert names == [f"{suites.INFERENCE}spherefed-convnet, batch {batch}" for batch in (1, 8)]
