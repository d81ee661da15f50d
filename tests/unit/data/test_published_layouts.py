"""Datasets in the layouts in which they are published, on small generated files."""

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError
from test_readers import _idx

from edgefl.core import catalogue
from edgefl.core.errors import DataError
from edgefl.data.batching import normalised
from edgefl.data.federation import federate
from edgefl.data.sources import cifar10


def source(name, **params):
    return catalogue.load("datasets", name).Params(**params).build()


def images(count, shape):
    return np.random.default_rng(count).integers(256, size=(count, *shape), dtype=np.uint8)


@pytest.mark.parametrize(
    ("split", "classes", "first"),
    [("letters", 26, 1), ("byclass", 62, 0)],
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


@pytest.mark.parametrize(
    ("validation", "trained", "below"), [("train", ("train", "valid"), ""), ("leave", ("train",), "CINIC-10")]
)
def test_cinic_10s_validation_part_is_chosen(tmp_path, validation, trained, below):
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
    with pytest.raises(ValidationError, match="validation"):
        source("cinic10")  # there is no default


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
            # Some of the archive's images are grey.
            mode, level = ("RGB", (label, place, 0)) if place else ("L", label)
            Image.new(mode, (64, 64), level).save(folder / "images" / f"{name}_{place}.JPEG")
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


def test_leafs_files_say_who_wrote_what(tmp_path):
    """A writer's characters are in both parts; white is 1.0 in LEAF's files; a class is a character."""
    written = {part: {} for part in ("train", "test")}
    for part, count in (("train", 62), ("test", 2)):
        for number in (1, 2):
            x = np.full((count, 784), number / 2)
            written[part][f"f{number}"] = {"x": x.tolist(), "y": list(range(count))}
            folder = tmp_path / "femnist" / "data" / part
            folder.mkdir(parents=True, exist_ok=True)
            one = {"user_data": {f"f{number}": written[part][f"f{number}"]}}
            (folder / f"all_data_{number}.json").write_text(json.dumps(one))
    spec, found = source("femnist").read(tmp_path, download=False)
    assert found.train_users.tolist() == [0] * 62 + [1] * 62
    assert found.test_users.tolist() == [0, 0, 1, 1]
    assert np.unique(found.train_x[found.train_users == 0]).tolist() == [128]
    assert np.unique(found.test_x[found.test_users == 1]).tolist() == [255]
    assert (spec.class_names[9], spec.class_names[10], spec.class_names[36]) == ("9", "A", "a")
    # A second time from the cache.
    assert source("femnist").read(tmp_path, download=False)[1].test_users.tolist() == [0, 0, 1, 1]


@pytest.fixture
def har(tmp_path):
    """UCI HAR's files; a value says its signal, its sample and its time step."""
    axes = [f"{what}_{axis}" for what in ("body_acc", "body_gyro", "total_acc") for axis in "xyz"]
    for part, samples in (("train", 12), ("test", 6)):
        folder = tmp_path / "UCI HAR Dataset" / part
        (folder / "Inertial Signals").mkdir(parents=True)
        for signal, name in enumerate(axes):
            values = signal + np.arange(samples)[:, None] / 100 + np.arange(128) / 100_000
            np.savetxt(folder / "Inertial Signals" / f"{name}_{part}.txt", values)
        np.savetxt(folder / f"y_{part}.txt", np.arange(samples) % 6 + 1, fmt="%d")
        np.savetxt(folder / f"subject_{part}.txt", np.arange(samples) // 4 + 1, fmt="%d")
    return tmp_path


def test_uci_hars_signals_are_not_scaled(har):
    """float32 (N, 9, 1, 128) in the files' units; activities and people from 0; moments of the values."""
    spec, found = source("uci-har").read(har, download=False)
    assert (found.train_x.dtype, found.train_x.shape) == (np.float32, (12, 9, 1, 128))
    assert found.train_x[7, 3, 0, 50] == pytest.approx(3 + 0.07 + 0.0005)
    assert found.train_y.tolist() == [0, 1, 2, 3, 4, 5] * 2
    assert found.train_users.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert spec.mean == pytest.approx(found.train_x.mean((0, 2, 3), dtype=np.float64))
    federation = federate(spec, found, lambda *_: [np.arange(12)], 1, seed=0)
    x = normalised(federation, np.arange(12), "train")
    assert x.mean((0, 2, 3)).abs().max() < 1e-3
    assert x.std((0, 2, 3), correction=0).numpy() == pytest.approx(1, abs=1e-3)
    assert federation.train_x[7, 3, 0, 50] == found.train_x[7, 3, 0, 50]  # normalised into memory of its own


@pytest.mark.parametrize(
    ("name", "params", "recipe"),
    [
        ("emnist", {}, "EMNIST/raw"),
        ("cinic10", {"validation": "train"}, "datashare"),
        ("tiny-imagenet", {}, "tiny-imagenet-200.zip"),
        ("femnist", {}, "preprocess.sh"),
        ("uci-har", {}, "archive.ics.uci.edu"),
    ],
)
def test_what_is_not_there_is_refused_with_a_recipe(tmp_path, name, params, recipe):
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
