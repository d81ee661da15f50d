"""What methods are made of: terms, inner layers, shifts, carries inside carries, extensions of a base."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from builders import MOMENTUM, NETS, Federation, build_method, build_net, same_trees
from made_methods import counting, phases_by_part, with_second_model

from edgefl.compute import meta
from edgefl.core.cost import FORWARD
from edgefl.core.errors import UserError
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.protocol import (
    Batch,
    Net,
    Phase,
    Site,
    averaging,
    forward,
    frozen,
    layers_of,
    leaves,
    local_training,
    plain_objective,
    sgd,
    shifted,
    trainer,
    tree_map,
)

X = torch.randn(5, 1, 16, 16, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def cnn() -> Net:
    """A convolutional net of three layers."""
    name, shape, settings = NETS["cnn"]
    return build_net(name, shape, 10, **settings)


@pytest.fixture(scope="module", params=NETS)
def net(request) -> Net:
    """Each kind of net."""
    name, shape, settings = NETS[request.param]
    return build_net(name, shape, 10, **settings)


def test_layers_are_what_the_modules_return(cnn: Net):
    """The activations of named layers are those of the module itself, step by step."""
    weights = cnn.init(0)
    body = cnn.module(weights).body
    found = layers_of(cnn, weights, X, cnn.layers)
    x = X
    for name, module in body.named_children():
        x = module(x)
        if name in found:
            torch.testing.assert_close(found[name], x.detach())
    assert list(found) == ["relu1", "relu2", "relu3"]


def test_a_frozen_pass_ends_after_the_last_layer_asked_for(cnn: Net):
    """Reading the first layer alone costs the first convolution alone."""

    def kernels(names):
        def step(carry, batch):
            return {**carry, "read": layers_of(cnn, carry["weights"], batch.x, names)}

        with torch.device("meta"):
            return meta.step_kernels(Phase("read", step, None), {"weights": cnn.on_meta()}, cnn.shape, 6)

    first, second = kernels(["relu1"]), kernels(["relu1", "relu2"])
    assert [one.op for one in first if one.flops] == ["convolution"]
    assert [one.op for one in second if one.flops] == ["convolution", "convolution"]
    assert {one.role for one in first} == {FORWARD}


def test_an_unknown_layer_is_named(cnn: Net):
    """The message has the net's layers."""
    with pytest.raises(UserError, match="cnn2 has no layer 'relu9'"):
        layers_of(cnn, cnn.init(0), X, ["relu9"])
    with pytest.raises(UserError, match="the first 5 layers were asked for, and cnn2 has 4"):
        cnn.first_layers(5)


def test_a_term_sees_the_pass_and_is_added(cnn: Net):
    """The objective is the net's loss plus each term, of the very pass that is trained."""
    weights, batch = cnn.init(0), Batch(X, torch.arange(5))
    plain, _ = plain_objective(cnn)(weights, batch, {})
    seen, _ = forward(cnn, weights, *batch)
    features, logits = frozen(cnn, weights, X)
    torch.testing.assert_close(seen.features, features)
    torch.testing.assert_close(seen.logits, logits)
    both = cnn.with_term(lambda seen, carry: seen.logits.square().mean() * carry["weight"])
    both = both.with_term(lambda seen, _: seen.layers["relu1"].mean(), layers=("relu1",))
    loss, _ = plain_objective(both)(weights, batch, {"weight": 3.0})
    first = layers_of(cnn, weights, X, ["relu1"])["relu1"]
    torch.testing.assert_close(loss, plain + 3 * logits.square().mean() + first.mean())


def test_the_stage_at_full_width_is_the_stage(net: Net):
    """At share 1 the last stage gives its own output; at a half, of half the channels."""
    stage, weights = net.stage, net.init(0)
    x = torch.randn(4, *net.shape, generator=torch.Generator().manual_seed(1))
    silent = net.with_term(lambda *_: torch.zeros(()), layers=(stage.before, stage.after))
    seen, _ = forward(silent, weights, x, x)
    whole = stage.call(weights, seen.layers[stage.before], 1.0)
    torch.testing.assert_close(whole, seen.layers[stage.after])
    half = stage.call(weights, seen.layers[stage.before], 0.5)
    assert half.shape[1] == whole.shape[1] // 2
    assert half.shape[2:] == whole.shape[2:]


