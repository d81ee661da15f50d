"""What takes long: a sample of its cases in every run, the rest under ``pytest -m nightly``."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest

NIGHT = pytest.mark.nightly


def sampled(most: int, names: str | tuple[str, ...], cases: Iterable[Any], **more: Any) -> Any:
    """As ``parametrize``; by day run so many of the cases that do, at even distances."""
    one = isinstance(names, str)
    given = [case if hasattr(case, "marks") else pytest.param(*((case,) if one else case)) for case in cases]
    by_day = [place for place, case in enumerate(given) if not case.marks]
    kept = {by_day[(2 * nth + 1) * len(by_day) // (2 * most)] for nth in range(most)}
    marked = [
        case if place in kept else pytest.param(*case.values, marks=NIGHT, id=case.id)
        for place, case in enumerate(given)
    ]
    return pytest.mark.parametrize(names, marked, **more)


def paired(rows: Iterable[Any], columns: Collection[Any], also: Collection[Any] = ()) -> list[Any]:
    """Every pair of a row and a column; by day each row once, each column in its turn, and ``also``."""
    return [
        pytest.param(row, column, marks=() if place == nth % len(columns) or (row, column) in also else NIGHT)
        for nth, row in enumerate(rows)
        for place, column in enumerate(columns)
    ]


def mostly(values: Iterable[Any], by_day: Collection[Any]) -> list[Any]:
    """All values, or tuples of them, of which those that are not named run at night alone."""
    values = list(values)
    assert set(by_day) <= set(values)
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)), marks=() if value in by_day else NIGHT
        )
        for value in values
    ]
