"""A plan in the store: what is read back is what was written, and tables by client are views by kind."""

import math

import numpy as np
import pytest
import yaml

import edgefl
from edgefl.core.clients import NAMED
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan as planned
from edgefl.runs import describing
from edgefl.runs.group import drafts
from edgefl.store.plans import read_plan
from edgefl.store.reader import read
from edgefl.store.writer import Store

# Some cannot train, the energy of others is unknown, and two models share a name.
SCENARIO = {
    "task": {"dataset": "digits", "clients": 60, "samples": {"name": "uniform", "low": 10, "high": 40}},
    "model": [{"name": "mlp", "hidden": [20]}, {"name": "mlp", "hidden": [40, 20]}],
    "method": "fedclassavg",
    "fleet": {
        "members": [
            {"device": "coral-edge-tpu", "link": "ethernet"},
            {"device": "phone-mid", "link": "4g"},
            {"device": "jetson-tx2", "link": "wifi-pi5", "dtype": "fp16"},
        ],
        "slowdown": {"name": "lognormal", "sigma": 0.3},
        "jitter": {"name": "lognormal", "sigma": 0.1},
    },
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    found = planned(drafts(SCENARIO)[0], DataAccess(need="embedded"))
    folder = tmp_path_factory.mktemp("plans") / "run"
    with Store.planned(folder) as store:
        store.set_meta({"name": "many", "assumed": list(found.plan.assumed)})
        store.write_plan(found.plan, found.resolved, found.learning.federation.test_samples)
    return found.plan, folder


def _names(clients, key):
    return np.array(getattr(clients, f"{key}s"))[getattr(clients, key)].tolist()


def test_a_plan_is_read_back_whole(written):
    """Every client's names and numbers, every price, every refusal; unknown numbers stay unknown."""
    one, folder = written
    with read(folder) as reader:
        back = read_plan(reader)
    for key in NAMED:
        assert _names(back.clients, key) == _names(one.clients, key)
    for key in ("batteries", "throttling"):
        before, after = (
            dict(zip(plan_.clients.devices, getattr(plan_.clients, key), strict=True))
            for plan_ in (one, back)
        )
        assert before == after
        assert before["jetson-tx2"] is None
    for key in ("samples", "kind", "slowdown", "admitted"):
        assert getattr(back.clients, key).dtype == getattr(one.clients, key).dtype
        assert getattr(back.clients, key).tolist() == getattr(one.clients, key).tolist()
    for before, after in zip(one.prices, back.prices, strict=True):
        for key in ("exchange", "at", "every", "everyone", "stateful"):
            assert getattr(after, key) == getattr(before, key)
        both = zip((before.demand, *before.corners), (after.demand, *after.corners), strict=True)
        for first, second in both:
            for column, again in zip(first, second, strict=True):
                np.testing.assert_array_equal(again, column, strict=True)
    assert any(np.isnan(table.demand.compute_w).any() for table in one.prices)
    assert 0 < len(one.refusals) < 60
    assert back.refusals == one.refusals
    assert (back.fleet, back.assumed) == (one.fleet, one.assumed)
    # The views join a client with its kind, in the order of clients.
    with read(folder) as reader:
        clients, refusals = reader.rows("clients"), reader.rows("refusals")
    assert [row["client"] for row in clients] == list(range(60))
    for key in (*NAMED, "samples"):
        told = one.clients.samples.tolist() if key == "samples" else _names(one.clients, key)
        assert [row[key] for row in clients] == told
    assert [row["client"] for row in refusals] == np.flatnonzero(~one.clients.admitted).tolist()


_SHARED = [1, 2.5]
ODD = [
    "scenario:\n  seed: 1\nfleet: {}",
    "\n\ndevices:\n",
    "a long line: " * 20,
    "# no comment",
    "- 'quotes' and \"more\" & *none",
    "",
    " \tblanks ",
    {"nested: key": {"\nfleet:": None, "x": [[], {}, True, 1e300, math.inf, -0.0, "1", "null"]}},
    [_SHARED, _SHARED],
]


@pytest.mark.parametrize("odd", ODD)
def test_a_plan_is_read_by_its_parts_as_it_is_as_a_whole(tmp_path, written, odd):
    """Whatever its texts look like, and whatever its parts have in common; and each time anew."""
    one, _ = written
    resolved = {"scenario": {"notes": odd, "seed": 1}, "fleet": {"notes": odd}, "devices": {"a board": odd}}
    with Store.planned(tmp_path / "run") as store:
        store.write_plan(one, resolved, [0] * len(one.clients))
    for _ in range(2):
        with read(tmp_path / "run") as reader:
            found = reader.document.data
            assert found == resolved
            assert yaml.safe_load((tmp_path / "run" / "plan.yaml").read_text("utf-8")) == resolved
            found["scenario"].clear()


def test_counts_of_classes_are_kept_unless_they_are_many(tmp_path, monkeypatch):
    """20 clients and 10 classes are 200 counts."""
    few = {"sweep": None, "server.rounds": 1}
    for most, why in (
        (200, ""),
        (199, "200 counts of clients and classes are more than the 199 that are kept"),
    ):
        monkeypatch.setattr(describing, "MOST_COUNTS", most)
        (run,) = edgefl.run("quickstart", overrides=few, engine="null", out=tmp_path / str(most)).runs
        with read(run.folder) as reader:
            assert reader.meta["class_counts"] == why
        assert bool(run.table("class_counts")) == (not why)
