"""The data set ``folder``: which files are which images of which class, and what is wrong with a folder."""

import os
import struct
import zlib

import numpy as np
import pytest
from image_files import encoded, image, tree
from PIL import Image, ImageOps

from edgefl.core.errors import DataError, ScenarioError
from edgefl.core.notes import note
from edgefl.core.validation import validate
from edgefl.core.yamls import Document
from edgefl.data.images import decoded
from edgefl.data.sources import folder

GIVEN = {"train/cat": 3, "train/dog": 2, "test/cat": 1, "test/dog": 2}


def _source(path, **params):
    return folder.Params(path=str(path), **params).build()


def _read(path, **params):
    return _source(path, **params).read(None, download=False)


def _refused(path, **params):
    with pytest.raises(DataError) as caught:
        _read(path, **params)
    assert caught.value.where
    return str(caught.value)


def test_a_folder_with_both_parts(tmp_path):
    """Classes, counts and shape are known before images are read; labels are in alphabetical order."""
    source = _source(tree(tmp_path / "pets", GIVEN))
    assert (source.spec.name, source.spec.class_names) == ("pets", ("cat", "dog"))
    assert (source.spec.train_size, source.spec.test_size, source.spec.shape) == (5, 3, (3, 4, 6))
    assert [labels.tolist() for labels in source.labels] == [[0, 0, 0, 1, 1], [0, 1, 1]]
    spec, arrays = source.read(None, download=False)
    assert arrays.train_y.tolist() == [0, 0, 0, 1, 1]
    with Image.open(tmp_path / "pets" / "train" / "dog" / "1.png") as last:
        assert (arrays.train_x[4].transpose(1, 2, 0) == np.asarray(last)).all()
    scaled = arrays.train_x / 255
    assert spec.mean == pytest.approx(scaled.mean((0, 2, 3)))
    assert spec.std == pytest.approx(scaled.std((0, 2, 3)))


def test_a_share_of_each_class_is_for_testing(tmp_path):
    """Without train/ and test/, the same fifth of each class is for testing: at least one image."""
    tree(tmp_path, {"a": 10, "b": 2, "c": 25})
    one, other = _read(tmp_path), _read(tmp_path)
    assert np.bincount(one[1].test_y).tolist() == [2, 1, 5]
    assert np.bincount(one[1].train_y).tolist() == [8, 1, 20]
    assert (one[1].test_x == other[1].test_x).all()
    images = {x.tobytes() for x in (*one[1].train_x, *one[1].test_x)}
    assert len(images) == 37  # no image is in both parts


@pytest.mark.parametrize(
    ("counts", "names"),
    [
        ({"10": 2, "2": 2}, ("2", "10")),  # in the order of numbers
        ({"bus": 2, "train": 2}, ("bus", "train")),  # a class may be called train
        ({**GIVEN, "val/cat": 1}, ("cat", "dog")),  # other parts are left alone
    ],
)
def test_what_are_classes(tmp_path, counts, names):
    assert _source(tree(tmp_path, counts)).spec.class_names == names


def test_what_are_images(tmp_path):
    """Hidden files and those beside classes are skipped; folders below a class are the class, or a link."""
    tree(tmp_path / "images", {"a/images": 3})
    tree(tmp_path, {"more": 3, "images/.cache": 1})
    (tmp_path / "images" / "b").symlink_to(tmp_path / "more", target_is_directory=True)
    (tmp_path / "images" / "c").symlink_to("c")
    for name in ("notes.txt", "a/.DS_Store", "a/._0.png", "b/Thumbs.db"):
        (tmp_path / "images" / name).write_bytes(b"x")
    found = [np.bincount(labels).tolist() for labels in _source(tmp_path / "images").labels]
    assert found == [[2, 2], [1, 1]]


