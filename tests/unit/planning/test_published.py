"""Published savings beside ours: which runs are compared, what is subtracted, what is printed."""

from __future__ import annotations

import json

import pytest
from unfinished import UNPRICED

from edgefl.cli import main
from edgefl.planning.profile import profile
from edgefl.planning.published import claimed_savings
from edgefl.runs import drafts

SCENARIO = {
    "task": {"dataset": "digits", "clients": 4},
    "model": {"name": "mlp", "hidden": [32]},
    "method": "fedavg",
    "fleet": "home-lab",
    "server": {"rounds": 1},
    "published": [
        {"method": "spherefed", "latency": 0.136, "memory": 0.105, "source": "a paper", "why": "a reason"}
    ],
    "sweep": {
        "model": [{"name": "mlp", "hidden": [32]}, "mlp"],
        "method": ["fedavg", "spherefed", "fedprox"],
    },
}


def compared(**changes):
    """(the claimed_savings, the profiles)."""
    runs = drafts({**SCENARIO, **changes}, ())
    profiles = [profile(one) for one in runs]
    return claimed_savings(runs, profiles), profiles


def test_runs_that_differ_in_the_method_alone_are_compared():
    """Two models on the fleet's four devices: eight rows, each a share of what FedAvg takes."""
    (found,), profiles = compared()
    assert [(row.model, row.device) for row in found.ours] == [
        (model, row.device)
        for model in ("mlp hidden [32]", "mlp")
        for row in profiles[0].exchanges[0].devices
    ]
    fedavg, spherefed = profiles[0].exchanges[0], profiles[1].exchanges[1]
    assert (fedavg.exchange, spherefed.exchange) == ("train", "train")
    memory = sum(fedavg.peak.values())
    for row, now, before in zip(found.ours, spherefed.devices, fedavg.devices, strict=False):
        assert row.latency == 1 - now.price.compute_s / before.price.compute_s
        assert row.memory == 1 - sum(spherefed.peak.values()) / memory
        assert (row.against_s, row.against_bytes) == (before.price.compute_s, memory)
    assert (found.claim.latency, found.claim.memory, found.claim.against) == (0.136, 0.105, "fedavg")


def test_a_claim_without_its_runs_stands_alone():
    """Where the sweep has only one of the methods, nothing is compared."""
    (found,), _ = compared(sweep={"method": ["fedavg", "fedprox"]})
    assert found.ours == []


@pytest.mark.usefixtures("unfinished")
def test_a_device_that_cannot_be_priced_saves_an_unknown_time():
    """Its memory is compared all the same."""
    fleet = {"members": [{"device": UNPRICED, "link": "ethernet"}]}
    (found,), _ = compared(fleet=fleet, sweep={"method": ["fedavg", "spherefed"]})
    (row,) = found.ours
    assert (row.latency, row.against_s) == (None, None)
    assert isinstance(row.memory, float)


def test_claims_are_no_part_of_a_runs_identity():
    """A scenario resolves to the same settings with and without them."""
    with_claims, without = (drafts({**SCENARIO, "published": one}, ()) for one in (SCENARIO["published"], []))
    assert [one.scenario.resolved() for one in with_claims] == [one.scenario.resolved() for one in without]


SMALL = ("--set", "sweep.model=[spherefed_convnet]")


def test_spherefeds_figure_is_printed_beside_ours(capsys):
    """The shipped negative control shows both devices' savings, the paper's, and why they differ."""
    with pytest.raises(SystemExit) as caught:
        main(["profile", "papers/spherefed-fig5", *SMALL])
    assert caught.value.code == 0
    told = capsys.readouterr().out
    last = told[told.index("spherefed against fedavg") :]
    for text in ("vc707-systolic", "raspberry-pi-5", "up to 13.6%", "up to 10.5%", "Ours is less because"):
        assert text in last


def test_spherefeds_figure_as_json(capsys):
    """Ours is less than a tenth of the published latency, or none, and less than a fifth of the memory."""
    with pytest.raises(SystemExit):
        main(["profile", "papers/spherefed-fig5", "--json", *SMALL])
    (claim,) = json.loads(capsys.readouterr().out)["published"]
    assert [row["device"] for row in claim["ours"]] == ["vc707-systolic", "raspberry-pi-5"]
    assert all(-0.02 < row["latency"] < claim["latency"] / 10 for row in claim["ours"])
    assert all(0 < row["memory"] < claim["memory"] / 5 for row in claim["ours"])
