"""Laws of an exchange layer by layer: nothing is counted twice, and nothing is left out."""

import pytest
import torch
from builders import build_method
from nightly import sampled

from edgefl.compute import meta
from edgefl.core import catalogue
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.scenario import LocalTraining
from edgefl.planning.costs import of
from edgefl.planning.profile import ProfileOptions, profile
from edgefl.protocol import BUFFERS, Net
from edgefl.runs.group import drafts

DEVICES = ("raspberry-pi-4b", "vc707-systolic", "phone-high")
NETS = {
    "mlp": ("digits", {"name": "mlp"}),
    "convolutions": ("cifar10", {"name": "cnn2"}),
    # batch norms, residual sums and depthwise convolutions
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


def each(found):
    """Of each exchange: its work, its layers and other work, and by device its price and its parts'."""
    for work in found.exchanges:
        parts = of(found.parts, work)
        layers = [part for part in parts if part["what"] == "layer"]
        rows = [
            (row, of(found.part_prices, row, "device", "dtype", "link")) for row in of(found.prices, work)
        ]
        yield work, layers, [part for part in parts if part["what"] == "other work"], rows


CASES = [
    *((method, "mlp") for method in catalogue.entries("methods")),
    ("fedclassavg", "convolutions"),
    pytest.param("spherefed", "mobilenet-v2", marks=pytest.mark.nightly),
]


@pytest.fixture(autouse=True, scope="module")
def _without_fvcore():
    """It takes seconds, and is not what these laws are about."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("edgefl.planning.profile.forward_counts", lambda _: (0, 0))
        yield


@sampled(8, ("method", "net"), CASES)
def test_layers_and_other_work_are_the_exchange(method, net):
    """FLOPs, kernels and bytes add up exactly; so do times and energies on every device, and memory."""
    for work, layers, others, rows in each(profiled(method, net)):
        for role, flops in work["flops"].items():
            assert sum(part["flops"][role] for part in (*layers, *others)) == flops
        for name in ("kernels", "moved_bytes"):
            assert sum(part[name] for part in (*layers, *others)) == work[name]
        # All that waits for the backward pass, and every gradient, is some layer's or other work's.
        kept = sum(part["activation_bytes"] for part in (*layers, *others))
        assert kept >= work["peak"].get("activations", 0)
        # FedCurv holds gradients of single samples, and their squares, which no layer makes.
        if "fedcurv" not in work["down"]:
            assert sum(layer["gradient_bytes"] for layer in layers) >= work["peak"].get("gradients", 0)
        for row, parts in rows:
            own = [part for part in parts if part["what"] == "layer"]
            for layer, part in zip(layers, own, strict=True):
                roles = (part[f"{role}_s"] for role in ("forward", "grad_input", "grad_weight"))
                assert sum(roles) == pytest.approx(part["seconds"])
                held = (layer[f"{what}_bytes"] for what in ("parameter", "gradient", "activation"))
                assert part["memory_bytes"] == sum(held)
            assert sum(part["seconds"] for part in parts) == pytest.approx(row["seconds"])
            assert row["seconds"] == row["down_s"] + row["work_s"] + row["up_s"]
            joules = [part["joules"] for part in parts]
            if row["joules"] is None:
                assert None in joules
            else:
                assert sum(joules) == pytest.approx(row["joules"])


def test_an_mlp_by_hand():
    """Digits in batches of 32, 64 to 64 to 10: the ReLU alone keeps its result, for its own gradient.

    The first layer needs no gradient of its input; the weights' gradients are as large as the weights.
    """
    task = {"samples": 64, "clients": 10}
    ((_, layers, _, rows),) = each(profiled("fedavg", "mlp", ("raspberry-pi-4b",), task=task))
    fc1, relu, head = layers
    assert [row["part"] for row in layers] == ["body.fc1", "body.relu1", "head"]
    assert [row["module"] for row in layers] == ["Linear", "ReLU", "Linear"]
    product = 2 * 64 * 64 * 64
    assert fc1["flops"] == {"forward": product, "grad-input": 0, "grad-weight": product, "update": 0}
    assert set(head["flops"].values()) == {2 * 64 * 64 * 10, 0}
    assert fc1["parameter_bytes"] == fc1["gradient_bytes"] == 4 * (64 * 64 + 64)
    assert head["parameter_bytes"] == head["gradient_bytes"] == 4 * (64 * 10 + 10)
    assert [row["activation_bytes"] for row in (fc1, relu, head)] == [0, 4 * 32 * 64, 0]
    ((_, parts),) = rows
    assert parts[1]["memory_bytes"] == 4 * 32 * 64


def test_a_net_without_modules_has_its_parts_as_layers():
    """Two products by hand: each is its part's, by the weights that it has."""

    def init(_):
        return {"body": {"w": torch.empty(6, 12)}, "head": {"w": torch.empty(3, 6)}, BUFFERS: {}}

    def features(weights, x, _):
        return x.flatten(1) @ weights["body"]["w"].mT, weights[BUFFERS]

    net = Net("own", init, features, lambda head, x: x @ head["w"].mT, (1, 3, 4), 3, 6, module=None)
    method = build_method("fedavg", net, LocalTraining(optimizer=Sgd(lr=0.1)))
    trace = meta.trace(method, method.exchanges[0], net, [[{5: 2}]])
    found = meta.by_layer(method, method.exchanges[0], net, [{5: 2}], trace)
    flops = {one.name: sum(work.flops for work in one.work.values()) for one in found}
    assert {name: count for name, count in flops.items() if count} == {
        "body": 2 * 2 * 2 * 5 * 6 * 12,
        "head": 2 * 3 * 2 * 5 * 3 * 6,
    }
    assert [one.name for one in found if one.what == "layer"] == ["body", "head"]
