import os
from pathlib import Path

import numpy as np
import pytest

from edgefl.core import catalogue
from edgefl.data.sources import digits, mnist


def _moments(x):
    scaled = x / 255
    return scaled.mean((0, 2, 3)), scaled.std((0, 2, 3))


def test_digits_are_all_of_scikit_learns():
    """1,797 images in two parts, each class about a fifth in the test part, brightest 16 -> 255."""
    from sklearn.datasets import load_digits

    found, other = digits.load(None, download=False), digits.load(Path("nowhere"), download=True)
    assert (found.train_x.shape, found.test_x.shape) == ((1438, 1, 8, 8), (359, 1, 8, 8))
    assert (found.train_x.dtype, found.train_y.dtype) == (np.uint8, np.int64)
    assert np.bincount(found.test_y).tolist() == [36, 36, 35, 37, 36, 36, 36, 36, 35, 36]
    whole = load_digits()
    known = {
        np.rint(x * 255 / 16).astype(np.uint8).tobytes(): y
        for x, y in zip(whole.images, whole.target, strict=True)
    }
    for x, y in ((found.train_x, found.train_y), (found.test_x, found.test_y)):
        assert [known[image.tobytes()] for image in x] == y.tolist()
    mean, std = _moments(found.train_x)
    assert digits.SPEC.mean == pytest.approx(mean, abs=5e-5)
    assert digits.SPEC.std == pytest.approx(std, abs=5e-5)
    assert (found.test_x == other.test_x).all()  # whatever the arguments


@pytest.mark.nightly
@pytest.mark.skipif("EDGEFL_DATA" not in os.environ, reason="EDGEFL_DATA names no folder of real data")
def test_real_mnist():
    """60,000 and 10,000 images whose moments are the constants' to four digits; the first is a 5."""
    found = mnist.Params().build().load(Path(os.environ["EDGEFL_DATA"]), download=False)
    assert (found.train_x.shape, found.test_x.shape) == ((60_000, 1, 28, 28), (10_000, 1, 28, 28))
    assert found.train_y[:5].tolist() == [5, 0, 4, 1, 9]
    mean, std = _moments(found.train_x)
    assert mnist.SPEC.mean == pytest.approx(mean, abs=5e-5)
    assert mnist.SPEC.std == pytest.approx(std, abs=5e-5)


def test_cifar100s_names_are_a_hundred_in_order():
    """Fine labels are alphabetical: 0 apple, 53 orange, 99 worm."""
    names = catalogue.load("datasets", "cifar100").SPEC.class_names
    assert len(names) == len(set(names)) == 100
    assert list(names) == sorted(names)
    assert (names[0], names[53], names[99]) == ("apple", "orange", "worm")
