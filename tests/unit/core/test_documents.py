"""Records as the plain data that JSON documents are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from edgefl.core.documents import INLINE, OPTIONAL, document
from edgefl.core.params import Component


class Pair(NamedTuple):
    """A record without defaults."""

    down: int
    up: int


@dataclass(frozen=True)
class Size:
    """A record that may be missing."""

    width: int


@dataclass(frozen=True)
class Row:
    """A record with a keyword, an inlined record and an optional field."""

    name: str
    global_: int | None
    moved: dict[str, Pair] = field(default_factory=dict)
    size: Size | None = field(default=None, metadata={INLINE: Size})
    measured: float | None = field(default=None, metadata=OPTIONAL)


def test_fields_are_keys():
    """In their order, without the underscore of a keyword; an inlined record leaves its keys, null or not."""
    found = document([Row("a", None, {"body": Pair(3, 4)}, Size(5), 0.5)])
    expected = {"name": "a", "global": None, "moved": {"body": {"down": 3, "up": 4}}, "width": 5}
    assert found == [{**expected, "measured": 0.5}]
    assert list(found[0]) == [*expected, "measured"]
    assert document(Row("a", None)) == {**expected, "moved": {}, "width": None}
    assert document({"a": (Path("b/c"), Component(name="mlp"))}) == {"a": ["b/c", {"name": "mlp"}]}


def test_numbers_of_all_kinds_are_those_of_json():
    """Python's and NumPy's, alone and in columns; what is not finite is null."""
    nan, inf = float("nan"), float("inf")
    numpys = [np.float64(2), np.float32(inf), np.float64(nan), np.int64(3), np.bool_(False)]
    assert document([1, 2.5, nan, -inf, True, *numpys]) == [1, 2.5, None, None, True, 2, None, None, 3, False]
    assert document(np.array([[1.0, nan], [inf, 2.0]])) == [[1, None], [None, 2]]
