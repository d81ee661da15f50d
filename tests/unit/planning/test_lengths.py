"""``local.epochs`` and ``local.steps`` with ``fit``: what fits, what it costs, what is refused."""

import numpy as np
import pytest
from nightly import sampled
from small import SKEWED

import edgefl
from edgefl.core.errors import ScenarioError
from edgefl.core.price import COLUMNS
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.runs.group import drafts
from edgefl.runs.task_builder import Facts, rebuilt
from edgefl.store.plans import read_plan
from edgefl.store.reader import read

SCENARIO = {
    "task": {**SKEWED, "clients": 24},
    "model": {"name": "mlp", "hidden": [512]},
    "method": "fedavg",
    # Refuses the microcontroller.
    "fleet": {
        "like": "city-phones",
        "members": [
            {"device": "raspberry-pi-4b", "share": 2, "link": "wifi-pi4"},
            {"device": "phone-mid", "share": 3, "link": "4g"},
            {"device": "stm32f746", "share": 1, "link": "4g"},
        ],
        "slowdown": {"name": "lognormal", "sigma": 1.0},
    },
    "server": {"rounds": 2},
}


def planned(length, **changes):
    """The plan with a length of local training, by unit."""
    local = {"batch_size": 16, **length}
    (draft,) = drafts({**SCENARIO, "local": local, **changes})
    return plan(draft, DataAccess(need="embedded"))


def column(found, name: str, exchange: str = "train"):
    """A column of the prices, by client."""
    return getattr(found.plan.price(exchange).demand, name)[found.plan.clients.kind]


def seconds(found, exchange: str = "train"):
    """Each client's predicted seconds: download, work and upload, without jitter."""
    down, up, work, *transfers = (
        column(found, name, exchange)
        for name in ("down_delay_s", "up_delay_s", "work_s", "down_bytes", "down_bps", "up_bytes", "up_bps")
    )
    down_bytes, down_bps, up_bytes, up_bps = transfers
    transfer = down + 8 * down_bytes / down_bps + up + 8 * up_bytes / up_bps
    return transfer + work * found.plan.clients.slowdown


@sampled(
    1,
    ("unit", "most", "least", "method"),
    [("epochs", 4, 2, "spherefed"), ("steps", 5, 2, "fedavg")],
)
def test_the_largest_length_that_fits(unit, most, least, method):
    """One more would take longer than the time; all prices are those of a plan of the client's own length."""
    plans = [planned({unit: length}, method=method) for length in range(1, most + 1)]
    admitted = plans[0].plan.clients.admitted
    times = np.array([seconds(one) for one in plans])
    time_s = float(np.median(times[:, admitted]))
    expected = np.clip((times <= time_s).sum(axis=0), least, most)
    assert len(set(expected[admitted].tolist())) > 2
    found = planned({unit: {"fit": f"{time_s} s", "most": most, "least": least}}, method=method)
    assert (found.plan.clients.admitted == admitted).all()
    assert not admitted.all()
    for prices in found.plan.prices:
        for name in COLUMNS:
            columns = [column(one, name, prices.exchange) for one in plans]
            own = [columns[length - 1][client] for client, length in enumerate(expected)]
            np.testing.assert_array_equal(
                column(found, name, prices.exchange)[admitted], np.array(own)[admitted], err_msg=name
            )


@pytest.mark.nightly
def test_a_run_does_what_fits(tmp_path):
    """Jobs have their clients' steps and FLOPs, and the plan read back is the one that was written."""
    local = {"epochs": {"fit": "300 ms", "most": 5}, "batch_size": 16}
    (one,) = edgefl.run({**SCENARIO, "local": local}, engine="loop", out=tmp_path).runs
    assert one.status == "done"
    found = planned(local)
    assert found.resolved["scenario"]["local"]["epochs"] == {"fit": 0.3, "most": 5, "least": 1}
    learning = found.learning
    again = rebuilt(learning.spec.resolved(), Facts.of(found.plan), learning.federation)
    assert again.learning.spec == learning.spec
    with read(one.folder) as reader:
        again = read_plan(reader)
        flops = {row["client"]: row["flops"] for row in reader.rows("jobs", "job")}
    prices = again.price("train")
    kind = again.clients.kind
    assert len(set(prices.demand.steps[kind] / np.ceil(again.clients.samples / 16))) > 2
    assert all(count == prices.demand.flops[kind[client]] for client, count in flops.items())
    for column, planned_ in zip(prices.demand, found.plan.price("train").demand, strict=True):
        np.testing.assert_array_equal(column, planned_)


@pytest.mark.parametrize(
    ("local", "where", "what"),
    [
        ({"epochs": {"fit": 30, "most": 2}}, "local.epochs.fit", "30 is no time"),
        ({"steps": {"fit": "3 s", "most": 2, "least": 3}}, "local.steps", "'least' is 3, and 'most' only 2"),
        ({"epochs": {"fit": "3 s", "most": 2}, "steps": 3}, "local", "either epochs or steps"),
    ],
)
def test_mistakes_are_named(local, where, what):
    with pytest.raises(ScenarioError) as caught:
        drafts({**SCENARIO, "local": local})
    assert what in caught.value.what
    assert where in caught.value.where


def test_other_phases_before_are_done_in_full():
    """An epoch of FedRep's heads, and then the epochs that fit beside it."""
    method = {"name": "fedrep", "head_epochs": 1}
    alone = planned({"epochs": 1}, method=method)
    admitted, times = alone.plan.clients.admitted, seconds(alone)
    time_s = float(np.median(times[admitted]))
    found = planned({"epochs": {"fit": f"{time_s} s", "most": 50}}, method=method)
    epochs = column(found, "steps") / (column(alone, "steps") / 2) - 1
    assert (epochs == np.floor(epochs)).all()
    assert len(set(epochs[admitted].tolist())) > 2
    assert (epochs[admitted & (times >= time_s)] == 1).all()
    assert (seconds(found)[admitted & (times < time_s)] <= time_s * (1 + 1e-6)).all()
