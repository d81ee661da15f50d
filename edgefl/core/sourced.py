"""Numbers with their sources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, Field, model_validator

from edgefl.core.params import Strict

Q = TypeVar("Q")


class Sourced(Strict, Generic[Q]):
    """A number with its source.

    Attributes:
        value: the number; None if and only if the status is "unknown".
        status: measured (the source gives this very number), derived (arithmetic on such), assumed (the
            source line says why), unknown.
        source: where it was read, or the reason for an assumption.
    """

    value: Q | None = None
    status: Literal["measured", "derived", "assumed", "unknown"]
    source: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _value_and_status_agree(self) -> Sourced[Q]:
        if (self.value is None) != (self.status == "unknown"):
            raise ValueError("give a value, or the status 'unknown', but not both")
        return self

    @property
    def known(self) -> Q:
        """The value of a number that was checked to be known."""
        if self.value is None:
            raise AssertionError(f"an unknown number got past the checks: {self.source}")
        return self.value


def sourced(record: BaseModel, name: str = "") -> Iterator[tuple[str, Sourced[Any]]]:
    """Every sourced number in a record, with its dotted name."""
    for key in type(record).model_fields:
        yield from _under(getattr(record, key), f"{name}.{key}" if name else key)


def _under(value: Any, name: str) -> Iterator[tuple[str, Sourced[Any]]]:
    if isinstance(value, Sourced):
        yield name, value
    elif isinstance(value, BaseModel):
        yield from sourced(value, name)
    elif isinstance(value, dict | tuple):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _under(inner, f"{name}.{key}")
