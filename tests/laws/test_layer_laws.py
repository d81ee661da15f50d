"""Laws of an exchange layer by layer: nothing is counted twice, and nothing is left out."""

from __future__ import annotations

import pytest
import torch
from builders import build_method
from nightly import couples

from edgefl.compute import meta
from edgefl.core import catalogue
from edgefl.core.documents import document
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.training import Local
from edgefl.planning.profile import ProfileOptions, profile
from edgefl.protocol import BUFFERS, Net
from edgefl.runs import drafts

DEVICES = ("raspberry-pi-4b", "vc707-systolic", "phone-high")
NETS = {
    "mlp": ("digits", {"name": "mlp"}),
    "convolutions": ("cifar10", {"name": "cnn2"}),
    # batch norms, residual sums and depthwise convolutions
    "resnet18": ("cifar10", {"name": "resnet18"}),
    "mobilenet-v2": ("cifar10", {"name": "mobilenet-v2"}),
}


def profiled(method, net, devices=DEVICES, **changes):
    """A profile by layer."""
    dataset, model = NETS[net]
    public = {"public": {"samples": 60}} if method == "ktpfl" else {}
    scenario = {
        "task": {"dataset": dataset, "clients": 1000, **public, **changes.pop("task", {})},
        "model": model,
        "method": method,
        "local": {"batch_size": 32},
        "fleet": "home-lab",
        **changes,
    }
    (draft,) = drafts(scenario)
    # 4G's radio has a tail.
    return profile(draft, ProfileOptions(devices=devices, layers=True, link="4g"))


CASES = [
    *couples(catalogue.entries("methods"), ("mlp", "convolutions")),
    ("fedavg", "resnet18"),
    ("spherefed", "mobilenet-v2"),
]


@pytest.fixture(scope="module", params=CASES)
def exchanges(request):
    """Every exchange of a method on a net, by layer and on devices."""
    method, net = request.param
    return profiled(method, net).exchanges


@pytest.fixture(autouse=True, scope="module")
def _without_fvcore():
    """It takes seconds, and is not what these laws are about."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("edgefl.planning.profile.layers", lambda _: None)
        yield


def test_layers_and_other_work_are_the_exchange(exchanges):
    """FLOPs by role, kernels and bytes add up to the exchange's, exactly."""
    for one in exchanges:
        by_role = {role: sum(layer.flops[role] for layer in one.layers) for role in ("forward", "grad-input")}
        assert all(by_role[role] <= one.flops[role] for role in by_role)
        flops = sum(sum(layer.flops.values()) for layer in one.layers)
        assert flops + sum(other.flops for other in one.other_work) == sum(one.flops.values())
        for name, whole in (("kernels", one.kernels), ("moved_bytes", one.moved_bytes)):
            assert sum(getattr(row, name) for row in (*one.layers, *one.other_work)) == whole


def test_times_and_energies_add_up(exchanges):
    """Layers, other work and transfers take the exchange's time and energy on every device."""
    for one in exchanges:
        for row in one.devices:
            found, price = row.by_layer, row.price
            layers = [part.forward_s + part.grad_input_s + part.grad_weight_s for part in found.layers]
            seconds = sum(layers) + sum(other.seconds for other in found.others)
            assert seconds == pytest.approx(price.down_s + price.compute_s + price.up_s)
            parts = [part.joules for part in (*found.layers, *found.others)]
            if price.joules is None:
                assert None in parts
            else:
                assert sum(parts) == pytest.approx(price.joules)


def test_memory_by_layer_holds_the_peaks_parts(exchanges):
    """All that waits for the backward pass, and every gradient, is some layer's or other work's."""
    for one in exchanges:
        kept = sum(row.activation_bytes for row in (*one.layers, *one.other_work))
        assert kept >= one.peak.get("activations", 0)
        # FedCurv holds gradients of single samples, and their squares, which no layer makes.
        if "fedcurv" not in one.down:
            assert sum(layer.gradient_bytes for layer in one.layers) >= one.peak.get("gradients", 0)
        for layer in one.layers:
            parts = layer.parameter_bytes, layer.gradient_bytes, layer.activation_bytes
            assert layer.memory_bytes == sum(parts)


