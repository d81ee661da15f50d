"""Parameters and multiply-adds of the models, derived by hand."""

import importlib

import pytest
import torch

from edgefl.protocol import BUFFERS, leaves

CIFAR = (3, 32, 32)

# One row: model, its parameters, sample shape, parameter count, values of running statistics.
SIZES = [
    # 784, 512, 256, 128, 62 (FLex&Chill, FEMNIST): 401,920 + 131,328 + 32,896 + 128*10 + 10
    ("mlp", {"hidden": (512, 256, 128)}, (1, 28, 28), 567_434, 0),
    # convolutions (3*25*10 + 10) + (10*25*20 + 20); 32 -> 14 -> 5, so a flat width of 20*5*5 = 500, then
    # 500*256 + 256 and a head of 256*10 + 10
    ("cnn2", {}, CIFAR, 136_606, 0),
    # McMahan et al.: (25*32 + 32) + (32*25*64 + 64); 28 -> 14 -> 7, so a flat width of 64*7*7 = 3,136, then
    # 3,136*512 + 512 and a head of 512*10 + 10
    ("cnn2", {"channels": (32, 64), "hidden": 512, "padding": "same"}, (1, 28, 28), 1_663_370, 0),
    # convolutions (3*25*16 + 16) + (16*25*32 + 32), a flat width of 32*5*5 = 800, then (800*120 + 120) +
    # (120*84 + 84) + (84*84 + 84) + (84*256 + 256), and a head of 256*10 + 10
    ("fedcka_cnn", {}, CIFAR, 151_802, 0),
    # MOON's: (3*25*6 + 6) + (6*25*16 + 16), 400*120 + 120, and the same from there on
    ("fedcka_cnn", {"channels": (6, 16)}, CIFAR, 92_626, 0),
    # He et al.'s 11,689,512 less the classifier's 513,000, plus 512*512 + 512 and 512*10 + 10 (FedClassAvg);
    # norms of 64 + 4*64 + 5*(128 + 256 + 512) = 4,800 channels, a mean and a variance each
    ("resnet18", {"stem": "imagenet", "wrap": 512}, CIFAR, 11_444_298, 9_600),
    # with 3*3 instead of 7*7 weights a filter, without the wrap; group norm has no statistics
    ("resnet18", {"norm": "group"}, CIFAR, 11_173_962, 0),
    # torchvision's 3,504,872 less 1,281,000, plus 1,280*10 + 10; 17,056 normalised channels
    ("mobilenet_v2", {}, CIFAR, 2_236_682, 34_112),
    # one channel instead of three: less 2*9*32
    ("mobilenet_v2", {"norm": "group"}, (1, 28, 28), 2_236_106, 0),
    # convolutions of 9*(3*32 + 32*64 + 64*64 + 64*64 + 64*128 + 128*128 + 128*256); 2*736 for the norms,
    # 256*2*2*10 for the head
    ("spherefed_convnet", {}, CIFAR, 620_832, 0),
    # FedNTD, section G.3
    ("resnet10", {}, CIFAR, 4_903_242, 5_760),
    # with a shortcut of 64*64 weights, and its norm, where the first block halves the image
    ("resnet34", {"stem": "tiny"}, (3, 64, 64), 21_282_122 + 64 * 64 + 128, 17_152),
    # MOON's head on a wrap: 2,048*512 + 512, 512*512 + 512 and 512*256 + 256, before 256*10 + 10
    ("resnet50", {"wrap": 512, "projection": 256}, CIFAR, 23_520_842 - 20_490 + 1_443_072 + 2_570, 53_120),
    # torchvision's features of VGG-13 with batch norm, 9,410,880 without the biases before norms (2,944),
    # and a head of 512*10 + 10
    ("vgg13", {}, CIFAR, 9_410_880 - 2_944 + 5_130, 5_888),
    # ResNet-18's, and in both blocks of each width w two layers w*(w/16) with biases w/16 and w
    (
        "senet18",
        {},
        CIFAR,
        11_173_962 + 2 * sum(w * w // 8 + w // 16 + w for w in (64, 128, 256, 512)),
        9_600,
    ),
    # (3*9*64 + 64) + (64*9*128 + 128) + (128*9*256 + 256), then 2,304*512 + 512, 512*512 + 512 and the head
    ("alexnet", {}, CIFAR, 1_818_762, 0),
    # (9*5*32 + 32) + (32*5*64 + 64), a flat width of 64*32 = 2,048, then 2,048*128 + 128 and 128*6 + 6
    ("cnn1d", {}, (9, 1, 128), 274_822, 0),
    # four gates of 64: 256*(9 + 64 + 1), and 64*6 + 6
    ("lstm", {}, (9, 1, 128), 19_334, 0),
]


def built(name, params, shape, classes=10):
    """The net of a model's name."""
    module = importlib.import_module(f"edgefl.models.{name}")
    return module.Params(**params).build(shape, classes)


@pytest.mark.parametrize(("name", "params", "shape", "parameters", "statistics"), SIZES)
def test_sizes(name, params, shape, parameters, statistics):
    """Parameters and running statistics are as many as the layers' formulas say."""
    weights = built(name, params, shape, 6 if shape[0] == 9 else 10).on_meta()  # UCI HAR has 6 activities
    assert parameters == sum(leaf.numel() for part in ("body", "head") for leaf in leaves(weights[part]))
    assert statistics == sum(leaf.numel() for leaf in leaves(weights[BUFFERS]))


@pytest.mark.nightly
def test_tiny_stem_doubles_the_stride():
    """MobileNetV2's stems shrink an image by 8, 16 and 32: the last map is 4x4 on 32, 64 and 128 pixels."""
    for stem, size in (("cifar", 32), ("tiny", 64), ("imagenet", 128)):
        module = built("mobilenet_v2", {"stem": stem}, (3, size, size))
        network = module.module(module.on_meta())
        found = network.get_submodule("body").features(torch.empty(1, 3, size, size, device="meta"))
        assert found.shape == (1, 1280, 4, 4)
