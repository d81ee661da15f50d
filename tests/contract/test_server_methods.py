"""SCAFFOLD, FedNova, FedOpt, FedDyn and FedCurv: what they cost, and with what they combine."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import NETS, STEPS, Federation, build_method, build_net, learned, same_trees
from nightly import sampled
from small import SKEWED, SMALL
from torch import Tensor

import edgefl
from edgefl.compute import meta
from edgefl.core.cost import Trace
from edgefl.core.errors import UserError
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.scenario import LocalTraining
from edgefl.protocol import BUFFERS, Net, nbytes, weighted_mean
from edgefl.runs.results import RunResult

pytestmark = pytest.mark.usefixtures("as_engines_work")

PLAIN = LocalTraining(batch_size=6, optimizer=Sgd(lr=0.1))


@pytest.fixture(scope="module")
def normed() -> Net:
    name, shape, settings = NETS["batch norm"]
    return build_net(name, shape, 10, **settings)


def traced(name: str, net: Net, **settings: Any) -> Trace:
    method = build_method(name, net, PLAIN, **settings)
    exchange = next(one for one in method.exchanges if one.name == "train")
    return meta.trace(method, exchange, net, [[STEPS] * len(exchange.work.phases)])


def in_models(net: Net, name: str, **settings: Any) -> tuple[float, float, float]:
    """Bytes down and up, and kept copies, each in the bytes of the trained weights."""
    whole = nbytes({part: net.on_meta()[part] for part in net.trained})
    found = traced(name, net, **settings)
    (peak,) = found.peaks.values()
    sizes = (sum(found.down.values()), sum(found.up.values()), peak.get("kept copies", 0))
    return tuple(size / whole for size in sizes)  # type: ignore[return-value]


@sampled(
    4,
    ("name", "settings", "down", "up", "copies"),
    [
        # The received weights, c - c_k and c_k.
        ("scaffold", {}, 2, 2, 3),
        ("scaffold", {"corrected": False}, 1, 1, 0),
        ("fednova", {}, 1, 1, 0),
        ("fednova", {"mu": 0.1}, 1, 1, 1),
        ("fedopt", {}, 1, 1, 0),
        # The received weights and h_k.
        ("feddyn", {}, 1, 1, 2),
        # U - u_k, V - v_k and the sum of squares.
        ("fedcurv", {}, 3, 3, 3),
        ("fedcurv", {"penalty": 0.0}, 1, 1, 0),
    ],
)
def test_traffic_and_memory(
    mlp: Net, name: str, settings: dict[str, Any], down: float, up: float, copies: float
):
    """In models: what travels, and what a client keeps beside its weights."""
    found = in_models(mlp, name, **settings)
    # FedCurv sends a byte more.
    assert found == pytest.approx((down, up, copies), abs=1e-3)


@sampled(
    2,
    ("name", "base", "why"),
    [
        ("fednova", "local", "needs a base that averages .* local averages none"),
        ("scaffold", "fedrep", "needs a base that trains in one phase .* fedrep has"),
        ("scaffold", {"name": "flexchill", "base": "feddyn"}, "cannot be combined with feddyn: "),
        ("feddyn", "fedopt", "cannot be combined with fedopt: "),
        ("feddyn", "feddyn", "cannot be combined with itself"),
    ],
)
def test_what_does_not_go_together_is_refused(mlp: Net, name: str, base: Any, why: str):
    with pytest.raises(UserError, match=f"{name} {why}"):
        Federation(build_method(name, mlp, base=base), mlp)


def test_a_personal_head_is_trained_but_not_corrected(mlp: Net):
    """SCAFFOLD on FedPer sends control variates of the body alone."""
    method = build_method("scaffold", mlp, PLAIN, base={"name": "fedper"})
    federation = Federation(method, mlp).through()
    assert federation.server["scaffold"]["control"].keys() == {"body"}


@sampled(2, "name", ["scaffold", "fednova", "fedopt", "feddyn", "fedcurv"])
def test_buffers_are_averaged(normed: Net, name: str):
    """Running statistics are the mean of those sent, while weights are not, if clients' steps differ."""
    settings = {"server_lr": 0.5} if name == "scaffold" else {}
    federation = Federation(build_method(name, normed, PLAIN, **settings), normed)
    (exchange,) = federation.method.exchanges
    arrivals = [
        replace(each, ctx=replace(each.ctx, steps=1 + place))
        for place, each in enumerate(federation.arrivals(exchange))
    ]
    merged = exchange.merge(federation.server, arrivals)
    equal = name in {"scaffold", "feddyn"}
    weights = [1.0 if equal else each.weight for each in arrivals]
    expected = weighted_mean(
        [{part: each.upload[part] for part in (BUFFERS, "head")} for each in arrivals], weights
    )
    assert same_trees(merged[BUFFERS], expected[BUFFERS])
    assert merged[BUFFERS]
    assert same_trees(merged["head"], expected["head"]) == (name == "fedcurv")


