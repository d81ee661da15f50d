"""Rows of a long table, a column each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from edgefl.core.clients import Bools, Ints


class Columns:
    """Rows of a run's long table, (n,): each column as an attribute, or by its name."""

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Takes all columns."""
        vars(self).update(columns)

    def __getattr__(self, name: str) -> Any:
        """None but those that there are."""
        raise AttributeError(name)

    def __getitem__(self, which: str | slice | Ints | Bools) -> Any:
        """A column, or some of the rows."""
        if isinstance(which, str):
            return vars(self)[which]
        return Columns({name: column[which] for name, column in vars(self).items()})

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))
