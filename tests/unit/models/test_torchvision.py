"""The torchvision models against torchvision's own, and torch's LSTM."""

import pytest
import torch
from nightly import sampled
from torch.nn import functional as F

from edgefl.models import googlenet, lstm, mobilenet_v2, resnet18, resnet50, shufflenet_v2
from edgefl.protocol import BUFFERS
from edgefl.protocol.vision import torchvision


@pytest.mark.nightly
@sampled(
    2,
    ("model", "original", "classifier"),
    [
        (resnet18, "resnet18", "fc"),
        (resnet50, "resnet50", "fc"),
        (shufflenet_v2, "shufflenet_v2_x1_0", "fc"),
        (googlenet, "googlenet", "fc"),
        (mobilenet_v2, "mobilenet_v2", "classifier.1"),
    ],
)
def test_models_agree_with_torchvision(model, original, classifier):
    """With the ImageNet stem and the same weights: running statistics after a pass, and logits with them."""
    net = model.Params(stem="imagenet").build((3, 64, 64), 10)
    weights = net.init(3)
    without = {"aux_logits": False, "init_weights": False} if original == "googlenet" else {}
    network = torchvision().models.get_model(original, weights=None, num_classes=10, **without).train()
    state = {**weights["body"], **weights[BUFFERS]}
    state |= {f"{classifier}.{name}": value for name, value in weights["head"].items()}
    missing, unexpected = network.load_state_dict(state, strict=False)
    assert all(name.endswith("num_batches_tracked") for name in missing)
    assert unexpected == []
    x = torch.randn(4, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    weights = {**weights, BUFFERS: net.features(weights, x, True)[1]}
    network(x)
    expected = {name: value for name, value in network.named_buffers() if "num_batches" not in name}
    torch.testing.assert_close(weights[BUFFERS], expected)
    torch.testing.assert_close(net.logits(weights, x), network.eval()(x))


def test_wrap_and_projection_end_the_body():
    """The wrap is one linear layer alone; then a hidden layer as wide with ReLU, and another linear layer."""
    plain = resnet18.Params().build((3, 8, 8), 10)
    x = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    for projection, names in ((None, ["fc"]), (4, ["fc.0", "fc.1", "fc.3"])):
        net = resnet18.Params(wrap=8, projection=projection).build((3, 8, 8), 10)
        weights = net.init(0)
        body = weights["body"]
        expected, _ = plain.features(weights, x, False)
        for name in names:
            expected = F.linear(expected, body[f"{name}.weight"], body[f"{name}.bias"])
            expected = expected.relu() if name == "fc.1" else expected
        torch.testing.assert_close(net.features(weights, x, False)[0], expected)
        assert net.feature_width == (projection or 8)


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
