"""Recorded users: a table whose rows are dealt to the clients of a fleet."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, StringConstraints, model_validator
from typing_extensions import TypedDict

from edgefl.core.arrays import Floats, Ints
from edgefl.core.csv_rows import csv_text, kept, read_csv
from edgefl.core.params import Strict

_Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class User(TypedDict, total=False):
    """A line of a table of recorded users."""

    device: _Name
    link: _Name
    slowdown: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    availability: Annotated[int, Field(ge=0, lt=100_000_000)]


class Named(NamedTuple):
    """A column of names: each row's place among the different ones, (n,), and these in the table's order."""

    place: Ints
    names: tuple[str, ...]


class UserTable(NamedTuple):
    """Recorded users, or what clients have of them, a row each; None for a column that is not recorded."""

    device: Named | None = None
    link: Named | None = None
    slowdown: Floats | None = None
    availability: Ints | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Those that are recorded."""
        return tuple(name for name in self._fields if getattr(self, name) is not None)


class Users(Strict):
    """Recorded users.

    Attributes:
        file: a CSV file with any of the columns ``device``, ``link``, ``slowdown`` and ``availability``.
        rows: its text, in place of the file.
        dealt: whether what is recorded of one user stays ``together``, or each column is dealt
            ``independently``, as FedScale deals speeds and availability.
    """

    file: Annotated[str | None, Field(exclude=True)] = None
    rows: str | None = None
    dealt: Literal["together", "independently"] = "together"

    @model_validator(mode="before")
    @classmethod
    def _content(cls, value: Any) -> Any:
        return kept(value, _canonical, _canonical, cls.model_fields)

    @property
    def count(self) -> int:
        return (self.rows or "").count("\n")

    def table(self) -> UserTable:
        return _table(self.rows or "")

    def without(self, column: str) -> Self | None:
        """The users without a column; None if nothing is left."""
        left = {name: fields for name, fields in _columns(self.rows or "").items() if name != column}
        return self.model_copy(update={"rows": _text(left)}) if left else None

    def renamed(self, column: str, names: Mapping[str, str]) -> Self:
        if all(old == new for old, new in names.items()):
            return self
        columns = _columns(self.rows or "")
        renamed = {column: [names.get(name, name) for name in columns[column]]}
        return self.model_copy(update={"rows": _text({**columns, **renamed})})


@lru_cache(maxsize=4)
def _columns(text: str) -> Mapping[str, Sequence[Any]]:
    """A CSV text's columns, in one order; cached, as a plan asks for them several times."""
    names, rows, _ = read_csv(text, User)
    return {name: [row[name] for row in rows] for name in UserTable._fields if name in names}


def _text(columns: Mapping[str, Sequence[Any]]) -> str:
    return csv_text(columns, zip(*columns.values(), strict=True)).removesuffix("\n")


@lru_cache(maxsize=4)
def _canonical(text: str) -> str:
    """A CSV text with its columns in order and nothing that means nothing."""
    return _text(_columns(text))


@lru_cache(maxsize=4)
def _table(rows: str) -> UserTable:
    found: dict[str, Any] = {}
    for column, fields in _columns(rows).items():
        if column in {"slowdown", "availability"}:
            found[column] = np.array(fields, dtype=np.float64 if column == "slowdown" else np.int64)
        else:
            places = {name: place for place, name in enumerate(dict.fromkeys(fields))}
            found[column] = Named(np.array([places[name] for name in fields]), tuple(places))
    return UserTable(**found)
