"""Datasets in the layouts in which they are published, on small generated files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError
from test_readers import _idx

from edgefl.core import catalogue
from edgefl.core.errors import DataError
from edgefl.data import source_of
from edgefl.data.sources import cifar10


def source(name, **params):
    """A dataset of the catalogue."""
    module = catalogue.load("datasets", name)
    return source_of(module, module.Params(**params))


def images(count, shape):
    """Different images."""
    return np.random.default_rng(count).integers(256, size=(count, *shape), dtype=np.uint8)


@pytest.mark.parametrize(
    ("split", "classes", "first"),
    [("letters", 26, 1), ("byclass", 62, 0), ("balanced", 47, 0), ("digits", 10, 0)],
)
def test_emnist_is_turned_and_counted_from_0(tmp_path, split, classes, first):
    """NIST's files hold images column by column; of letters, a is 1."""
    emnist = source("emnist", split=split)
    y = np.arange(classes, dtype=np.uint8)
    x = images(classes, (28, 28))
    raw = tmp_path / "EMNIST" / "raw"
    raw.mkdir(parents=True)
    for part in ("train", "test"):
        (raw / f"emnist-{split}-{part}-images-idx3-ubyte").write_bytes(_idx(x.transpose(0, 2, 1)))
        (raw / f"emnist-{split}-{part}-labels-idx1-ubyte").write_bytes(_idx(y + np.uint8(first)))
    spec, found = emnist.read(tmp_path, download=False)
    assert np.array_equal(found.train_x[:, 0], x)
    assert found.train_y.tolist() == found.test_y.tolist() == y.tolist()
    assert spec.mean == pytest.approx([x.mean() / 255])
    assert len(set(spec.class_names)) == spec.classes == classes
    if split == "byclass":
        assert "".join(spec.class_names[8:12]) + spec.class_names[36] == "89ABa"


@pytest.mark.parametrize(("validation", "trained"), [("train", ("train", "valid")), ("leave", ("train",))])
@pytest.mark.parametrize("below", ["", "CINIC-10"])
def test_cinic_10s_validation_part_is_chosen(tmp_path, validation, trained, below):
    """Its images are trained on or are not used; never tested on."""
    pixels = {}
    for part in ("train", "valid", "test"):
        pixels[part] = images(20 + len(part), (32, 32, 3))[:20]
        for place, image in enumerate(pixels[part]):
            folder = tmp_path / below / part / cifar10.SPEC.class_names[place // 2]
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(folder / f"cifar10-{place:02}.png")
    _, found = source("cinic10", validation=validation).read(tmp_path, download=False)
    expected = np.concatenate([pixels[part] for part in trained])
    assert np.array_equal(found.train_x.transpose(0, 2, 3, 1), expected)
    assert found.train_y.tolist() == [place // 2 for _ in trained for place in range(20)]
    assert np.array_equal(found.test_x.transpose(0, 2, 3, 1), pixels["test"])


def test_cinic_10_is_not_read_before_it_is_chosen():
    """There is no default."""
    with pytest.raises(ValidationError, match="validation"):
        catalogue.load("datasets", "cinic10").Params()


@pytest.fixture
def tiny(tmp_path):
    """Tiny ImageNet's archive: two training images and a validation image of each class."""
    ids = [f"n{number:08}" for number in range(200)]
    (tmp_path / "wnids.txt").write_text("\n".join(reversed(ids)))
    (tmp_path / "val" / "images").mkdir(parents=True)
    rows = []
    for label, name in enumerate(ids):
        folder = tmp_path / "train" / name
        (folder / "images").mkdir(parents=True)
        (folder / f"{name}_boxes.txt").write_text("x.JPEG\t0\t0\t63\t63\n")
        for place in range(2):
            Image.new("RGB", (64, 64), (label, place, 0)).save(folder / "images" / f"{name}_{place}.JPEG")
        file = f"val_{(label * 7) % 200}.JPEG"
        Image.new("RGB", (64, 64), (label, 99, 0)).save(tmp_path / "val" / "images" / file)
        rows.append(f"{file}\t{name}\t0\t0\t63\t63")
    (tmp_path / "val" / "val_annotations.txt").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_tiny_imagenets_archive_is_read(tiny):
    """Classes in the order of their ids, whatever the list's; test images by their own table."""
    spec, found = source("tiny-imagenet").read(tiny, download=False)
    assert spec.shape == (3, 64, 64)
    assert found.train_y.tolist() == [label for label in range(200) for _ in range(2)]
    assert found.test_y.tolist() == list(range(200))
    for x, y in ((found.train_x, found.train_y), (found.test_x, found.test_y)):
        assert np.abs(x[:, 0].mean(axis=(1, 2)) - y).max() < 3  # JPEG is lossy


def test_a_broken_table_of_tiny_imagenet_is_refused(tiny):
    """An id that is no class."""
    (tiny / "val" / "val_annotations.txt").write_text("val_0.JPEG\tn99999999\t0\t0\t1\t1\n")
    with pytest.raises(DataError, match="test images' classes"):
        source("tiny-imagenet").read(tiny, download=False)


@pytest.mark.parametrize(
    ("name", "params", "recipe"),
    [
        ("emnist", {}, "EMNIST/raw"),
        ("cinic10", {"validation": "train"}, "datashare"),
        ("tiny-imagenet", {}, "tiny-imagenet-200.zip"),
    ],
)
def test_what_is_not_there_is_refused_with_a_recipe(tmp_path, name, params, recipe):
    """The message says what is needed, and where from."""
    with pytest.raises(DataError, match=f"no {name}.* files in") as caught:
        source(name, **params).read(tmp_path, download=False)
    assert recipe in caught.value.hint


def test_sizes_are_the_published_ones():
    """Cohen et al. 2017, Table II; Darlow et al. 2018; CS231n."""
    sizes = {name: source("emnist", split=name).spec for name in ("letters", "byclass", "balanced", "digits")}
    assert {name: (one.classes, one.train_size, one.test_size) for name, one in sizes.items()} == {
        "letters": (26, 124_800, 20_800),
        "byclass": (62, 697_932, 116_323),
        "balanced": (47, 112_800, 18_800),
        "digits": (10, 240_000, 40_000),
    }
    assert source("cinic10", validation="train").spec == replace(
        source("cinic10", validation="leave").spec, train_size=180_000
    )