def test_an_mlp_by_hand():
    """Digits in batches of 32, 64 to 64 to 10: the ReLU alone keeps its result, for its own gradient.

    The first layer needs no gradient of its input; the weights' gradients are as large as the weights.
    """
    (one,) = profiled("fedavg", "mlp", ("raspberry-pi-4b",), task={"samples": 64, "clients": 10}).exchanges
    fc1, relu, head = one.layers
    assert [row.layer for row in one.layers] == ["body.fc1", "body.relu1", "head"]
    assert [row.kind for row in one.layers] == ["Linear", "ReLU", "Linear"]
    product = 2 * 64 * 64 * 64
    assert fc1.flops == {"forward": product, "grad-input": 0, "grad-weight": product}
    assert set(head.flops.values()) == {2 * 64 * 64 * 10}
    assert fc1.parameter_bytes == fc1.gradient_bytes == 4 * (64 * 64 + 64)
    assert head.parameter_bytes == head.gradient_bytes == 4 * (64 * 10 + 10)
    assert (fc1.activation_bytes, relu.activation_bytes, head.activation_bytes) == (0, 4 * 32 * 64, 0)
    (row,) = one.devices
    assert row.by_layer.layers[1].memory_bytes == 4 * 32 * 64


def test_a_frozen_layer_has_no_gradient_of_its_weights():
    """SphereFed's head passes gradients on to the body, and has none itself."""
    train = next(one for one in profiled("spherefed", "mlp").exchanges if one.exchange == "train")
    head = train.layers[-1]
    assert (head.layer, head.gradient_bytes, head.flops["grad-weight"]) == ("head", 0, 0)
    assert head.flops["grad-input"] == head.flops["forward"] > 0
    for row in train.devices:
        assert row.by_layer.layers[-1].grad_weight_s == 0


def test_memory_by_layer_is_in_the_devices_type():
    """fp16 takes half of fp32's."""
    sizes = {}
    for dtype in ("fp32", "fp16"):
        fleet = {"members": [{"device": "jetson-tx2", "link": "ethernet", "dtype": dtype}]}
        (one,) = profiled("fedavg", "mlp", (), fleet=fleet).exchanges
        sizes[dtype] = [layer.memory_bytes for layer in one.devices[0].by_layer.layers]
    assert sizes["fp16"] == [size / 2 for size in sizes["fp32"]]


def test_a_net_without_modules_has_its_parts_as_layers():
    """Two products by hand: each is its part's, by the weights that it has."""

    def init(_):
        return {"body": {"w": torch.empty(6, 12)}, "head": {"w": torch.empty(3, 6)}, BUFFERS: {}}

    def features(weights, x, _):
        return x.flatten(1) @ weights["body"]["w"].mT, weights[BUFFERS]

    net = Net("own", init, features, lambda head, x: x @ head["w"].mT, (1, 3, 4), 3, 6, module=None)
    method = build_method("fedavg", net, Local(optimizer=Sgd(lr=0.1)))
    trace = meta.trace(method, method.exchanges[0], net, [[{5: 2}]])
    found = meta.by_layer(method, method.exchanges[0], net, [{5: 2}], trace)
    flops = {one.name: sum(work.flops for work in one.work.values()) for one in found.layers}
    assert flops == {"body": 2 * 2 * 2 * 5 * 6 * 12, "head": 2 * 3 * 2 * 5 * 3 * 6}
    assert all(not work.flops for one in found.others for work in one.work.values())


def test_layers_are_in_the_document():
    """``--json`` has the layers of an exchange, its other work, and their times on each device."""
    (one,) = profiled("fedavg", "mlp", ("raspberry-pi-4b",)).exchanges
    found = document(one)
    assert {row["layer"] for row in found["layers"]} == {"body.fc1", "body.relu1", "head"}
    assert "update" in {row["work"] for row in found["other_work"]}
    (row,) = found["devices"]
    assert row["by_layer"]["layers"][0].keys() >= {"forward_s", "grad_input_s", "grad_weight_s", "joules"}
    assert {other["work"] for other in row["by_layer"]["others"]} >= {"update", "download", "upload"}
