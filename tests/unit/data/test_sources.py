import os
from pathlib import Path

import numpy as np
import pytest

from edgefl.core import catalogue
from edgefl.data.sources import cifar10, digits, mnist


@pytest.fixture
def data_folder():
    """The folder of real data that EDGEFL_DATA names."""
    folder = os.environ.get("EDGEFL_DATA")
    if not folder:
        pytest.skip("EDGEFL_DATA names no folder of real data")
    return Path(folder)


def _moments(x):
    scaled = x / 255
    return scaled.mean((0, 2, 3)), scaled.std((0, 2, 3))


def test_digits_are_all_of_scikit_learns():
    """1,797 images in two parts, each class about a fifth in the test part, brightest 16 -> 255."""
    found = digits.load(None, download=False)
    assert found.train_x.shape == (1438, 1, 8, 8)
    assert found.test_x.shape == (359, 1, 8, 8)
    assert np.bincount(found.test_y).tolist() == [36, 36, 35, 37, 36, 36, 36, 36, 35, 36]
    assert found.train_x.max() == 255
    # 17 levels, 0 to 16, times 255 / 16
    assert set(np.unique(found.train_x)) <= {round(level * 255 / 16) for level in range(17)}
    assert found.train_x.dtype == np.uint8
    assert found.train_y.dtype == np.int64


def test_digits_keep_image_and_label_together():
    """Every image of the split is in scikit-learn's set with the same label."""
    from sklearn.datasets import load_digits

    whole = load_digits()
    known = {
        np.rint(image * 255 / 16).astype(np.uint8).tobytes(): label
        for image, label in zip(*_pair(whole), strict=True)
    }
    found = digits.load(None, download=False)
    for x, y in ((found.train_x, found.train_y), (found.test_x, found.test_y)):
        assert [known[image.tobytes()] for image in x] == y.tolist()


def _pair(whole):
    return whole.images, whole.target


def test_digits_constants_are_the_training_parts():
    """Mean and deviation are measured on the training part, to four digits."""
    mean, std = _moments(digits.load(None, download=False).train_x)
    assert digits.SPEC.mean == pytest.approx(mean, abs=5e-5)
    assert digits.SPEC.std == pytest.approx(std, abs=5e-5)


def test_digits_need_no_folder_and_never_change():
    """The split is the same whatever the arguments: no part of a run's seed."""
    one = digits.load(None, download=False)
    other = digits.load(Path("nowhere"), download=True)
    assert (one.test_x == other.test_x).all()


def test_real_mnist(data_folder):
    """60,000 and 10,000 images whose moments are the constants' to four digits; the first is a 5."""
    found = mnist.Params().build().load(data_folder, download=False)
    assert found.train_x.shape == (60_000, 1, 28, 28)
    assert found.test_x.shape == (10_000, 1, 28, 28)
    assert found.train_y[:5].tolist() == [5, 0, 4, 1, 9]
    mean, std = _moments(found.train_x)
    assert mnist.SPEC.mean == pytest.approx(mean, abs=5e-5)
    assert mnist.SPEC.std == pytest.approx(std, abs=5e-5)


@pytest.mark.nightly
def test_real_cifar10(data_folder):
    """50,000 and 10,000 images, evenly classed; JPEG copies move the moments by less than 0.003."""
    found = cifar10.Params().build().load(data_folder, download=False)
    assert found.train_x.shape == (50_000, 3, 32, 32)
    assert np.bincount(found.train_y).tolist() == [5000] * 10
    assert np.bincount(found.test_y).tolist() == [1000] * 10
    mean, std = _moments(found.train_x[::10])
    assert cifar10.SPEC.mean == pytest.approx(mean, abs=0.005)
    assert cifar10.SPEC.std == pytest.approx(std, abs=0.005)


def test_cifar100s_names_are_a_hundred_in_order():
    """Fine labels are alphabetical: 0 apple, 53 orange, 99 worm."""
    names = catalogue.load("datasets", "cifar100").SPEC.class_names
    assert len(names) == len(set(names)) == 100
    assert list(names) == sorted(names)
    assert (names[0], names[53], names[99]) == ("apple", "orange", "worm")
