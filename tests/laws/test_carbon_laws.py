"""Laws of emissions: off they change nothing, and on they are linear, and the sum of their components."""

import math
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixed import MIXED
from recorded import dry

from edgefl.analysis.bills import J_PER_KWH
from edgefl.analysis.summary import summary
from edgefl.core.documents import document
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.runs.group import drafts

DAY = st.lists(st.integers(0, 1000), min_size=24, max_size=24)
START = st.floats(0, 23.999)
MADE = {key: {"made": "36 kg", "lifetime": "40000 h"} for key in ("sbc", "phone", "laptop")}


@cache
def access():
    """What plans share."""
    return DataAccess(need="embedded")


def planned(**fleet):
    """The mixed scenario, whose jobs last hours, with more keys of its fleet."""
    local = {**MIXED["local"], "epochs": 40_000}
    return plan(drafts({**MIXED, "local": local, "fleet": {**MIXED["fleet"], **fleet}})[0], access())


def clocked(found):
    """The summary and the events of a dry run."""
    with dry(found) as reader:
        return summary(reader), reader.rows("events")


def emitted(g_per_kwh, start=0.0, **carbon):
    """A dry run's summary with one region of such intensities."""
    regions = {"x": {"g_per_kwh": g_per_kwh, "source": "test"}}
    return clocked(planned(carbon={"regions": regions, "start": start, **carbon}))[0]


def test_off_is_as_if_there_were_no_such_key():
    """Also when written out: the same plan, the same identity, and nothing about carbon in the document."""
    without, off = planned(), planned(carbon=None)
    assert without.run_id == off.run_id
    assert "carbon" not in without.resolved["fleet"]
    found, _ = clocked(without)
    assert "carbon" not in document(found)


def test_on_it_changes_the_identity_and_nothing_else():
    """Who does what, when and at what cost stays, to the bit."""
    without, asked = planned(), planned(carbon={"regions": ["DE", "FR"], "embodied": "busy"})
    assert without.run_id != asked.run_id
    (plain, events), (found, same) = clocked(without), clocked(asked)
    assert same == events
    assert replace(found, costs=None, run_id=plain.run_id, assumed=plain.assumed) == plain
    assert found.costs is not None


def test_at_one_intensity_emissions_are_the_energy():
    """Of the clients whose energy is known, whatever the hours and the start."""
    found = emitted(250, start=7.3)
    devices = found.costs["carbon"].whole["devices"]
    assert devices.amount == pytest.approx(found.energy.joules / J_PER_KWH * 250, rel=1e-9)
    assert (devices.known, devices.clients) == (found.energy.energy_known, found.energy.energy_clients)
    assert 0 < devices.known < devices.clients


def test_bounds_are_those_of_the_energy():
    """At one intensity, of phones whose numbers are intervals."""
    fleet = {"fleet": {"like": "city-phones", "carbon": {"regions": {"x": {"g_per_kwh": 250}}}}}
    found, _ = clocked(plan(drafts({**MIXED, "method": "fedavg", **fleet})[0], access()))
    low, high = found.joules_between
    assert 0 < low < high
    per_j = 250 / J_PER_KWH
    assert found.costs["carbon"].whole["devices"].between == pytest.approx(
        (low * per_j, high * per_j), rel=1e-9
    )


@pytest.mark.nightly
@given(DAY, START, st.integers(1, 9), st.sampled_from([None, "busy", "owned"]))
@settings(max_examples=4)
def test_components_are_linear_and_all_there_is(hours, start, times, embodied):
    """So many times the intensity is so many times the emissions of all but hardware; the total is the sum.

    It lies between what the lowest and the highest intensity alone would give.
    """
    asked = {
        "server": {"power": "30 W", "pue": 1.4},
        "embodied": embodied and {"hours": embodied, "devices": MADE},
        "network": "mobile",
    }
    found = emitted(hours, start, **asked).costs["carbon"].whole
    more = emitted([hour * times for hour in hours], start, **asked).costs["carbon"].whole
    for name in ("devices", "network", "server"):
        assert more[name].amount == pytest.approx(times * found[name].amount, rel=1e-9)
    assert more.get("embodied") == found.get("embodied")
    parts = [found[name].amount for name in ("devices", "network", "server", "embodied") if name in found]
    assert found["total"].amount == math.fsum(parts)
    least, most = (emitted(end, **asked).costs["carbon"].whole for end in (min(hours), max(hours)))
    for name in ("devices", "network"):
        low, value, high = (each[name].amount for each in (least, found, most))
        assert low * (1 - 1e-9) <= value <= high * (1 + 1e-9)