def test_a_relative_path_begins_at_the_current_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert folder.Params(path="x/y").path == str(tmp_path / "x" / "y")
    assert folder.Params(path="~/y").path == str(tmp_path / "home" / "y")


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"path": ""}, "path should have at least 1 character"),
        ({"size": 5000}, "size"),
        ({"channels": 2}, "channels"),
        ({"size": "32px"}, "size should be a whole number or be a list; got"),
        ({"size": True}, "size should be a whole number or be a list"),
    ],
)
def test_parameters_out_of_range(params, says):
    settings = {"path": "x", **params}
    with pytest.raises(ScenarioError, match=says):
        validate(folder.Params, settings, Document.of(settings, "test"))


def test_images_are_resized_with_antialiasing(tmp_path):
    """A fine checkerboard becomes its mean and not one of its two levels; both sides may be given."""
    board = Image.fromarray((np.indices((32, 32)).sum(0) % 2 * 255).astype(np.uint8)).convert("RGB")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for place in range(2):
            board.save(tmp_path / name / f"{place}.png")
    _, arrays = _read(tmp_path, size=4)
    assert arrays.train_x.shape == (2, 3, 4, 4)
    assert np.abs(arrays.train_x.astype(int) - 127).max() <= 8
    assert _read(tmp_path, size=[2, 8])[1].train_x.shape == (2, 3, 2, 8)


def test_grey_or_colour(tmp_path):
    """Grey images are repeated over three channels, colour is made grey on request."""
    tree(tmp_path, {"a": 2, "b": 2})
    image(100, mode="L").save(tmp_path / "a" / "0.png")
    image(100, mode="L").save(tmp_path / "a" / "1.png")
    for channels in (3, 1):
        x = _read(tmp_path, channels=channels)[1].train_x
        assert x.shape == (2, channels, 4, 6)
        assert (x[0] == 100).all()


READABLE = {
    "palette_transparent.png": encoded(image(80).quantize(4), transparency=bytes([0, 255])),
    "grey_alpha.png": encoded(image(80, mode="LA")),
    "cmyk.jpg": encoded(image(80).convert("CMYK"), "JPEG", quality=100),
    "sixteen_bit.png": encoded(Image.fromarray(np.full((4, 6), 80 * 256 + 7, dtype=np.uint16))),
    "big_endian.tif": encoded(Image.fromarray(np.full((4, 6), 80 * 256 + 7, dtype=">u2")), "TIFF"),
    "camera.jpg": encoded(image(80), "MPO", save_all=True, append_images=[image(9)]),
    "lossless.webp": encoded(image(80), "WEBP", lossless=True),
}


@pytest.mark.parametrize("name", READABLE)
def test_other_modes_are_converted(tmp_path, name):
    """Palettes, transparency, CMYK and 16 bits: each is the level that it was made of."""
    tree(tmp_path, GIVEN)
    (tmp_path / "train" / "cat" / "0.png").unlink()
    (tmp_path / "train" / "cat" / f"0{name}").write_bytes(READABLE[name])
    x = _read(tmp_path)[1].train_x[0].astype(int)
    assert np.abs(x - 80).max() <= 3


