"""What every method keeps, whatever its file says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from builders import NETS, STEPS, Federation, arrival, build_method, build_net
from builders import same_trees as same
from nightly import couples, paired
from torch.utils._python_dispatch import TorchDispatchMode

from edgefl.compute import meta
from edgefl.compute.kernels import PRODUCTS, Roles
from edgefl.compute.threads import one_thread
from edgefl.core import catalogue
from edgefl.core.cost import ELEMENTWISE, FORWARD
from edgefl.core.errors import UserError
from edgefl.core.optimizers.adam import Params as Adam
from edgefl.core.optimizers.adamw import Params as AdamW
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.training import LocalTraining
from edgefl.protocol import (
    BUFFERS,
    Batch,
    Method,
    Net,
    Tree,
    bytes_by_part,
    flatten,
    leaves,
    nbytes,
    tree_map,
)
from edgefl.runs import run

NAMES = tuple(catalogue.entries("methods"))
CLASSES = 10
# Methods that take a client's move for a sum of its gradients.
SGD_ALONE = {"fednova", "scaffold"}


@pytest.fixture(autouse=True)
def _same_bits() -> Iterator[None]:
    """One thread, as engines work."""
    with one_thread():
        yield


@pytest.fixture(scope="module", params=couples(NAMES, NETS))
def case(request) -> tuple[Method, Net]:
    """Each method with its default parameters on small nets."""
    method, kind = request.param
    name, shape, settings = NETS[kind]
    net = build_net(name, shape, CLASSES, **settings)
    return build_method(method, net), net


@pytest.fixture(scope="module")
def method(case) -> Method:
    """The method."""
    return case[0]


@pytest.fixture(scope="module")
def net(case) -> Net:
    """Its net: fully connected, convolutional or with batch norm."""
    return case[1]


@pytest.fixture(scope="module")
def mlp() -> Net:
    """The smallest net."""
    name, shape, settings = NETS["mlp"]
    return build_net(name, shape, CLASSES, **settings)


def copied(tree: Tree) -> Tree:
    return None if tree is None else tree_map(torch.clone, tree)


def test_traced_bytes_are_the_real_ones(method: Method, net: Net):
    """Every exchange, traced without data, has the real payload's and upload's bytes, part by part."""
    federation = Federation(method, net)
    for exchange in method.exchanges:
        traced = meta.trace(method, exchange, net, [[STEPS] * len(exchange.work.phases)])
        payload, upload = federation.work(exchange, 0)
        assert dict(traced.down) == bytes_by_part(payload)
        assert dict(traced.up) == bytes_by_part(upload)
        if federation.states[0] is not None:
            assert traced.resident == nbytes(federation.states[0])
        federation.server = exchange.merge(federation.server, federation.arrivals(exchange))


@pytest.mark.parametrize("name", NAMES)
def test_a_model_without_a_body_is_priced_or_refused(name: str):
    """Softmax regression: what needs inner layers says so."""
    bare = build_net("mlp", (1, 4, 4), CLASSES, hidden=())
    try:
        method = build_method(name, bare)
    except UserError:
        return
    for exchange in method.exchanges:
        traced = meta.trace(method, exchange, bare, [[STEPS] * len(exchange.work.phases)])
        assert traced.exchange == exchange.name


def test_state_is_written_where_the_exchange_says_so(method: Method, net: Net):
    """A stateful exchange returns a state of the shapes that clients began with; others return None."""
    federation = Federation(method, net)
    shapes = {key: leaf.shape for key, leaf in flatten(federation.states[0] or {}).items()}
    for exchange in method.exchanges:
        fold, ctx = exchange.work, federation.ctx(0)
        carry = fold.start(exchange.down(federation.server, 0), federation.states[0], ctx)
        _, state = fold.finished(carry, ctx, federation.states[0])
        assert (state is not None) == exchange.stateful
        if state is not None:
            assert {key: leaf.shape for key, leaf in flatten(state).items()} == shapes


OPTIMIZERS = {
    "plain": Sgd(lr=0.1),
    "nesterov": Sgd(lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3, clip_norm=1.0),
    "adam": Adam(lr=0.1),
    "adamw": AdamW(lr=0.1),
}


@pytest.mark.parametrize(("name", "given"), paired(NAMES, OPTIMIZERS))
def test_every_step_costs_the_same(name: str, given: str, mlp: Net):
    """The traced kernels of a second step are those of the first: pricing one step prices them all.

    Methods that need plain SGD refuse the others.
    """
    optimizer = OPTIMIZERS[given]
    if name in SGD_ALONE and not isinstance(optimizer, Sgd):
        with pytest.raises(UserError, match=f"{name} cannot be combined with {optimizer.name}"):
            build_method(name, mlp, LocalTraining(optimizer=optimizer))
        return
    method = build_method(name, mlp, LocalTraining(optimizer=optimizer))
    for exchange in method.exchanges:
        with torch.device("meta"):
            federation = Federation(method, mlp)
            carry = exchange.work.start(
                exchange.down(federation.server, 0), federation.states[0], federation.ctx(0)
            )
            for phase in exchange.work.phases:
                first = meta.step_kernels(phase, carry, mlp.shape, 6)
                x = torch.empty(*((phase.views,) if phase.views > 1 else ()), 6, *mlp.shape)
                carry = phase.step(carry, Batch(x, torch.zeros(6, dtype=torch.int64)))
                assert meta.step_kernels(phase, carry, mlp.shape, 6) == first


@pytest.mark.parametrize("name", NAMES)
def test_no_client_pays_for_building_its_model(name: str):
    """No work of a new net draws weights: a method asks for its parts before its clients start."""
    model, shape, settings = NETS["mlp"]
    net = build_net(model, shape, CLASSES, **settings)
    method = build_method(name, net)
    for exchange in method.exchanges:
        traced = meta.trace(method, exchange, net, [[STEPS] * len(exchange.work.phases)])
        assert not [one for one in traced.start.kernels if one.op in {"uniform_", "normal_"}]


class Products(TorchDispatchMode):
    """Lists the matrix products of what runs inside, on real tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, int]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in PRODUCTS:
            roles = Roles(FORWARD, frozenset(), frozenset())
            self.found += [
                (one.op, one.flops) for one in PRODUCTS[name](args, result, roles) if one.kind != ELEMENTWISE
            ]
        return result


