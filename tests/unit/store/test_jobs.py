"""Jobs in the store: events as a view of them, scalars, runs that are opened again, plans read back."""

from __future__ import annotations

import math

import pytest
from history import history
from hypothesis import given, settings
from hypothesis import strategies as st
from mixed import MIXED
from plans import plan, prices, told, told_all
from toys import TOYS, toy

import edgefl
from edgefl.protocol import write_tree
from edgefl.store import Store, read, read_plan

MERGE = {"exchange": "train", "round": 0, "t_s": 4.0, "jobs": 2, "host_s": 0.5}


@pytest.fixture
def store(tmp_path):
    return Store.create(tmp_path / "run", write_tree)


@pytest.fixture(autouse=True, scope="module")
def own_policies():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDGEFL_PATH", str(TOYS))
        yield


@given(
    given_settings=st.fixed_dictionaries(
        {
            "lost": st.floats(0, 0.9),
            "late": st.floats(0, 0.9),
            "seed": st.integers(0, 99),
            "clients": st.integers(1, 5),
        }
    )
)
@settings(max_examples=12)
def test_events_are_a_view_of_jobs(tmp_path_factory, given_settings):
    """Whatever became of the jobs, the world's events are read back, in order and to the bit."""
    plan_ = toy(**given_settings, radio_w=math.nan)
    server, _, jobs, tails = told_all(plan_)
    events, _ = history(plan_, server, [jobs], tails)
    store = Store.create(tmp_path_factory.mktemp("view") / "run", write_tree)
    store.add_events(server)
    store.add_jobs(jobs, ["train"])
    store.add_tails(tails)
    store.close("done")
    with read(store.folder) as reader:
        rows = [tuple(row.values()) for row in reader.rows("events")]
    assert rows == [
        (*event[:2], str(event.kind), *event[3:8], *event.cost[:4], event.cost.joules, *event.cost[5:])
        for event in events
    ]


def test_scalars_of_jobs_are_kept(store):
    _, _, jobs = told(plan([prices("train", 2, compute_s=[1, 2])]))
    store.add_jobs(jobs, ["train"])
    store.add_scalars({0: {"loss": 0.5}})
    store.close("done")
    with read(store.folder) as reader:
        assert [row["scalars"] for row in reader.rows("jobs")] == ['{"loss": 0.5}', None]


def test_what_is_read_is_of_one_commit(store):
    store.add("merges", {**MERGE, "version": 1})
    store.commit()
    with read(store.folder) as reader:
        store.add("merges", {**MERGE, "version": 2})
        store.commit()
        assert len(reader.rows("merges")) == 1
    with read(store.folder) as reader:
        assert len(reader.rows("merges")) == 2


def test_a_run_is_opened_again(store):
    store.add("merges", {**MERGE, "version": 1})
    store.close("interrupted", reason="KeyboardInterrupt")
    noted = store.folder / "SHA256SUMS"
    assert noted.exists()
    again = Store.open(store.folder, write_tree)
    again.rewind(None)
    assert not noted.exists()
    again.add("merges", {**MERGE, "version": 2})
    again.commit()
    with read(store.folder) as reader:
        assert (reader.meta["status"], "reason" in reader.meta) == ("running", False)
    again.close("done")
    with read(store.folder) as reader:
        assert [row["version"] for row in reader.rows("merges")] == [2]
        assert reader.meta["status"] == "done"


def test_a_plan_is_read_back(tmp_path):
    """The world runs it to the very events of the run: jitter, slowdown, refusals, codecs and all."""
    result = edgefl.run(MIXED, engine="null", offline=True, out=tmp_path / "run")
    with read(tmp_path / "run") as reader:
        plan_, stored = read_plan(reader), reader.rows("events")
        assert plan_.scenario.name == "mixed"
        assert plan_.refusals
    server, _, jobs, tails = told_all(plan_)
    events, _ = history(plan_, server, [jobs], tails)
    assert [event.t_s for event in events] == [row["t_s"] for row in stored]
    for event, row in zip(events, stored, strict=True):
        assert (event.kind, event.client) == (row["kind"], row["client"])
        # From Python 3.12 on, a sum of three is rounded once.
        ours, theirs = event.cost.joules, row["joules"]
        assert ours == theirs or math.isclose(ours, theirs, rel_tol=1e-15)
    assert len(events) == len(result.runs[0].table("events")) > 100
