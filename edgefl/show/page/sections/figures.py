"""All figures of groups of runs, as ``edgefl compare`` shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgefl.show.averages import Compared
from edgefl.show.rows import rows


@dataclass(frozen=True)
class Figures:
    """One row of a comparison.

    Attributes:
        label: its name; it begins with spaces where it is a part of the one before.
        key: its place in a run of `edgefl compare --json`, as in ``Row``; empty of a row of several figures.
        texts: each group's figure, or figures.
        means: each group's figure as a number; None where it has none, or where a row has several.
    """

    label: str
    key: str
    texts: Sequence[str]
    means: Sequence[float | None]


def figures(groups: Sequence[Compared]) -> list[Figures]:
    """The rows of a comparison."""
    return [
        Figures(
            row.label,
            row.key,
            [row.cell(one) for one in groups],
            [None if (value := row.value(one)) is None else value.mean for one in groups],
        )
        for row in rows(groups)
    ]
