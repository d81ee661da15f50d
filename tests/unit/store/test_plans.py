"""A plan in the store: what is read back is what was written, and tables by client are views by kind."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from plans import plan, prices
from ruamel.yaml import YAML

from edgefl.core.clients import NAMED
from edgefl.core.cost import Trace, Work
from edgefl.core.plan import COLUMNS, Refusal
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan as planned
from edgefl.protocol import write_tree
from edgefl.runs import drafts
from edgefl.store import Store, read, read_plan

# Some cannot train, the energy of others is unknown, and two models share a name.
SCENARIO = {
    "task": {"dataset": "digits", "clients": 200, "samples": {"name": "uniform", "low": 10, "high": 40}},
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
    """A plan, and the folder of its store."""
    found = planned(drafts(SCENARIO)[0], DataAccess(need="embedded"))
    folder = tmp_path_factory.mktemp("plans") / "run"
    store = Store.create(folder, write_tree)
    store.set_meta({"name": "many", "assumed": list(found.plan.assumed)})
    store.write_plan(found.plan, found.resolved, found.learning.federation.test_samples)
    store.close("done")
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
        for key in COLUMNS:
            np.testing.assert_array_equal(getattr(after, key), getattr(before, key), strict=True)
        for corner, again in zip(before.corners, after.corners, strict=True):
            for key in COLUMNS:
                np.testing.assert_array_equal(getattr(again, key), getattr(corner, key), strict=True)
    assert any(np.isnan(table.compute_w).any() for table in one.prices)
    assert 0 < len(one.refusals) < 200
    assert back.refusals == one.refusals
    assert (back.fleet, back.assumed) == (one.fleet, one.assumed)


def test_tables_by_client_have_every_client(written):
    """The views join a client with its kind, in the order of clients."""
    one, folder = written
    with read(folder) as reader:
        clients, refusals = reader.rows("clients"), reader.rows("refusals")
        kinds, prices_ = reader.rows("kinds"), reader.rows("prices")
    assert [row["client"] for row in clients] == list(range(200))
    for key in NAMED:
        assert [row[key] for row in clients] == _names(one.clients, key)
    assert [row["samples"] for row in clients] == one.clients.samples.tolist()
    assert [(row["client"], row["device"], row["exchange"]) for row in refusals] == [
        (each.client, each.device, each.exchange) for each in one.refusals
    ]
    assert len(prices_) == len(kinds) * len(one.prices) < 200 * len(one.prices)


def test_a_client_of_a_kind_is_refused_as_its_kind_is(tmp_path):
    """A plan made by hand, two clients of one kind: both refusals come back."""
    table = replace(prices("train", 2, work_s=[1.0, math.nan]), traces=(_TRACE,))
    hand = plan([table])
    clients = replace(
        hand.clients,
        **{key: np.zeros(3, dtype=np.int64) for key in NAMED},
        samples=np.array([1, 2, 2]),
        kind=np.array([0, 1, 1]),
        slowdown=np.ones(3),
        admitted=np.array([True, False, False]),
        cell=np.array([-1, 0, 0]),
        user=np.arange(3),
        cells=("home",),
    )
    refusals = tuple(Refusal(client, "board", "train", 2, None, {"weights": 2}, "no") for client in (1, 2))
    hand = replace(hand, clients=clients, refusals=refusals)
    store = Store.create(tmp_path / "run", write_tree)
    store.write_plan(hand, {}, [0, 0, 0])
    store.close("done")
    with read(tmp_path / "run") as reader:
        assert [row["client"] for row in reader.rows("refusals")] == [1, 2]
        assert [row["reason"] for row in reader.rows("refused_kinds")] == ["no"]
        assert [row["work_s"] for row in reader.rows("prices")] == [1.0, None]


_TRACE = Trace("train", {"body": 5}, {}, Work(), (), Work(), {}, 0)


_SHARED = [1, 2.5]
ODD = [
    "two\nlines: of text",
    "scenario:\n  seed: 1\nfleet: {}",
    "\n\ndevices:\n",
    "a long line " * 20,
    "word: " * 40,
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
    store = Store.create(tmp_path / "run", write_tree)
    store.write_plan(one, resolved, [0] * len(one.clients))
    store.close("done")
    for _ in range(2):
        with read(tmp_path / "run") as reader:
            found = reader.resolved()
            assert found == YAML(typ="safe", pure=True).load(reader.plan_text()) == resolved
            found["scenario"].clear()
