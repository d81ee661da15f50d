"""Training's operations on every shipped model under every shipped method, by closed form and by the tracer.

f is a layer's multiply-adds on a batch: a convolution's B*Ho*Wo*Cout*(Cin/g)*Kh*Kw, a linear layer's B*I*O.
They are collected by hooks on the model's own modules; neither the tracer's tables nor torch's counter has a
part in them. A forward pass takes f, a trained weight's gradient f, an input's gradient f. The input's
gradient goes down to the lowest trained layer, which needs none itself. A multiply-add is two operations.

What a method does beyond that stands in ``METHODS``, by exchange. A method without an entry there fails.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from math import ceil, prod
from typing import Any, NamedTuple

import pytest
import torch
from builders import build_method, build_net
from nightly import paired, sampled
from torch import nn

from edgefl.compute import meta
from edgefl.core import catalogue
from edgefl.core.cost import FORWARD, GRAD_INPUT, GRAD_WEIGHT, UPDATE, Cost, Trace, Work
from edgefl.protocol import Net

BATCH = 4
CLASSES = 10
CIFAR = (3, 32, 32)

# Every model in the catalogue with its defaults, and these settings besides.
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "mlp": [{"hidden": (32, 16, 24)}],
    "cnn2": [{"channels": (32, 64), "hidden": 512, "padding": "same"}],
    "spherefed-convnet": [{"norm": "batch"}],
    "resnet18": [{"norm": "group", "stem": "imagenet", "wrap": 64}],
    "mobilenet-v2": [{"norm": "group", "stem": "imagenet", "wrap": 24}],
}


class Split(NamedTuple):
    """Multiply-adds by pass."""

    forward: int = 0
    grad_input: int = 0
    grad_weight: int = 0
    update: int = 0


class Layers:
    """A model's f on batches of any size."""

    def __init__(self, net: Net) -> None:
        self.net, self._all = net, cache(partial(multiply_adds, net))

    def body(self, batch: int) -> list[int]:
        """Of the body's layers in the order of their calls."""
        return self._all(batch)[:-1]

    def head(self, batch: int) -> int:
        """Of the classifier."""
        return self._all(batch)[-1]