def test_work_does_not_depend_on_data(method: Method, net: Net):
    """A step on real data does the traced products, whether labels are of one class or of many."""
    federation = Federation(method, net)
    for exchange in method.exchanges:
        for phase in exchange.work.phases:
            views = (phase.views,) if phase.views > 1 else ()
            with torch.device("meta"):
                blank = Federation(method, net)
                carry = exchange.work.start(exchange.down(blank.server, 0), blank.states[0], blank.ctx(0))
                traced = meta.step_kernels(phase, carry, net.shape, 6)
            expected = [(one.op, one.flops) for one in traced if one.flops]
            for x, y in (
                (torch.zeros(*views, 6, *net.shape), torch.zeros(6, dtype=torch.int64)),
                (torch.randn(*views, 6, *net.shape), torch.arange(6)),
            ):
                payload = exchange.down(federation.server, 0)
                real = exchange.work.start(payload, federation.states[0], federation.ctx(0))
                with Products() as products:
                    phase.step(real, Batch(x, y))
                assert products.found == expected


def test_inputs_are_not_modified(method: Method, net: Net):
    """Nothing that a function of the protocol is given changes: server, payload, state, ctx, uploads."""
    federation = Federation(method, net)
    for exchange in method.exchanges:
        fold, ctx = exchange.work, federation.ctx(0)
        server, state = copied(federation.server), copied(federation.states[0])
        counts = ctx.class_counts.clone()
        payload = exchange.down(federation.server, 0)
        before = copied(payload)
        given_state = federation.states[0]
        carry = fold.start(payload, given_state, ctx)
        for phase in fold.phases:
            for batch in federation.batches(phase, 0):
                samples = Batch(batch.x.clone(), batch.y.clone())
                carry = phase.step(carry, batch)
                assert torch.equal(batch.x, samples.x)
                assert torch.equal(batch.y, samples.y)
        upload, new_state = fold.finish(carry, ctx)
        assert same(payload, before)
        assert same(given_state, state)
        assert same(federation.server, server)
        assert torch.equal(ctx.class_counts, counts)
        sent, kept = copied(upload), copied(new_state)
        arrivals = federation.arrivals(exchange)
        merged = exchange.merge(federation.server, [arrival(upload, ctx, payload), *arrivals[1:]])
        assert same(federation.server, server)
        assert same(upload, sent)
        assert same(new_state, kept)
        federation.server = merged


