"""SCAFFOLD, FedNova, FedOpt, FedDyn and FedCurv: what they cost, and with what they combine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import NETS, STEPS, Federation, build_method, build_net, learned, same_trees
from torch import Tensor

import edgefl
from edgefl.compute import meta
from edgefl.compute.threads import one_thread
from edgefl.core.cost import ELEMENTWISE, PhaseTrace, Trace
from edgefl.core.errors import UserError
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.training import LocalTraining
from edgefl.protocol import BUFFERS, Net, leaves, nbytes, weighted_mean
from edgefl.runs import RunResult

PLAIN = LocalTraining(batch_size=6, optimizer=Sgd(lr=0.1))
METHODS = ("scaffold", "fednova", "fedopt", "feddyn", "fedcurv")


@pytest.fixture(autouse=True)
def _same_bits() -> Iterator[None]:
    """One thread, as engines work."""
    with one_thread():
        yield


@pytest.fixture(scope="module")
def mlp() -> Net:
    """The smallest net."""
    name, shape, settings = NETS["mlp"]
    return build_net(name, shape, 10, **settings)


@pytest.fixture(scope="module")
def normed() -> Net:
    """A net with batch norm."""
    name, shape, settings = NETS["batch norm"]
    return build_net(name, shape, 10, **settings)


def traced(name: str, net: Net, **settings: Any) -> Trace:
    """The cost of a method's training with plain SGD."""
    method = build_method(name, net, PLAIN, **settings)
    exchange = next(one for one in method.exchanges if one.name == "train")
    return meta.trace(method, exchange, net, [[STEPS] * len(exchange.work.phases)])


def in_models(net: Net, name: str, **settings: Any) -> tuple[float, float, float, float]:
    """Bytes down and up, kept copies and state, each in the bytes of the trained weights."""
    whole = nbytes({part: net.on_meta()[part] for part in net.trained})
    found = traced(name, net, **settings)
    (peak,) = found.peaks.values()
    sizes = (sum(found.down.values()), sum(found.up.values()), peak.get("kept copies", 0), found.resident)
    return tuple(size / whole for size in sizes)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("name", "settings", "down", "up", "copies", "state"),
    [
        # The received weights, c - c_k and c_k.
        ("scaffold", {}, 2, 2, 3, 1),
        ("scaffold", {"corrected": False}, 1, 1, 0, 0),
        ("fednova", {}, 1, 1, 0, 0),
        ("fednova", {"mu": 0.1}, 1, 1, 1, 0),
        ("fedopt", {}, 1, 1, 0, 0),
        # The received weights and h_k.
        ("feddyn", {}, 1, 1, 2, 1),
        # U - u_k, V - v_k and the sum of squares.
        ("fedcurv", {}, 3, 3, 3, 2),
        ("fedcurv", {"penalty": 0.0}, 1, 1, 0, 0),
    ],
)
def test_traffic_and_memory(
    mlp: Net, name: str, settings: dict[str, Any], down: float, up: float, copies: float, state: float
):
    """In models: what travels, what a client keeps beside its weights, and what it keeps between rounds."""
    found = in_models(mlp, name, **settings)
    # FedCurv sends a byte more.
    assert found == pytest.approx((down, up, copies, state), abs=1e-3)


def products(phase: PhaseTrace, size: int = 6) -> int:
    """The FLOPs of a step's matrix products."""
    return sum(kernel.flops * count for kernel, count in phase.steps[size] if kernel.kind != ELEMENTWISE)


@pytest.mark.parametrize("name", METHODS)
def test_a_base_that_averages_nothing_is_refused(mlp: Net, name: str):
    """Without a merge of trained weights there is nothing to correct: refused, naming both."""
    with pytest.raises(UserError, match=f"{name} needs a base that averages .* local averages none"):
        build_method(name, mlp, base={"name": "local"})


