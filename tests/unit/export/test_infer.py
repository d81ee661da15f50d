"""Images to class names."""

import json

import numpy as np
import pytest
from commands import run_command
from graphs import BYTE, FLOAT, write
from PIL import Image

from edgefl.core.errors import UserError
from edgefl.data.images import decoded
from edgefl.export.infer import infer, picture

NAMES = ["dark", "grey", "bright"]
FACTS = {"class_names": NAMES, "shape": [1, 4, 4], "mean": [0.5], "std": [0.25]}
# Logits of the mean brightness b in 0 to 1: dark -20 b, grey -10, bright 20 (b - 1).
MEANS = [("ReduceMean", ["f", "axes"], ["m"], {"keepdims": 0}), ("Gemm", ["m", "w", "b"], ["y"])]


def sees(path, *, raw=False):
    """A model that classifies an image by its brightness."""
    scale = 1 / 255 if not raw else 1.0
    weights = {
        "axes": np.array([2, 3]),
        "s": np.float32(scale),
        "w": np.array([[-20.0, 0.0, 20.0]], np.float32) * (0.25 if raw else 1),
        "b": np.array([-10.0 if raw else 0.0, -10.0, -10.0 if raw else -20.0], np.float32),
    }
    head = [("Cast", ["x"], ["c"], {"to": 1}), ("Mul", ["c", "s"], ["f"])]
    return write(path, [*head, *MEANS], weights, ["batch", 1, 4, 4], kind=FLOAT if raw else BYTE, facts=FACTS)


def grey(path, value, size=(4, 4), mode="L"):
    Image.new("L", size, value).convert(mode).save(path)
    return path


@pytest.mark.parametrize("raw", [False, True])
def test_classes_by_probability(tmp_path, raw):
    model = sees(tmp_path / "m.onnx", raw=raw)
    images = [grey(tmp_path / f"{value}.png", value) for value in (0, 255)]
    found = infer(model, images, top=2)
    assert [one.classes[0].name for one in found.images] == ["dark", "bright"]
    (dark, grey_), bright = found.images[0].classes, found.images[1].classes
    whole = 1 + np.exp(-10) + np.exp(-20)
    assert dark.probability == pytest.approx(1 / whole, rel=1e-5)
    assert grey_.probability == pytest.approx(np.exp(-10) / whole, rel=1e-4)
    assert bright[1].probability == pytest.approx(np.exp(-10) / whole, rel=1e-3)
    assert found.images[0].changes == ""


def test_changes_are_listed(tmp_path):
    """Size and colours; JPEG as well as PNG; red, green and blue are axes."""
    found = picture(grey(tmp_path / "photo.jpg", 255, (40, 30), "RGB"), (1, 4, 4))
    assert found.changes == "RGB to L, 40 x 30 to 4 x 4"
    assert (found.pixels.shape, found.pixels.min() > 250) == ((1, 4, 4), True)
    assert picture(grey(tmp_path / "p.png", 10), (3, 4, 4)).changes == "L to RGB"
    Image.fromarray(np.array([[[1, 2, 3], [4, 5, 6]]], np.uint8)).save(tmp_path / "c.png")
    assert picture(tmp_path / "c.png", (3, 1, 2)).pixels.tolist() == [[[1, 4]], [[2, 5]], [[3, 6]]]


@pytest.mark.parametrize("mode", ["L", "I;16", "CMYK"])
def test_a_model_sees_what_it_was_trained_on(tmp_path, mode):
    """The pixels of a file are those that the data set ``folder`` makes of it; dark ones stay dark."""
    values = np.arange(80, dtype=np.uint16).reshape(8, 10)
    image = (
        Image.fromarray(values) if mode == "I;16" else Image.fromarray(values.astype(np.uint8)).convert(mode)
    )
    image.save(tmp_path / "x.tiff")
    seen = picture(tmp_path / "x.tiff", (1, 4, 4))
    assert np.array_equal(seen.pixels, decoded([("x", tmp_path / "x.tiff")], 1, (1, 4, 4), fit=True)[0])
    assert (seen.pixels.max() == 0) == (mode == "I;16")
    assert seen.changes.endswith("10 x 8 to 4 x 4")


def test_what_is_no_image(tmp_path, monkeypatch):
    """Nor are values of an unknown range, and what is large by its header."""
    (tmp_path / "text.png").write_text("no image", encoding="utf-8")
    whole = grey(tmp_path / "whole.png", 3, (64, 64)).read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    Image.fromarray(np.full((4, 4), 1, np.float32)).save(tmp_path / "f.tiff")
    Image.fromarray(np.full((4, 4), 1, np.int32)).save(tmp_path / "i.tiff")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 4096)
    grey(tmp_path / "large.png", 3, (64, 129))
    for name, message in (
        ("text.png", "an image is unreadable"),
        ("cut.png", "an image is unreadable"),
        ("missing.png", "No such file"),
        (".", "Is a directory"),
        ("f.tiff", "pixels are of mode F"),
        ("i.tiff", "pixels are of mode I"),
        ("large.png", "exceeds limit of 8192 pixels"),
    ):
        with pytest.raises(UserError, match=message):
            picture(tmp_path / name, (1, 4, 4))


def test_folders_of_images(tmp_path, capsys, monkeypatch):
    """All images below one, hidden ones left out; rows name as much of a path as tells them apart."""
    model = sees(tmp_path / "m.onnx")
    every = ["bright/IMG_1.png", "bright/more/IMG_2.JPG", "dark/IMG_1.png"]
    for name in (*every, "bright/._IMG_1.png", "x.txt"):
        (tmp_path / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        grey(tmp_path / "x.png", 0 if "dark" in name else 255).rename(tmp_path / "photos" / name)
    monkeypatch.chdir(tmp_path)

    def rows(*images):
        status, out, _ = run_command(capsys, "infer", model, *images)
        assert status == 0
        return [line.split("│")[0].strip() for line in out.splitlines() if "│" in line]

    assert rows("photos") == every
    assert rows(tmp_path / "photos" / "bright", "photos/dark/IMG_1.png") == every
    assert rows("photos/dark/IMG_1.png") == ["IMG_1.png"]
    status, _, err = run_command(capsys, "infer", model, (tmp_path / "none").mkdir() or "none")
    assert status == 2
    assert "no images in the folder" in err


def test_the_command(tmp_path, capsys):
    """A table, JSON, and one message for a model without edgefl's metadata."""
    model, image = sees(tmp_path / "m.onnx"), grey(tmp_path / "p.png", 0, (9, 9))
    status, out, _ = run_command(capsys, "infer", model, image)
    assert (status, "dark" in out, "9 x 9 to 4 x 4" in out) == (0, True, True)
    status, out, _ = run_command(capsys, "infer", model, image, "--top", 1, "--json")
    assert json.loads(out)["images"][0]["classes"][0]["name"] == "dark"
    two = FACTS | {"shape": [2, 4, 4], "mean": [0.5, 0.5], "std": [0.25, 0.25]}
    write(tmp_path / "two.onnx", [("Relu", ["x"], ["y"])], {}, ["b", 2, 4, 4], facts=two)
    with pytest.raises(UserError, match="2 channels"):
        infer(tmp_path / "two.onnx", [image])
    bare = write(tmp_path / "bare.onnx", [("Relu", ["x"], ["y"])], {}, ["batch", 4])
    status, out, err = run_command(capsys, "infer", bare, image)
    assert (status, out) == (2, "")
    assert "metadata lacks shape, class_names, mean, std" in err
    status, _, err = run_command(capsys, "infer", model, tmp_path / "none.png")
    assert status == 2