def multiply_adds(net: Net, batch: int) -> list[int]:
    """F of each convolution and linear layer in the order in which they are called; the head is last."""
    found: list[int] = []

    def conv(layer: nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:  # noqa: ARG001
        (outer, inner), (high, wide) = (layer.out_channels, layer.in_channels), output.shape[2:]
        found.append(len(output) * high * wide * outer * (inner // layer.groups) * prod(layer.kernel_size))

    def linear(layer: nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:  # noqa: ARG001
        found.append(len(output) * layer.in_features * layer.out_features)

    module = net.module(net.on_meta())
    for name, layer in module.named_modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(conv)
        elif isinstance(layer, nn.Linear):
            layer.register_forward_hook(linear)
        else:
            own = [key for key, value in vars(layer)["_parameters"].items() if value is not None]
            free = isinstance(layer, nn.BatchNorm2d | nn.GroupNorm)
            assert free or not own, f"{net.name}: no closed form yet for {type(layer).__name__} {name!r}"
    module(torch.empty(batch, *net.shape, device="meta"))
    return found


def train(layers: Layers, *, head: bool = True, views: int = 1) -> Split:
    """A step of training the body, and the head unless it is fixed; several views pass the body alone.

    They are compared in SupCon: one product of (V*B) x l x (V*B), and two for its gradient.
    """
    body, top = layers.body(views * BATCH), layers.head(BATCH)
    pairs = (views * BATCH) ** 2 * layers.net.feature_width if views > 1 else 0
    return Split(
        forward=sum(body) + top + pairs,
        grad_input=sum(body[1:]) + top + 2 * pairs,
        grad_weight=sum(body) + (top if head else 0),
    )


def calibrate(layers: Layers) -> Split:
    """A forward pass of the body, U = F^T Y of l x B x C and V = F^T F of l x B x l; no gradient."""
    width = layers.net.feature_width
    return Split(forward=sum(layers.body(BATCH)) + BATCH * width * (width + CLASSES))


NOTHING = Split()
Exchanges = dict[str, Split]


def averaged(layers: Layers) -> Exchanges:
    """Plain training in every round. A proximal term and a temperature have no products."""
    return {"train": train(layers)}


def contrasted(layers: Layers) -> Exchanges:
    """FedClassAvg: two views."""
    return {"train": train(layers, views=2)}


def sphere(layers: Layers, *, views: int = 1) -> Exchanges:
    """SphereFed: the head's weight gradient is saved; handing heads over takes no operations."""
    fixed = train(layers, head=False, views=views)
    return {"announce": NOTHING, "train": fixed, "calibrate": calibrate(layers), "deliver": NOTHING}


def uncalibrated(layers: Layers) -> Exchanges:
    """SphereFed without FFC."""
    return {"announce": NOTHING, "train": train(layers, head=False)}


def plus(one: Split, other: Split) -> Split:
    """The sum by pass."""
    return Split(*(mine + theirs for mine, theirs in zip(one, other, strict=True)))


def frozen(layers: Layers, passes: int) -> Exchanges:
    """Training beside whole forward passes of kept models."""
    forward = sum(layers.body(BATCH)) + layers.head(BATCH)
    return {"train": plus(train(layers), Split(forward=passes * forward))}


def compared(layers: Layers) -> Exchanges:
    """FedCKA: two passes to the second layer, and a B x B matrix of each of three activations."""
    two = layers.net.layers[:2]
    sizes = [len(one[0].flatten()) for one in activations(layers.net, two)]
    below = sum(layers.body(BATCH)[: len(two)])
    grams = BATCH**2 * sum(sizes)
    return {"train": plus(train(layers), Split(forward=2 * below + 3 * grams, grad_input=2 * grams))}


def activations(net: Net, names: tuple[str, ...]) -> list[torch.Tensor]:
    """Of one batch, by the module's own hooks."""
    found: list[torch.Tensor] = []
    module = net.module(net.on_meta())
    for name in names:
        module.get_submodule(f"body.{name}").register_forward_hook(lambda *given: found.append(given[-1]))
    module(torch.empty(BATCH, *net.shape, device="meta"))
    return found


def personal(layers: Layers) -> Exchanges:
    """Ditto: a second model is trained."""
    return {"train": plus(train(layers), train(layers))}


def head_then_body(layers: Layers) -> Exchanges:
    """FedRep: the head's weight gradient alone, then the body's under the fixed head."""
    top = layers.head(BATCH)
    first = Split(forward=sum(layers.body(BATCH)) + top, grad_weight=top)
    return {"train": plus(first, train(layers, head=False))}


def fixed(layers: Layers) -> Exchanges:
    """FedBABU: the head has no weight gradient before it is fine-tuned."""
    return {"announce": NOTHING, "train": train(layers, head=False), "fine-tune": train(layers)}


def with_calibration(layers: Layers) -> Exchanges:
    """FFC after plain training."""
    return {"train": train(layers), "calibrate": calibrate(layers), "deliver": NOTHING}


def with_statistics(layers: Layers) -> Exchanges:
    """CCVR: a forward pass of the body; sums of features by class, and products of blocks of a class."""
    width, size = layers.net.feature_width, max(1, 64 // CLASSES)
    squares = (BATCH + min(BATCH, CLASSES) * (size - 1)) // size * size * width**2
    forward = sum(layers.body(BATCH)) + BATCH * width * CLASSES + squares
    return {"train": train(layers), "statistics": Split(forward=forward), "deliver": NOTHING}


def with_features(layers: Layers) -> Exchanges:
    """FedProto: a forward pass of the body after training, and the sum of features of each class."""
    forward = sum(layers.body(BATCH)) + BATCH * layers.net.feature_width * CLASSES
    return {"train": plus(train(layers), Split(forward=forward))}


def distilled(layers: Layers) -> Exchanges:
    """KT-pFL: distilling and training, and a forward pass that predicts."""
    forward = Split(forward=sum(layers.body(BATCH)) + layers.head(BATCH))
    both = plus(train(layers), train(layers))
    return {"announce": forward, "train": plus(both, forward)}


SHARED = {"name": "fedclassavg", "share_body": True}
# method -> (its settings, what its exchanges take); what FedCurv and FedAlign add has tests of its own below.
METHODS: dict[str, list[tuple[dict[str, Any], Callable[[Layers], Exchanges]]]] = {
    "fedavg": [({}, averaged)],
    "fedprox": [({}, averaged)],
    "local": [({}, averaged)],
    "fedclassavg": [
        ({}, contrasted),
        ({"share_body": True, "rho": 0.0}, contrasted),
        ({"contrastive": 0.0}, averaged),
    ],
    "flexchill": [
        ({}, averaged),
        ({"base": {"name": "fedclassavg"}}, contrasted),
        ({"base": {"name": "spherefed"}}, sphere),
    ],
    "spherefed": [
        ({}, sphere),
        ({"calibrate": "never"}, uncalibrated),
        ({"base": SHARED}, lambda layers: sphere(layers, views=2)),
    ],
    "ccvr": [({}, with_statistics)],
    "ditto": [({}, personal)],
    "fedalign": [],
    "fedbabu": [({}, fixed)],
    "fedcka": [({}, compared)],
    "fedcurv": [],
    "feddyn": [({}, averaged)],
    "fednova": [({}, averaged)],
    "fedntd": [({}, lambda layers: frozen(layers, 1))],
    "fedopt": [({}, averaged)],
    "fedper": [({}, averaged)],
    "fedproto": [({}, with_features)],
    "fedrep": [({}, head_then_body)],
    "ffc": [({}, with_calibration)],
    "ktpfl": [({}, distilled)],
    "lg-fedavg": [({}, averaged)],
    "moon": [({}, lambda layers: frozen(layers, 2))],
    "scaffold": [({}, averaged)],
}
# Of any module, what it is made of would have to be written down.
MODELS = [name for name in catalogue.entries("models") if name != "module"]
# Methods are told apart on small models; large ones and other settings have three, of which one by day.
SMALL = ("mlp", "cnn2", "spherefed-convnet")
OTHERS = [
    (model, shape) for model in MODELS for shape in ([] if model in SMALL else [{}]) + SETTINGS.get(model, [])
]
LARGE = [
    pytest.param(model, name, *METHODS[name][0], marks=one.marks)
    for one in paired(OTHERS, ("fedavg", "spherefed", "fedclassavg"))
    for model, name in [one.values]
]
CASES = LARGE + [
    ((model, {}), name, *variant)
    for model in SMALL
    for name, variants in METHODS.items()
    for variant in variants
    # FedCKA's second layer is not the second of the perceptron's single one.
    if (model, name) != ("mlp", "fedcka")
]


@pytest.fixture(scope="module")
def layers(request) -> Layers:
    """The model that a test names."""
    name, settings = request.param
    return Layers(build_net(name, CIFAR, CLASSES, **settings))


def split(work: Work) -> Split:
    """The traced operations by pass, in multiply-adds."""
    flops = dict.fromkeys((FORWARD, GRAD_INPUT, GRAD_WEIGHT, UPDATE), 0)
    for kernel, count in work:
        flops[kernel.role] += kernel.flops * count
    assert not any(total % 2 for total in flops.values())
    return Split(*(total // 2 for total in flops.values()))


def of_one_step(trace: Trace) -> Split:
    """An exchange's multiply-adds with one step a phase; what frames the steps has none."""
    assert split(trace.start) == split(trace.finish) == NOTHING
    return split(Cost(steps=tuple((phase.steps[BATCH], 1) for phase in trace.phases)).work)


def test_every_method_has_its_closed_form():
    """A new method is counted by hand before it is believed; so is a model's settings' name kept right."""
    shipped = {path.stem.replace("_", "-") for path in catalogue.shipped("methods").glob("[!_]*.py")}
    told = "list each shipped method's exchanges by hand in METHODS, and no others"
    assert shipped == METHODS.keys(), told
    models = set(catalogue.entries("models"))
    assert models >= set(SETTINGS), "SETTINGS lists a model that is not shipped"


@sampled(
    10,
    ("layers", "name", "settings", "expected"),
    CASES,
    indirect=["layers"],
    ids=lambda one: getattr(one, "__name__", str(one)),
)
def test_the_tracer_finds_the_closed_form(name, settings, expected, layers: Layers):
    """Forward, grad-input and grad-weight of every exchange are the formula's, to the last operation."""
    method = build_method(name, layers.net, **settings)
    found = {
        exchange.name: of_one_step(
            meta.trace(method, exchange, layers.net, [[{BATCH: 1}] * len(exchange.work.phases)])
        )
        for exchange in method.exchanges
    }
    assert found == expected(layers)


SMALL_LAYERS = pytest.mark.parametrize(
    "layers", [(name, {}) for name in SMALL], indirect=True, ids=lambda one: one[0]
)


@pytest.mark.nightly
@SMALL_LAYERS
def test_fedcurvs_fisher_is_a_step_on_single_samples(layers: Layers):
    """Gradients of single samples take as much as those of their batch."""
    method = build_method("fedcurv", layers.net)
    (exchange,) = method.exchanges
    trace = meta.trace(method, exchange, layers.net, [[{BATCH: 1}] * 2])
    plain, fisher = (split(phase.steps[BATCH]) for phase in trace.phases)
    assert plain == train(layers)
    assert fisher.forward == plain.forward
    assert fisher.grad_input + fisher.grad_weight == plain.grad_input + plain.grad_weight


@pytest.mark.nightly
@SMALL_LAYERS
def test_fedaligns_slice(layers: Layers):
    """A product of the stage's input and output, 10 power iterations on it, and both at the width again."""
    net, share, turns = layers.net, 0.25, 10
    method = build_method("fedalign", net, width=share)
    (exchange,) = method.exchanges
    found = of_one_step(meta.trace(method, exchange, net, [[{BATCH: 1}]]))
    before, after = (one.shape for one in activations(net, (net.stage.before, net.stage.after)))
    area, inner, outer = prod(after[2:]), before[1], after[1]
    thin, slim = ceil(share * inner), ceil(share * outer)
    # The last layer of these bodies, at the width: in proportion to its inputs and its outputs.
    stage = layers.body(BATCH)[1 if net.name == "cnn2" else -1] * thin * slim // (inner * outer)
    products = sum(BATCH * one * other * (area + 2 * turns) for one, other in ((inner, outer), (thin, slim)))
    assert found.forward == train(layers).forward + stage + products


@SMALL_LAYERS
def test_frozen_parts_are_not_charged(layers: Layers):
    """With the head alone trained, a step is one forward pass and the head's weight gradient."""
    frozen = replace(layers.net, trained=("head",))
    method = build_method("fedclassavg", frozen, contrastive=0.0)
    (exchange,) = method.exchanges
    top = layers.head(BATCH)
    expected = Split(forward=sum(layers.body(BATCH)) + top, grad_weight=top)
    assert of_one_step(meta.trace(method, exchange, frozen, [[{BATCH: 1}]])) == expected


def test_a_comparison_of_as_many_samples_as_classes_trains_no_weight():
    """SupCon's gradients are inputs' gradients, also where 2B = C gives them the head's shape."""
    net = build_net("mlp", (1, 8, 8), 2 * BATCH)
    method = build_method("fedclassavg", net)
    traced = meta.trace(method, method.exchanges[0], net, [[{BATCH: 1}]])
    assert of_one_step(traced) == train(Layers(net), views=2)