def test_merge_forgets_the_order(method: Method, net: Net):
    """Arrivals in another order merge to the same server state but for rounding, and it is finite."""
    federation = Federation(method, net)
    for exchange in method.exchanges:
        arrivals = federation.arrivals(exchange)
        merged = exchange.merge(federation.server, arrivals)
        for key, leaf in flatten(exchange.merge(federation.server, arrivals[::-1])).items():
            torch.testing.assert_close(leaf, flatten(merged)[key], rtol=1e-4, atol=1e-5)
        assert all(leaf.isfinite().all() for leaf in leaves(merged))
        federation.server = merged


def test_the_seed_decides_everything(method: Method, net: Net):
    """One seed gives the same bits through all exchanges, whatever torch's generator; another does not."""
    torch.manual_seed(1)
    one = Federation(method, net, seed=3).through()
    torch.manual_seed(2)
    other = Federation(method, net, seed=3).through()
    assert same(one.server, other.server)
    assert all(same(one.states[client], other.states[client]) for client in one.states)
    apart = Federation(method, net, seed=4).through()
    assert not (same(one.server, apart.server) and same(one.states[0], apart.states[0]))


def test_models_predict(method: Method, net: Net):
    """Personal and global models give finite logits (B, C), before any training and after it."""
    for federation in (Federation(method, net), Federation(method, net).through()):
        found = [method.personal_model(federation.server, state) for state in federation.states.values()]
        if method.global_model is not None:
            found.append(method.global_model(federation.server))
        x = torch.randn(5, *net.shape, generator=torch.Generator().manual_seed(0))
        for predictor in found:
            logits = predictor.logits(predictor.weights, x)
            assert logits.shape == (5, CLASSES)
            assert logits.isfinite().all()


def test_the_global_model_is_the_servers(method: Method, net: Net):
    """The global model's tensors are those that the server state holds, and no copies."""
    if method.global_model is None:
        assert Federation(method, net).states[0] is not None
        return
    federation = Federation(method, net).through()
    held = {id(leaf) for leaf in leaves(federation.server)}
    assert {id(leaf) for leaf in leaves(method.global_model(federation.server).weights)} <= held


def test_training_moves_what_is_trained(method: Method, net: Net):
    """A round of every exchange changes each trained part of every client's own model."""
    before, after = Federation(method, net), Federation(method, net).through()
    for client in range(after.clients):
        old = method.personal_model(before.server, before.states[client]).weights
        new = method.personal_model(after.server, after.states[client]).weights
        assert not same(old["body"], new["body"])
        assert not same(old["head"], new["head"])
        assert not old[BUFFERS] or not same(old[BUFFERS], new[BUFFERS])


def peak_of(name: str, net: Net, optimizer: Any = Sgd(lr=0.1), **settings: Any) -> dict[str, int]:  # noqa: B008 - frozen
    method = build_method(name, net, LocalTraining(optimizer=optimizer), **settings)
    exchange = next(one for one in method.exchanges if one.name == "train")
    return dict(meta.trace(method, exchange, net, [[{64: 1}]]).peaks[64,])


def test_memory_has_the_parts_that_the_methods_say(mlp: Net):
    """Beside FedAvg: FedProx keeps the received weights, momentum a buffer, Adam two, FedClassAvg a head."""
    weights = mlp.on_meta()
    trained, head = nbytes(weights), nbytes(weights["head"])
    plain = peak_of("fedavg", mlp)
    assert plain["parameters"] == trained
    assert plain["gradients" if "gradients" in plain else "activations"] > 0
    assert {"optimizer", "kept copies"}.isdisjoint(plain)
    assert peak_of("fedavg", mlp, Sgd(lr=0.1, momentum=0.9))["optimizer"] == trained
    assert peak_of("fedavg", mlp, Adam(lr=0.1))["optimizer"] == 2 * trained
    assert peak_of("fedprox", mlp)["kept copies"] == trained
    assert "kept copies" not in peak_of("fedprox", mlp, mu=0.0)
    assert peak_of("fedclassavg", mlp)["kept copies"] == head
    assert "kept copies" not in peak_of("fedclassavg", mlp, rho=0.0)
    # SphereFed's head weighs the same but has no bias, no momentum.
    sphere = peak_of("spherefed", mlp, Sgd(lr=0.1, momentum=0.9))
    assert sphere["optimizer"] == nbytes(weights["body"])
    assert sphere["parameters"] == nbytes(weights["body"]) + nbytes(weights["head"]["weight"])


