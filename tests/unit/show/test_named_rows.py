"""Tables of images and of exported models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from commands import shown

from edgefl.show.onnx import (
    ClassProbability,
    Compact,
    Exported,
    ImageClasses,
    Inference,
    Parity,
    exports,
    inference,
)

NAME = "averylongfilename-of-my-model.onnx"


def inferred(name, *files):
    """The table of a model that finds one class in every image."""
    images = [ImageClasses(file, "", [ClassProbability(name, 1.0)]) for file in files]
    return shown(inference(Inference("m.onnx", (1, 8, 8), images)), 80)


@pytest.mark.parametrize(
    ("files", "cells"),
    [
        (("one/a.png", "two/a.png", "two/b.png"), ["one/a.png", "two/a.png", "two/b.png"]),
        (("in/one/a.png", "in/two/a.png"), ["one/a.png", "two/a.png"]),
        (("two/a.png", "two/b.png"), ["a.png", "b.png"]),
    ],
)
def test_images_are_named_below_the_folder_of_all(files, cells):
    """As much of a path as tells them apart."""
    lines = inferred("0", *files).splitlines()
    assert [line.split("│")[0].strip() for line in lines if "│" in line] == cells


PARITY = Parity(359, 1e-7, True, 1e-4, 1e-5, 1.0, 0.5, 0.5, passed=True)
EXPORT = Exported(Path("out", NAME), Path("out", "card.md"), 2, 1000, PARITY, 0.5)
COMPACT = Compact(359, 0.5, 0.51, 0.99, 2000, 1.0, 2.0, calibrated_on=512, drop=0.01)


def test_rows_are_files_or_say_that_they_are_not():
    """Beside a smaller file the float32 model is a reference, and its row says so."""
    assert "not written" not in shown(exports([EXPORT]), 100)
    found = shown(exports([replace(EXPORT, compact=COMPACT)]), 120)
    assert found.splitlines()[0].split("┃")[0].strip() == "float32, not written"
    names = "".join(line.split("│")[0].strip() for line in found.splitlines())
    assert names.count(NAME) == 1
    assert "compared with the float32 model, both in ONNX Runtime" in found


def test_a_client_that_never_trained_stands_out():
    """By name, once for all of a kind."""
    found = shown(exports([EXPORT, replace(EXPORT, client=5, standing="never trained")]), 100)
    assert found.rstrip().endswith("client 5: never trained")
    assert "client 2" not in found