SCENARIO = {**SMALL, "task": {**SKEWED, "clients": 4}, "server": {"rounds": 1}}


@pytest.mark.nightly
def test_steps_that_only_measure_are_no_steps_of_training(tmp_path):
    """SCAFFOLD's and FedNova's K are the same however long FedCurv measures beside them."""
    base = {"name": "fednova", "base": {"name": "scaffold"}}
    short, long = (
        learned(
            edgefl.run(
                {**SCENARIO, "method": {"name": "fedcurv", "samples": samples, "base": base}},
                out=tmp_path / str(samples),
            ).runs[0]
        )
        for samples in (1, 100)
    )
    assert short.keys() == long.keys()
    assert any("scaffold" in key for key in short)
    for key, leaf in short.items():
        assert "fedcurv" in key or torch.equal(leaf, long[key]), key
    assert any(not torch.equal(leaf, long[key]) for key, leaf in short.items())


def overselected(
    out: Path, name: str, rounds: int, engine: str = "loop"
) -> tuple[RunResult, dict[str, Tensor]]:
    """A run over FedPer in which two of four clients are too late, and what it has learned."""
    server = {"policy": {"name": "overselect", "factor": 2.0}, "participants": 2, "rounds": rounds}
    task = {**SCENARIO["task"], "clients": 6}
    method = {"name": name, "base": "fedper"}
    given = {**SCENARIO, "task": task, "method": method, "server": server, "engine": engine}
    (run,) = edgefl.run(given, out=out).runs
    assert any(row["ending"] == "late" and row["worked_s"] for row in run.table("jobs"))
    return run, learned(run)


@sampled(1, "engine", ["loop", "vmapped"])
@pytest.mark.parametrize("name", ["scaffold", "feddyn"])
def test_the_servers_mean_is_the_clients_where_some_are_late(tmp_path, name: str, engine: str):
    """The server's c, or h, is the mean of all clients' as in the papers, although uploads are dropped."""
    _, found = overselected(tmp_path, name, 4, engine)
    means = {key.split("/", 2)[2]: leaf for key, leaf in found.items() if key.startswith("versions")}
    means = {key: leaf for key, leaf in means.items() if key.startswith(name)}
    assert any(leaf.any() for leaf in means.values())
    for key, mean in means.items():
        own = [leaf for place, leaf in found.items() if place.startswith("states") and place.endswith(key)]
        torch.testing.assert_close(mean, sum(own) / 6, rtol=1e-4, atol=1e-6)


def test_a_late_client_keeps_what_is_its_own(tmp_path):
    """Its personal head is the one that it trained, while its control variate stays at 0."""
    run, found = overselected(tmp_path, "scaffold", 1)
    late = [row["job"] for row in run.table("jobs") if row["ending"] == "late" and row["worked_s"]]
    one, other = (f"states/{job:08}.safetensors" for job in late)
    assert not torch.equal(found[f"{one}/head/weight"], found[f"{other}/head/weight"])
    assert not found[f"{one}/scaffold/control/body/fc1.weight"].any()
