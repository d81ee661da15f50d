"""Laws of traces that a run's directory keeps: its work can be priced again, and comes to the very same."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixed import MIXED
from plans import kernel

from edgefl.core.cost import OP_CLASSES, PhaseTrace, Trace, Traced, Work, as_text, of_text
from edgefl.core.errors import UserError
from edgefl.planning.fleets import recorded_devices
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.planning.repricing import Repricer
from edgefl.runs.group import drafts
from edgefl.store.plans import read_plan
from edgefl.store.reader import read
from edgefl.store.writer import Store

SIZES = st.integers(0, 10**15)
kernels = st.builds(kernel, st.sampled_from(OP_CLASSES), SIZES, SIZES, st.text(max_size=5))
works = st.builds(Work.of, st.lists(kernels, max_size=5))
parts = st.dictionaries(st.text(max_size=5), SIZES, max_size=3)
counts = st.dictionaries(st.integers(1, 99), st.integers(1, 99), max_size=3)
steps_of = st.lists(counts.map(Counter), max_size=3).map(tuple)
by_size = st.dictionaries(st.integers(1, 99), works, max_size=3)
phases = st.builds(PhaseTrace, st.text(max_size=5), by_size, by_size)
peaks = st.dictionaries(st.lists(st.integers(0, 99), max_size=3).map(tuple), parts, max_size=3)
traces = st.builds(
    Trace,
    st.text(max_size=5),
    parts,
    parts,
    works,
    st.lists(phases, max_size=2).map(tuple),
    works,
    peaks,
)
PARAMS = [{**MIXED, "method": "fedclassavg"}, MIXED]


@pytest.mark.nightly
@given(st.lists(traces, max_size=3).map(tuple), st.lists(steps_of, max_size=4).map(tuple))
def test_traces_are_read_back(found, steps):
    """Every kernel in its order, every batch size, part and peak."""
    back = of_text(Traced, as_text(Traced(found, steps)))
    assert back == (found, steps)
    for one, two in zip(found, back.traces, strict=True):
        assert [list(phase.steps) for phase in one.phases] == [list(phase.steps) for phase in two.phases]
        assert list(one.start) == list(two.start)


@pytest.fixture(scope="module", params=PARAMS, ids=["fedclassavg", "spherefed"])
def kept(request, tmp_path_factory):
    """A plan, and the folder that it was written to."""
    found = plan(drafts(request.param)[0], DataAccess(need="embedded"))
    folder = tmp_path_factory.mktemp("kept") / "run"
    with Store.planned(folder) as store:
        store.set_meta({"name": "kept", "assumed": []})
        store.write_plan(found.plan, found.resolved, found.learning.federation.test_samples)
    return found.plan, folder


def test_pricing_again_gives_the_very_same_prices(kept):
    """On the devices and links of the run's directory, to the last bit, at the corners too."""
    one, folder = kept
    with read(folder) as reader:
        found, devices = read_plan(reader), recorded_devices(reader)
    again = Repricer(found).prices(devices, found.fleet.links)
    for before, after in zip(one.prices, again, strict=True):
        assert (before.corners is None) == (after.corners is None)
        both = zip((before.demand, *before.corners), (after.demand, *after.corners), strict=True)
        for first, second in both:
            for column, again in zip(first, second, strict=True):
                np.testing.assert_array_equal(column, again, strict=True)


def test_a_damaged_trace_is_a_message(kept):
    """Whatever stands in its place."""
    _, folder = kept
    with pytest.raises(ValueError, match="no trace"):
        of_text(Traced, "not a trace")
    with read(folder) as reader:
        query = reader.query
        reader.query = lambda sql, *values: [{"content": "x"}] if "traces" in sql else query(sql, *values)
        with pytest.raises(UserError, match=r"the trace of \w+ is damaged"):
            read_plan(reader)