@pytest.mark.parametrize("orientation", [3, 6, 7])
def test_photographs_are_turned_upright(tmp_path, orientation):
    """All of Exif's orientations count, as PIL turns them, for an image's size too."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    for path in tree(tmp_path, {"a": 2, "b": 2}).rglob("*.png"):
        path.write_bytes(encoded(Image.open(path), exif=exif))
    upright = np.asarray(ImageOps.exif_transpose(Image.open(tmp_path / "a" / "0.png")))
    turned = [*_read(tmp_path)[1].train_x, *_read(tmp_path)[1].test_x]
    assert any(np.array_equal(one.transpose(1, 2, 0), upright) for one in turned)


def _bomb(width, height):
    """A PNG of a few bytes whose header says how large it is."""

    def chunk(kind, content):
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(b"")), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


UNREADABLE = {
    "text.png": (b"no image at all", "cannot identify"),
    "cut.png": (encoded(Image.effect_noise((6, 4), 90))[:60], "unreadable"),
    "frames.gif": (encoded(image(1), "GIF", save_all=True, append_images=[image(200)]), "2 frames"),
    "float.tif": (encoded(Image.fromarray(np.ones((4, 6), dtype=np.float32)), "TIFF"), "mode F"),
    "bomb.png": (_bomb(100_000, 100_000), "exceeds limit"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_no_image(tmp_path, name):
    """One message that names the file, for a first image and for a later one."""
    content, says = UNREADABLE[name]
    for place in (f"0{name}", f"9{name}"):
        root = tree(tmp_path / place, GIVEN)
        (root / "train" / "cat" / place).write_bytes(content)
        if place[0] == "0":
            (root / "train" / "cat" / "0.png").unlink()
        message = _refused(root)
        assert says in message
        assert place in message


@pytest.mark.parametrize("layout", [GIVEN, {"cat": 4, "dog": 3}])
def test_images_of_differing_sizes_become_small_squares(tmp_path, layout, caplog):
    note.cache_clear()
    root = tree(tmp_path / "pets", layout)
    (root / next(iter(layout)) / "0.png").write_bytes(encoded(image(80, (7, 4))))
    spec, arrays = _read(root)
    assert spec.shape == arrays.train_x.shape[1:] == arrays.test_x.shape[1:] == (3, 32, 32)
    (told,) = {record.getMessage() for record in caplog.records}
    assert told == "pets: sizes differ, so images become 32 x 32; for others, set task.dataset.size"
    assert _read(root, size=5)[0].shape == (3, 5, 5)


def test_what_is_found_only_while_reading(tmp_path, monkeypatch):
    """An image of another size than those that were looked at becomes as large as they are."""
    monkeypatch.setattr("edgefl.data.images.LOOKED_AT", 4)
    tree(tmp_path, GIVEN)
    (tmp_path / "train" / "cat" / "1.png").write_bytes(encoded(image(80, (7, 4))))
    spec, arrays = _read(tmp_path)
    assert spec.shape == (3, 4, 6)
    assert (arrays.train_x[1] == 80).all()


def test_more_images_than_memory():
    with pytest.raises(DataError, match="Unable to allocate") as caught:
        decoded([], 10**8, (3, 1024, 1024), fit=True)
    assert "smaller size" in caught.value.hint


def test_no_such_folder(tmp_path):
    """The message has the path and where relative ones begin; a file is no folder."""
    message = _refused(tmp_path / "absent")
    assert str(tmp_path / "absent") in message
    assert "current directory" in message
    (tmp_path / "file").write_text("")
    assert "no folder 'file'" in _refused(tmp_path / "file")
    assert "no folder" in _refused(tmp_path / ("x" * 300))


@pytest.mark.parametrize(
    ("counts", "extra", "says"),
    [
        ({}, (), "CLASS/"),
        ({}, ("image.png",), "no class folders"),
        ({}, ("train/", "test/"), "no class folders"),
        (GIVEN, ("train/emu/", "test/emu/"), "'emu' has no images"),
        ({"a": 4}, (), "at least 2"),
        ({"a": 4, "b": 1}, (), "'b' has 1 image"),
        ({"train/a": 1, "train/b": 1}, (), "no test/"),
        ({"test/a": 1, "test/b": 1}, (), "no train/"),
        ({**GIVEN, "test/emu": 1}, (), "'emu' is not in both"),
        (GIVEN, ("train/dog/photo.heic",), "train/dog/photo.heic"),
        ({"a": 2, "b": 2}, (os.fsdecode(b"\xff/"),), "valid UTF-8"),
    ],
)
def test_what_is_wrong_with_a_folder(tmp_path, counts, extra, says):
    """Files of another kind are named, since an image that is left out silently would be missed."""
    tree(tmp_path, counts)
    for name in extra:
        (tmp_path / name).mkdir(parents=True) if name.endswith("/") else (tmp_path / name).write_bytes(b"x")
    assert says in _refused(tmp_path)


def test_links_are_named(tmp_path):
    """To a folder above, to themselves, and to nothing: none is left out silently, or followed."""
    for name, target in (("above", ".."), ("itself.png", "itself.png"), ("nothing.png", "absent.png")):
        root = tree(tmp_path / name, GIVEN)
        (root / "train" / "cat" / name).symlink_to(target)
        assert name in _refused(root)
