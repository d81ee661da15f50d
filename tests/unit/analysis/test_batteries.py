"""What jobs take from batteries, reckoned by hand."""

import math
from dataclasses import replace

import pytest
from compared import dry
from plans import plan, prices, told

from edgefl.analysis.run import Run
from edgefl.analysis.sums import BatteryUse, usage
from edgefl.core.cost import Trace, Work
from edgefl.store.writer import Store

PHONES = "fleet={members: [{device: pixel-6, link: 4g}]}"
NOTHING = Trace("", {}, {}, Work(), (), Work(), {})


def of_plan(plan_, names, virtual_s, **meta):
    """What a plan's jobs took from batteries of 1 kJ, and the rows of its jobs."""
    rows, store = told(plan_)[2], Store.in_memory()
    store.set_meta(meta)
    store.write_plan(plan_, {}, [0] * len(plan_.clients))
    store.add_jobs(rows, names)
    run = Run(store.reader())
    found = usage(run, virtual_s).batteries
    store.abandon()
    return found, rows


def used(virtual_s, **columns):
    """Two clients with 1 kJ train for 10 s, every second round they share for 2 s, at 5 W above idle."""
    draw = {"compute_w": 5.0, "idle_w": 1.0, **columns}
    tables = [prices("train", 4, compute_s=10.0, **draw), prices("share", 4, compute_s=2.0, every=2, **draw)]
    devices = {"batteries": (None,) * 3, "throttling": (None,) * 3}
    priced = [replace(table, traces=(NOTHING,)) for table in tables]
    plan_ = plan(priced, rounds=2, device=[0, 1, 2, 0], **devices)
    return of_plan(plan_, ["train", "share"], virtual_s, batteries={"board": 1000.0})[0]


def test_shares_of_a_battery_by_hand():
    """Each client trains twice for 60 J and shares once for 12 J in 22 s: 264 J of 2 kJ; of a round, 66 J."""
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


def test_a_battery_gives_all_of_its_clients_energy():
    """Also the tail of the last upload, which no job is charged with; a round's bounds are the energy's."""
    found = dry("server={participants: 3, rounds: 3}", PHONES)
    (use,) = found.batteries.values()
    assert found.joules_by_phase["tail"] > 0
    assert use.joules == pytest.approx(found.energy.joules)
    jobs_j = found.jobs * 17.76 * 3600
    assert use.per_round * jobs_j == pytest.approx(found.energy.joules)
    assert [end * jobs_j for end in use.per_round_between] == pytest.approx(list(found.joules_between))