# What stands in for FedAvg bit for bit in methods that have no neutral parameters.
WITHOUT_NEUTRAL = {
    "feddyn": "test_feddyn_begins_as_fedprox",
    "fednova": "test_fednova_of_equal_steps_is_fedavg",
    "fedrep": "test_fedrep_without_head_epochs_is_fedbabu",
    "ktpfl": "test_ktpfl_with_shared_weights_is_fedavg",
    "local": "test_local_with_one_client_is_fedavg",
}
SCENARIO = {
    "name": "neutral",
    "seed": 5,
    "task": {"dataset": "digits", "partition": {"name": "dirichlet", "alpha": 0.5}, "clients": 5},
    "fleet": "home-lab",
    "local": {"steps": 4, "batch_size": 16, "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9}},
    "server": {"rounds": 2, "participants": 3},
    "evaluate": {"every": 1, "models": ["global", "personal"]},
}


def learned(folder, method: dict[str, Any], **changes: Any) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """What a run evaluates, wall time apart, and its saved server versions."""
    (one,) = run({**SCENARIO, **changes, "method": method}, out=folder).runs
    assert one.status == "done", one.reason
    rows = [{key: value for key, value in row.items() if key != "host_s"} for row in one.table("evaluations")]
    versions = {path.name: path.read_bytes() for path in sorted((folder / "versions").iterdir())}
    return rows, versions


def test_every_method_states_its_equality(mlp: Net):
    """A method names the parameters at which it is FedAvg, or stands in the table of other equalities."""
    without = {name for name in NAMES if build_method(name, mlp).neutral is None}
    assert without == WITHOUT_NEUTRAL.keys()
    assert all(test in globals() for test in WITHOUT_NEUTRAL.values())


def test_neutral_parameters_are_fedavg_bit_for_bit(tmp_path, mlp: Net):
    """At its neutral parameters a method evaluates, costs and weighs what FedAvg does, to the last bit."""
    model = {"name": "spherefed_convnet", "norm": "batch"}
    expected = learned(tmp_path / "fedavg", {"name": "fedavg"}, model=model)
    assert len(expected[0]) == 4
    assert expected[1]
    for name in NAMES:
        neutral = build_method(name, mlp).neutral
        if name != "fedavg" and neutral is not None:
            assert learned(tmp_path / name, {"name": name, **neutral}, model=model) == expected, name


def test_a_chilled_base_keeps_its_neutral_parameters(tmp_path, mlp: Net):
    """FLex&Chill on FedProx is FedAvg only where both are neutral; on a base without, it has none."""
    neutral = build_method("flexchill", mlp, base={"name": "fedprox", "mu": 0.5}).neutral
    expected = learned(tmp_path / "fedavg", {"name": "fedavg"}, model="mlp")
    assert learned(tmp_path / "chilled", {"name": "flexchill", **neutral}, model="mlp") == expected
    assert build_method("flexchill", mlp, base={"name": "local"}).neutral is None


def test_fednova_of_equal_steps_is_fedavg(tmp_path):
    """Where all clients take as many steps, FedNova evaluates and weighs what FedAvg does, bit for bit."""
    expected = learned(tmp_path / "fedavg", {"name": "fedavg"}, model="mlp")
    assert learned(tmp_path / "fednova", {"name": "fednova"}, model="mlp") == expected


@pytest.mark.parametrize("model", NETS)
def test_feddyn_begins_as_fedprox(model: str):
    """Before any round, FedDyn's clients send what FedProx's send at mu = alpha, to the last bit."""
    kind, shape, settings = NETS[model]
    net = build_net(kind, shape, CLASSES, **settings)
    dyn, prox = (
        Federation(build_method(name, net, **{strength: 0.3}), net)
        for name, strength in (("feddyn", "alpha"), ("fedprox", "mu"))
    )
    pairs = zip(dyn.arrivals(dyn.method.exchanges[0]), prox.arrivals(prox.method.exchanges[0]), strict=True)
    assert all(same(one.upload, other.upload) for one, other in pairs)


def test_local_with_one_client_is_fedavg(tmp_path):
    """With one client that holds all data, local training scores what FedAvg's model scores there."""
    alone = {"model": "mlp", "task": {**SCENARIO["task"], "clients": 1}, "server": {"rounds": 3}}
    optimizer = {"name": "sgd", "lr": 0.05}
    alone["local"] = {**SCENARIO["local"], "optimizer": optimizer}
    scored = {}
    for name in ("local", "fedavg"):
        rows, _ = learned(tmp_path / name, {"name": name}, **alone)
        scored[name] = [
            (row["round"], row["accuracy"], row["loss"]) for row in rows if row["model"] == "personal"
        ]
    assert len(scored["local"]) == 3
    assert scored["local"] == scored["fedavg"]


def test_fedrep_without_head_epochs_is_fedbabu(tmp_path):
    """Where clients never train their heads, they score what FedBABU's global model scores there."""
    scored = {}
    for name, settings in (("fedrep", {"head_epochs": 0}), ("fedbabu", {"fine_tune": 0})):
        rows, _ = learned(
            tmp_path / name,
            {"name": name, **settings},
            model={"name": "spherefed_convnet", "norm": "batch"},
            server={"rounds": 2},
        )
        scored[name] = [
            (row["round"], row["accuracy"], row["loss"]) for row in rows if row["model"] == "personal"
        ]
    assert len(scored["fedrep"]) == 2
    assert scored["fedrep"] == scored["fedbabu"]


@pytest.mark.parametrize("model", NETS)
def test_ktpfl_with_shared_weights_is_fedavg(model: str):
    """Mixed by samples, without distilling and with all clients, each starts where FedAvg's do, to the bit.

    It is no neutral parameter: its server keeps every client's model, and clients who stay away keep theirs.
    """
    name, shape, settings = NETS[model]
    net = build_net(name, shape, CLASSES, **settings)
    neutral = {"share_weights": True, "coefficients": "samples", "distill_epochs": 0}
    ours = Federation(build_method("ktpfl", net, **neutral), net)
    theirs = Federation(build_method("fedavg", net), net)
    announce, train = ours.method.exchanges
    (averaged,) = theirs.method.exchanges
    assert train.work.phases[0].passes.epochs == 0
    # The federation does phases whatever their length.
    train = replace(train, work=replace(train.work, phases=train.work.phases[1:]))
    ours.server = announce.merge(ours.server, ours.arrivals(announce))
    for _ in range(3):
        for client in range(ours.clients):
            payload = train.down(ours.server, client)
            assert same({part: payload[part] for part in theirs.server}, theirs.server)
        ours.server = train.merge(ours.server, ours.arrivals(train))
        theirs.server = averaged.merge(theirs.server, theirs.arrivals(averaged))
    assert not same(theirs.server, net.init(0))


def test_spherefed_trains_the_body_as_fedavg_does(mlp: Net):
    """With its head fixed, a SphereFed round is FedAvg's on the transformed net, and no head is sent."""
    found: list[Net] = []
    module = catalogue.load("methods", "spherefed")
    fedavg = catalogue.load("methods", "fedavg")
    local = LocalTraining(optimizer=Sgd(lr=0.1, momentum=0.9))

    def base(net: Net) -> Method:
        found.append(net)
        return build_method("fedavg", net, local)

    sphere = module.Params().build(fedavg.Site(mlp, local, base))
    ours, theirs = Federation(sphere, mlp), Federation(build_method("fedavg", found[0], local), found[0])
    train = next(one for one in sphere.exchanges if one.name == "train")
    for _ in range(2):
        arrivals = ours.arrivals(train)
        assert all(set(one.upload) == {"body", BUFFERS} for one in arrivals)
        ours.server = train.merge(ours.server, arrivals)
        (exchange,) = theirs.method.exchanges
        theirs.server = exchange.merge(theirs.server, theirs.arrivals(exchange))
    assert same({part: ours.server[part] for part in theirs.server}, theirs.server)
    assert same(ours.server["head"], Federation(sphere, mlp).server["head"])


@pytest.mark.parametrize("base", ["local", "fedclassavg"])
def test_spherefed_refuses_a_base_that_keeps_the_body(mlp: Net, base: str):
    """Where bodies stay with clients there are no common features, so the mistake is told at once."""
    with pytest.raises(UserError, match=f"{base} leaves it with its clients"):
        build_method("spherefed", mlp, base={"name": base})


@pytest.mark.parametrize("base", ["fedprox", "flexchill", {"name": "fedclassavg", "share_body": True}])
def test_spherefed_stands_on_every_base_that_shares_the_body(mlp: Net, base: Any):
    """Each such base goes through all exchanges, and the fixed head is neither trained nor sent by it."""
    method = build_method("spherefed", mlp, base=base)
    federation = Federation(method, mlp).through()
    train = next(one for one in method.exchanges if one.name == "train")
    assert "head" not in train.down(federation.server, 0)
