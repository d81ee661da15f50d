"""Requirements of every model."""

import pytest
import torch
from builders import GIVEN, build_net
from nightly import mostly, sampled

from edgefl.core import catalogue
from edgefl.protocol import BUFFERS, Net, Tree, flatten, leaves, tree_map

NAMES = tuple(catalogue.entries("models"))
# One of each kind that is quick: of the others, others have the layers too.
BY_DAY = {"mlp", "cnn2", "spherefed-convnet", "resnet10", "lstm"}
NORMALISED = tuple(name for name in NAMES if "norm" in catalogue.load("models", name).Params.model_fields)
SHAPE = (3, 32, 32)
CLASSES = 10


@pytest.fixture(scope="module", params=mostly(NAMES, BY_DAY))
def net(request) -> Net:
    """Each model with its default parameters, on CIFAR-sized samples."""
    return build_net(request.param, SHAPE, CLASSES)


@pytest.fixture(scope="module")
def weights(net: Net) -> Tree:
    return net.init(0)


@pytest.fixture(scope="module", params=mostly(NORMALISED, {*NORMALISED} & BY_DAY))
def batch_norm_net(request) -> Net:
    module = catalogue.load("models", request.param)
    return module.Params(norm="batch").build(SHAPE, CLASSES)


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(4, *SHAPE, generator=torch.Generator().manual_seed(0))


def same(one, other) -> bool:
    left, right = flatten(one), flatten(other)
    return left.keys() == right.keys() and all(torch.equal(left[key], right[key]) for key in left)


def test_every_tensor_of_the_module_is_in_one_part(net: Net, weights: Tree, x: torch.Tensor):
    """Parts cover the module's state once; the functional net and the module compute the same logits."""
    parts = net.parts()
    assert list(parts) == ["body", "head", BUFFERS]
    names = [f"{'head' if part == 'head' else 'body'}.{name}" for part in parts for name in parts[part]]
    state = net.module(weights).state_dict()
    assert len(names) == len(set(names))
    assert set(names) == set(state)
    assert len({name for part in parts.values() for name in part}) == len(names)
    found, _ = net.features(weights, x, False)
    assert (found.shape, weights["head"]["weight"].shape) == (
        (4, net.feature_width),
        (CLASSES, net.feature_width),
    )
    assert torch.equal(net.module(weights)(x), net.logits(weights, x))


@sampled(4, "name", sorted(set(NAMES) - set(GIVEN)))
def test_the_head_bias_is_optional(name):
    module = catalogue.load("models", name)
    for bias, names in ((False, ("weight",)), (True, ("weight", "bias"))):
        built = module.Params(head_bias=bias).build(SHAPE, CLASSES)
        assert built.parts()["head"] == names


def test_the_seed_alone_decides_the_first_weights(net: Net):
    """One seed gives one set of weights, another gives others, and torch's own generator does not change."""
    before = torch.get_rng_state()
    first = net.init(7)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(1)
    assert same(first, net.init(7))
    assert not same(first["head"], net.init(8)["head"])
    assert not any(value.requires_grad for value in leaves(first))
    assert {value.dtype for value in leaves(first)} == {torch.float32}


def test_shapes_are_known_without_data(net: Net, weights: Tree):
    """On the meta device init gives the same names, shapes and types, in the same order."""
    real, meta = flatten(weights), flatten(net.on_meta())
    assert [(key, value.shape, value.dtype) for key, value in real.items()] == [
        (key, value.shape, value.dtype) for key, value in meta.items()
    ]
    assert {value.device.type for value in meta.values()} == {"meta"}


def test_inputs_are_not_modified(net: Net, weights: Tree, x: torch.Tensor):
    """Neither weights nor buffers nor samples change in a call, and the net keeps nothing of it."""
    samples, train = x.clone(), True
    copy = tree_map(torch.clone, weights)
    first, _ = net.features(weights, x, train)
    assert same(copy, weights)
    assert torch.equal(samples, x)
    net.features(net.init(1), x, train)
    assert torch.equal(first, net.features(weights, x, train)[0])


def test_training_moves_the_running_statistics(batch_norm_net: Net, x: torch.Tensor):
    """With batch norm a training pass returns other buffers; an evaluation pass returns its inputs."""
    weights = batch_norm_net.init(0)
    _, trained = batch_norm_net.features(weights, x, True)
    assert trained.keys() == weights[BUFFERS].keys()
    assert not any(torch.equal(trained[key], weights[BUFFERS][key]) for key in trained)
    assert batch_norm_net.features(weights, x, False)[1] is weights[BUFFERS]


@pytest.mark.parametrize("name", ["spherefed-convnet", "resnet10", "shufflenet-v2"])
def test_clients_stack(name: str, x: torch.Tensor):
    """Under vmap over stacked weights and buffers each client gets what it gets alone."""
    net = catalogue.load("models", name).Params(norm="batch").build(SHAPE, CLASSES)
    clients = [net.init(seed) for seed in range(2)]
    batches = torch.stack([x[:2], x[2:]])
    stacked = tree_map(lambda *values: torch.stack(values), *clients)
    copy = tree_map(torch.clone, stacked)
    together, buffers = torch.func.vmap(lambda weights, batch: net.features(weights, batch, True))(
        stacked, batches
    )
    assert same(copy, stacked)
    for number, weights in enumerate(clients):
        alone, own = net.features(weights, batches[number], True)
        torch.testing.assert_close(together[number], alone, rtol=1e-3, atol=1e-4)
        found = {key: value[number] for key, value in buffers.items()}
        torch.testing.assert_close(found, own, rtol=1e-3, atol=1e-4)


def test_a_gradient_reaches_every_parameter(net: Net, weights: Tree, x: torch.Tensor):
    """The loss depends on every tensor of body and head, and on nothing kept from another call."""
    live = {
        part: tree_map(lambda leaf: leaf.clone().requires_grad_(), weights[part]) for part in ("body", "head")
    }
    found, buffers = net.features({**weights, **live}, x, True)
    # A second pass with other weights, as a teacher's, leaves the first one's graph alone.
    net.features(net.init(1), x, True)
    loss = net.loss(net.head(live["head"], found), torch.arange(4))
    for name, grad in zip(flatten(live), torch.autograd.grad(loss, leaves(live)), strict=True):
        assert grad.abs().sum() > 0, name
    assert not any(value.requires_grad for value in leaves(buffers))