def test_a_shift_is_added_to_the_gradient(cnn: Net):
    """A step with a shift ends where a step with the linear term <shift, w> ends."""
    weights, batch = cnn.init(0), Batch(X, torch.arange(5))
    shift = tree_map(torch.ones_like, {part: weights[part] for part in cnn.trained})

    def linear(seen, _):
        pairs = zip(leaves({part: seen.weights[part] for part in cnn.trained}), leaves(shift), strict=True)
        return sum((one * other).sum() for one, other in pairs)

    optimizer = Sgd(lr=0.1, momentum=0.9, clip_norm=1.0)
    ends = []
    for own, shifts in ((cnn, [shift]), (cnn.with_term(linear), [])):
        step = sgd(plain_objective(own), optimizer, own.trained)
        carry = trainer(weights, optimizer, own.trained, 0.1)
        for each in shifts:
            carry = shifted(carry, each)
        for _ in range(3):
            carry = step(carry, batch)
        ends.append(carry["weights"])
    for one, other in zip(*map(leaves, ends), strict=True):
        torch.testing.assert_close(one, other)
    twice = shifted(shifted({}, shift), shift)["shift"]
    assert all(bool((leaf == 2).all()) for leaf in leaves(twice))


def test_phases_have_their_own_optimizer_state(net: Net):
    """Two phases on different parts train each alone, each with its own momentum, engines alike."""
    method = phases_by_part(net)
    federation = Federation(method, net)
    carry = method.exchanges[0].work.start(federation.server, None, federation.ctx(0))
    assert set(carry["slots"]) == {"head", "body"}
    before = tree_map(torch.clone, carry["weights"])
    for batch in federation.batches(method.exchanges[0].work.phases[0], 0):
        carry = method.exchanges[0].work.phases[0].step(carry, batch)
    assert same_trees(carry["weights"]["body"], before["body"])
    assert not same_trees(carry["weights"]["head"], before["head"])
    peak = meta.trace(method, method.exchanges[0], net, [[{6: 1}, {6: 1}]]).peaks[6, 6]
    trained = sum(leaf.nbytes for part in net.trained for leaf in leaves(before[part]))
    assert peak["optimizer"] == trained


def test_a_carry_inside_the_carry_trains_a_second_model(net: Net):
    """The first model trains as without it; the second trains as the first does, and is its memory's."""
    method, plain = with_second_model(net), build_method("fedavg", net)
    ours, theirs = Federation(method, net).through(), Federation(plain, net).through()
    assert same_trees(ours.server, theirs.server)
    alone = Federation(plain, net)
    _, upload = alone.work(plain.exchanges[0], 0)
    assert same_trees(ours.states[0]["second"], upload)
    (exchange,) = method.exchanges
    ours_peak = meta.trace(method, exchange, net, [[{6: 1}, {6: 1}]]).peaks[6, 6]
    peak = meta.trace(plain, plain.exchanges[0], net, [[{6: 1}]]).peaks[6,]
    assert ours_peak["parameters"] >= 2 * peak["parameters"]
    assert ours_peak["optimizer"] == 2 * peak["optimizer"]


def test_extensions_nest(net: Net):
    """Each has its own part of states, payloads and uploads; what the base learns is the same."""
    method = counting(counting(build_method("fedprox", net), "inner"), "outer")
    federation, plain = Federation(method, net), Federation(build_method("fedprox", net), net)
    for _ in range(2):
        federation.through()
        plain.through()
    assert {part: federation.server[part] for part in plain.server}.keys() == plain.server.keys()
    assert same_trees({part: federation.server[part] for part in plain.server}, plain.server)
    for name in ("inner", "outer"):
        assert federation.server[name]["count"] == 2 * federation.clients
        assert all(state[name]["rounds"] == 2 for state in federation.states.values())
    assert federation.states[0].keys() == {"inner", "outer"}


def test_a_state_keeps_the_parts_that_its_work_does_not_return(net: Net):
    """LG-style bodies stay in the state beside what an extension keeps."""
    site = Site(net, MOMENTUM, None)
    frozen_body = replace(net, trained=("head",))
    base = averaging(
        Site(frozen_body, MOMENTUM, None),
        local_training(site._replace(net=frozen_body), plain_objective(frozen_body)),
        shared=("head",),
    )
    federation = Federation(counting(base, "counted"), net).through()
    assert federation.states[0].keys() >= {"body", "counted"}


def test_an_extension_of_itself_is_refused(net: Net):
    """The second of a name is told, before anything runs."""
    method = counting(counting(build_method("fedavg", net), "twice"), "twice")
    with pytest.raises(UserError, match="twice cannot be combined with itself"):
        method.initial(net.init(0))