@pytest.mark.parametrize("name", ["scaffold", "fednova"])
def test_a_base_of_two_phases_is_refused(mlp: Net, name: str):
    """Where parts are trained one after the other, the steps of each are unknown: refused, naming both."""
    with pytest.raises(UserError, match=f"{name} needs a base that trains in one phase .* fedrep has"):
        build_method(name, mlp, base={"name": "fedrep"})


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("scaffold", "feddyn"),
        ("feddyn", "scaffold"),
        ("fednova", "feddyn"),
        ("fedopt", "feddyn"),
        ("feddyn", "fedopt"),
    ],
)
def test_what_does_not_go_together_is_refused(mlp: Net, name: str, base: str):
    """The two methods are named, also where a third is between them."""
    for between in ({"name": base}, {"name": "flexchill", "base": {"name": base}}):
        with pytest.raises(UserError, match=f"{name} cannot be combined with {base}: "):
            build_method(name, mlp, base=between)


@pytest.mark.parametrize("name", ["scaffold", "feddyn", "fedcurv"])
def test_a_method_on_itself_is_refused(mlp: Net, name: str):
    """Its parts would stand in each other's places."""
    with pytest.raises(UserError, match=f"{name} cannot be combined with itself"):
        Federation(build_method(name, mlp, base={"name": name}), mlp)


@pytest.mark.parametrize("base", ["fedper", "fedprox", "moon", "fedntd"])
@pytest.mark.parametrize("name", METHODS)
def test_they_stand_on_bases(mlp: Net, name: str, base: str):
    """Over a personal head, a pull, frozen passes: two rounds move what is shared, and stay finite."""
    federation = Federation(build_method(name, mlp, PLAIN, base={"name": base}), mlp)
    before = federation.server
    federation.through().through()
    assert not same_trees(before["body"], federation.server["body"])
    assert all(leaf.isfinite().all() for leaf in leaves(federation.server))


def test_a_personal_head_is_trained_but_not_corrected(mlp: Net):
    """SCAFFOLD on FedPer sends control variates of the body alone."""
    method = build_method("scaffold", mlp, PLAIN, base={"name": "fedper"})
    federation = Federation(method, mlp).through()
    assert federation.server["scaffold"]["control"].keys() == {"body"}


@pytest.mark.parametrize("name", METHODS)
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


SCENARIO = {
    "task": {"dataset": "digits", "clients": 4, "partition": {"name": "dirichlet", "alpha": 0.5}},
    "model": {"name": "mlp", "hidden": [6]},
    "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.05}},
    "fleet": "home-lab",
    "server": {"rounds": 1},
}


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


@pytest.mark.parametrize(("name", "part"), [("scaffold", "scaffold/control"), ("feddyn", "feddyn")])
def test_the_servers_part_is_the_mean_of_all_clients(tmp_path, name: str, part: str):
    """In a run, also of clients that never took part: their number is the task's."""
    server = {"rounds": 2, "participants": 2}
    found = learned(edgefl.run({**SCENARIO, "method": name, "server": server}, out=tmp_path).runs[0])
    key = f"{part}/head/weight"
    *_, version = sorted(path for path in found if path.startswith("versions/") and path.endswith(key))
    states = [leaf for path, leaf in found.items() if path.startswith("states/") and path.endswith(key)]
    assert 2 <= len(states) <= 4
    assert found[version].any()
    torch.testing.assert_close(found[version], torch.stack(states).sum(dim=0) / 4)


@pytest.mark.parametrize("name", ["feddyn", "fedcurv"])
def test_sums_over_a_rounds_clients_need_rounds(tmp_path, name: str):
    """A policy that merges stale uploads is refused, naming the method."""
    with pytest.raises(UserError, match=name):
        edgefl.run({**SCENARIO, "method": name, "server": {"policy": "fedbuff", "rounds": 1}}, out=tmp_path)


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


@pytest.mark.parametrize("engine", ["loop", "vmapped"])
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
