"""Products of parameters: a covering sample in every run, the rest under ``pytest -m nightly``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def paired(rows: Iterable[Any], columns: Collection[Any], also: Collection[Any] = ()) -> list[Any]:
    """Every pair of a row and a column; by day each row once, each column in its turn, and ``also``."""
    return [
        pytest.param(
            row,
            column,
            marks=() if place == nth % len(columns) or (row, column) in also else pytest.mark.nightly,
        )
        for nth, row in enumerate(rows)
        for place, column in enumerate(columns)
    ]


def mostly(values: Iterable[Any], by_day: Collection[Any]) -> list[Any]:
    """All values, or tuples of them, of which those that are not named run at night alone."""
    values = list(values)
    assert set(by_day) <= set(values)
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=() if value in by_day else pytest.mark.nightly,
        )
        for value in values
    ]
