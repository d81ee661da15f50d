"""Tables of images and exported models, where tables are made, and the colours of runs."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from commands import shown

from edgefl.show.colours import COLOURS, DASHES, styles
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
    images = [ImageClasses(file, "", [ClassProbability("0", 1.0)]) for file in files]
    lines = shown(inference(Inference("m.onnx", (1, 8, 8), images)), 80).splitlines()
    assert [line.split("│")[0].strip() for line in lines if "│" in line] == cells


NAME = "averylongfilename-of-my-model.onnx"
PARITY = Parity(359, 1e-7, True, 1e-4, 1e-5, 1.0, 0.5, 0.5, passed=True)
EXPORT = Exported(Path("out", NAME), Path("out", "card.md"), 2, 1000, PARITY, 0.5)
COMPACT = Compact(359, 0.5, 0.51, 0.99, 2000, 1.0, 2.0, calibrated_on=512, drop=0.01)


def test_rows_are_files_or_say_that_they_are_not():
    """Beside a smaller file the float32 model is a reference; a client that never trained stands out."""
    assert "not written" not in shown(exports([EXPORT]), 100)
    found = shown(exports([replace(EXPORT, compact=COMPACT)]), 120)
    assert found.splitlines()[0].split("┃")[0].strip() == "float32, not written"
    names = "".join(line.split("│")[0].strip() for line in found.splitlines())
    assert names.count(NAME) == 1
    assert "compared with the float32 model, both in ONNX Runtime" in found
    found = shown(exports([EXPORT, replace(EXPORT, client=5, standing="never trained")]), 100)
    assert found.rstrip().endswith("client 5: never trained")


def test_markup_has_no_way_in():
    """Rich's tables are built in one place, but for grids, of texts; consoles say that texts are none."""
    for path in (Path(__file__).parents[3] / "edgefl").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "from_markup" not in text, path
        assert "rich.panel" not in text, path
        assert path.name == "table.py" or "rich.rule" not in text, path
        if path.name != "table.py" and "rich.table" in text:
            assert not re.search(r"\bTable\(", text), path
            assert not re.search(r"add_row\((?!Text\()", text), path
        for call in re.findall(r"(?<!\w)Console\((.+)\)", text):
            assert "markup=False" in call, path


def test_colour_and_dash_tell_48_runs_apart():
    """Eight differ in colour, six in dash, in any order; so do names that are equal, empty or no UTF-8."""
    names = [f"run {number}" for number in range(12)]
    found = dict(zip(names, styles(names), strict=True))
    for shift in range(len(names)):
        turned = [*names[shift:], *names[:shift]][::-1]
        assert dict(zip(turned, styles(turned), strict=True)) == found
    for count in range(1, 49):
        found = styles(["", "", "\udcff", "x" * 10_000, *map(str, range(44))][:count])
        assert len(set(found)) == count == len(found)
        assert len({colour for colour, _ in found}) == min(count, len(COLOURS))
        assert len({dash for _, dash in found}) == min(count, len(DASHES))
