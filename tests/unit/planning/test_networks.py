"""Networks that are measured, by library and name."""

import pytest
from nightly import sampled

from edgefl.compute.steps import forward_pass, training_step
from edgefl.core.errors import UserError
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.yamls import Document
from edgefl.planning.benchmarks import BenchmarkRow
from edgefl.planning.validation import maker

IMAGE = (3, 224, 224)
DOCUMENT = Document.parse("rows:\n  - {network: x, settings: {}}\n", "mine.yaml")


def made(name, library="torchvision", image=IMAGE, classes=1000, **settings):
    """A network's maker."""
    network = {"network": name, "library": library, "settings": settings, "image": image, "classes": classes}
    return maker(BenchmarkRow.model_construct(**network), DOCUMENT, 0)


def multiply_adds(name, *args, image=IMAGE, **more):
    """Of the inference of one image."""
    return forward_pass(made(name, *args, image=image, **more), 1, image).flops // 2


# Forward multiply-adds by hand, layer by layer: outputs x inputs x taps x places.
LENET = 20 * 25 * 24**2 + 50 * 20 * 25 * 8**2 + 800 * 400 + 400 * 10
ALEXNET = (
    96 * 3 * 121 * 54**2
    + 256 * 96 * 25 * 26**2
    + (384 * 256 + 384 * 384 + 256 * 384) * 9 * 12**2
    + 6400 * 4096
    + 4096 * 10
)
_FIRES = ((96, 16, 64, 56), (128, 16, 64, 56), (128, 32, 128, 56))
_FIRES += ((256, 32, 128, 28), (256, 48, 192, 28), (384, 48, 192, 28), (384, 64, 256, 28), (512, 64, 256, 14))
SQUEEZENET = (
    96 * 3 * 49 * 112**2
    + sum((inputs * less + less * out * 10) * side**2 for inputs, less, out, side in _FIRES)
    + 512 * 10 * 14**2
)


def test_published_networks_are_what_their_source_defines():
    """Their multiply-adds are those that the source's layers have by hand."""
    assert multiply_adds("mnn-lenet", "published", image=(1, 28, 28), classes=10) == LENET
    assert multiply_adds("mnn-alexnet", "published", classes=10) == ALEXNET
    assert multiply_adds("mnn-squeezenet", "published", classes=10) == SQUEEZENET
    assert 1.5e9 < multiply_adds("mnn-googlenet", "published", classes=10) < 1.6e9


@sampled(
    1,
    ("name", "expected"),
    # Of torchvision's own documentation (models' GFLOPS, which are multiply-adds).
    [("mobilenet_v2", 0.30e9), ("vit_b_16", 17.56e9), ("swin_t", 4.49e9), ("convnext_tiny", 4.46e9)],
)
def test_torchvisions_networks(name, expected):
    """Traced without weights, their multiply-adds are those that torchvision states, to its digits."""
    forward = multiply_adds(name)
    assert forward == pytest.approx(expected, rel=0.02)
    whole = training_step(made(name), 2, IMAGE, Sgd(lr=0.1)).flops
    assert 2.9 < whole / (2 * 2 * forward) <= 3.0


@pytest.mark.parametrize(
    ("name", "library", "settings", "words"),
    [
        ("resnet19", "torchvision", {}, "torchvision has no network 'resnet19'"),
        ("nope", "edgefl", {}, "unknown model 'nope'"),
        ("resnet18", "torchvision", {"weights": "DEFAULT"}, "without weights"),
        ("resnet18", "torchvision", {"width_mult": 0.5}, "refuses these settings: TypeError"),
        ("mnn-lenet", "published", {"width": 2}, "has no settings"),
    ],
)
def test_what_no_library_has_is_refused(name, library, settings, words):
    """With the row's line; torchvision's own words about its settings."""
    with pytest.raises(UserError, match=words) as caught:
        made(name, library, **settings)()
    assert caught.value.where.startswith("mine.yaml:2")
