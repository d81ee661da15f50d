"""The torchvision models against torchvision's own."""

from __future__ import annotations

import importlib

import pytest
import torch

from edgefl.models import googlenet, lstm, mobilenet_v2, resnet18, resnet34, resnet50, shufflenet_v2
from edgefl.protocol import BUFFERS
from edgefl.protocol.vision import torchvision


@pytest.mark.parametrize(
    ("model", "original", "classifier"),
    [
        (resnet18, "resnet18", "fc"),
        (resnet34, "resnet34", "fc"),
        (resnet50, "resnet50", "fc"),
        (shufflenet_v2, "shufflenet_v2_x1_0", "fc"),
        (googlenet, "googlenet", "fc"),
        (mobilenet_v2, "mobilenet_v2", "classifier.1"),
    ],
)
def test_logits_agree_with_torchvision(model, original, classifier):
    """With the ImageNet stem and the same weights, torchvision's network gives the same logits."""
    net = model.Params(stem="imagenet").build((3, 64, 64), 10)
    weights = net.init(3)
    # Statistics other than the initial 0 and 1.
    x = torch.randn(4, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    weights = {**weights, BUFFERS: net.features(weights, x, True)[1]}
    without = {"aux_logits": False, "init_weights": False} if original == "googlenet" else {}
    network = torchvision().models.get_model(original, weights=None, num_classes=10, **without).eval()
    state = {**weights["body"], **weights[BUFFERS]}
    state |= {f"{classifier}.{name}": value for name, value in weights["head"].items()}
    missing, unexpected = network.load_state_dict(state, strict=False)
    assert all(name.endswith("num_batches_tracked") for name in missing)
    assert unexpected == []
    torch.testing.assert_close(net.logits(weights, x), network(x))


def test_running_statistics_agree_with_torchvision():
    """A training pass moves the running statistics as torchvision's network moves its own."""
    net = resnet18.Params(stem="imagenet").build((3, 32, 32), 10)
    weights = net.init(0)
    x = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    network = torchvision().models.resnet18(weights=None, num_classes=10).train()
    network.load_state_dict({**weights["body"], **weights[BUFFERS]}, strict=False)
    network(x)
    expected = {name: value for name, value in network.named_buffers() if "num_batches" not in name}
    torch.testing.assert_close(net.features(weights, x, True)[1], expected)


def test_the_wrap_ends_the_body():
    """The wrapped features are the plain ones through one more linear layer, with no activation after it."""
    net = resnet18.Params(wrap=16).build((3, 32, 32), 10)
    plain = resnet18.Params().build((3, 32, 32), 10)
    weights = net.init(0)
    x = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    found, _ = net.features(weights, x, False)
    inner, _ = plain.features(weights, x, False)
    expected = torch.nn.functional.linear(inner, weights["body"]["fc.weight"], weights["body"]["fc.bias"])
    torch.testing.assert_close(found, expected)
    assert net.feature_width == 16


def test_other_import_errors_are_not_hidden(monkeypatch):
    """Only the missing operators are mended; any other failure of torchvision's import is passed on."""

    def broken(name):
        raise RuntimeError(f"{name} is broken")

    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(RuntimeError, match="torchvision is broken"):
        torchvision()


def test_the_lstm_is_torchs():
    """The same weights in torch's LSTM, whose two biases are added, give the same last hidden state."""
    net = lstm.Params(hidden=5).build((3, 1, 7), 4)
    weights = net.init(0)
    x = torch.randn(2, 3, 1, 7, generator=torch.Generator().manual_seed(0))
    network = torch.nn.LSTM(3, 5, batch_first=True)
    body = weights["body"]
    state = {"weight_ih_l0": body["inputs.weight"], "weight_hh_l0": body["state.weight"]}
    state |= {"bias_ih_l0": body["inputs.bias"], "bias_hh_l0": torch.zeros(20)}
    network.load_state_dict(state)
    torch.testing.assert_close(net.features(weights, x, False)[0], network(x.squeeze(2).mT)[1][0][0])


def test_a_projection_head_follows_the_wrap():
    """A hidden layer as wide as its input with ReLU, then a linear layer."""
    net = resnet18.Params(wrap=8, projection=4).build((3, 8, 8), 10)
    plain = resnet18.Params(wrap=8).build((3, 8, 8), 10)
    weights, x = net.init(0), torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    body = weights["body"]
    renamed = {**body, "fc.weight": body["fc.0.weight"], "fc.bias": body["fc.0.bias"]}
    inner, _ = plain.features({**weights, "body": renamed}, x, False)
    hidden = torch.nn.functional.linear(inner, body["fc.1.weight"], body["fc.1.bias"]).relu()
    expected = torch.nn.functional.linear(hidden, body["fc.3.weight"], body["fc.3.bias"])
    torch.testing.assert_close(net.features(weights, x, False)[0], expected)
