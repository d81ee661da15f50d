"""Tables of named rows at any width."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import pytest
from commands import shown

from edgefl.show.exports import Compact, Exported, Parity, exports
from edgefl.show.inference import ClassProbability, ImageClasses, Inference, inference
from edgefl.show.tables import Fitted

NAMES = ["raspberry-pi-zero-2w", "averylongfilename-of-my-model.onnx"]
HEADS = ("name", "time taken", "energy used", "rate", "share")


def table(**settings):
    rows = [(name, "12.3 ms", "4.56 mJ", "1,234", "99%") for name in NAMES]
    return Fitted(rows, {head: itemgetter(place) for place, head in enumerate(HEADS)}, **settings)


def lines(width, **settings):
    """The table's lines at a width, without white space at their ends."""
    return [line.rstrip() for line in shown(table(**settings), width).splitlines()]


@pytest.mark.parametrize("width", [100, 80, 70, 60, 50])
def test_no_name_is_cut(width):
    """At every width that holds a name, the name and every figure are whole."""
    found = lines(width, yields=("share", "rate", "energy used", "time taken"))
    assert [name for name in NAMES if not any(name in line for line in found)] == []
    assert "…" not in "".join(found)
    assert max(map(len, found)) <= width
    for figure in ("12.3", "4.56"):
        cut = [line for line in found if figure in line and f"{figure} m" not in line]
        assert cut == []


def test_headings_wrap_before_columns_go_to_a_second_table():
    """A heading takes two lines first; then columns that matter less stand in a table of their own."""
    assert lines(75, yields=("share",))[1].split("┃")[2].strip() == "used"
    assert "" not in lines(75, yields=("share",))
    found = lines(60, yields=("share", "rate"))
    blank = found.index("")
    assert [head.split() for head in found[1].split("┃")] == [["name"], ["taken"], ["used"]]
    assert [head.split() for head in found[blank + 1].split("┃")] == [["name"], ["rate"], ["share"]]
    assert "99%" not in "".join(found[:blank])


def test_a_name_goes_on_behind_a_hyphen_if_nothing_else_helps():
    """In a table of two columns that is too wide."""
    found = lines(32)
    pieces = [line.split("│")[0].strip() for line in found if "│" in line]
    assert pieces[:4] == ["raspberry-pi-zero-2w", "averylongfilename-", "of-my-model.onnx", NAMES[0]]
    assert max(map(len, found)) <= 32


def test_rows_become_blocks_if_two_columns_are_too_wide():
    """A line for each cell."""
    words = [("a" * 30, "b" * 30)]
    found = shown(Fitted(words, {"name": itemgetter(0), "text": itemgetter(1)}), 40)
    assert found.splitlines() == ["name: " + "a" * 30, "  text: " + "b" * 30]


def test_text_wraps_by_words():
    """A column of text takes the remaining width."""
    found = shown(
        Fitted([NAMES[0]], {"name": str, "text": lambda _: "some words " * 10}, wraps=("text",)), 60
    )
    assert NAMES[0] in found
    assert "some words" in found
    assert "wor\n" not in found


def inferred(name, *files):
    """The table of a model that finds one class in every image."""
    images = [ImageClasses(file, "", [ClassProbability(name, 1.0)]) for file in files]
    return shown(inference(Inference("m.onnx", (1, 8, 8), images)), 80)


def test_names_are_not_markup():
    """A file's name may look like markup."""
    found = inferred("[/b]", "[red].png")
    assert "[red].png" in found
    assert "[/b]" in found


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
EXPORT = Exported(Path("out", NAMES[1]), Path("out", "card.md"), 2, 1000, PARITY, 0.5)
COMPACT = Compact(359, 0.5, 0.51, 0.99, 2000, 1.0, 2.0, calibrated_on=512, drop=0.01)


def test_rows_are_files_or_say_that_they_are_not():
    """Beside a smaller file the float32 model is a reference, and its row says so."""
    assert "not written" not in shown(exports([EXPORT]), 100)
    found = shown(exports([replace(EXPORT, compact=COMPACT)]), 100)
    assert found.splitlines()[0].split("┃")[0].strip() == "float32, not written"
    assert found.count(NAMES[1]) == 1
    assert "compared with the float32 model, both in ONNX Runtime" in found


def test_a_client_that_never_trained_stands_out():
    """By name, once for all of a kind."""
    found = shown(exports([EXPORT, replace(EXPORT, client=5, standing="never trained")]), 100)
    assert found.rstrip().endswith("client 5: never trained")
    assert "client 2" not in found
