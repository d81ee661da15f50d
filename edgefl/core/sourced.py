"""Numbers with their sources, and with the bounds between which they lie."""

from collections.abc import Callable
from enum import Enum
from itertools import pairwise
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from edgefl.core.params import Strict, unless

Q = TypeVar("Q")
Record = TypeVar("Record", bound=BaseModel)

UNSOURCED = "given without a source"
"""The source of a number that has none."""
_SCALARS = frozenset({"string", "number", "integer"})


class Costs(Enum):
    """Annotates a kind of number with its effect on times and energies, which grow or shrink with it."""

    MORE = "more"
    LESS = "less"


class Sourced(Strict, Generic[Q]):
    """A number with its source, and with bounds where it is known to lie in an interval.

    A number alone, or one with bounds alone, is assumed.

    Attributes:
        low, high: the bounds; None for none. A data sheet's power limit is an upper bound without a value.
        value: the number; None if only bounds are known, or nothing.
        status: measured (the source gives this very number), derived (arithmetic on such), assumed (the
            source line says why), unknown (if and only if there is neither a value nor a bound).
        source: where it was read, or the reason for an assumption.
    """

    low: Annotated[Q | None, unless(None)] = None
    value: Q | None = None
    high: Annotated[Q | None, unless(None)] = None
    status: Literal["measured", "derived", "assumed", "unknown"]
    source: Annotated[str, Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _without_a_source(cls, value: Any) -> Any:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            value = {"value": value}
        elif not isinstance(value, dict) or not value or not value.keys() <= {"low", "value", "high"}:
            return value
        return {**value, "status": "assumed", "source": UNSOURCED}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """A number alone, or a record."""
        record = super().__get_pydantic_json_schema__(core, handler)
        found = handler.resolve_ref_schema(record)
        found.pop("required", None)
        found["dependentRequired"] = {"status": ["source"], "source": ["status"]}
        values = found["properties"]["value"]["anyOf"]
        return {"anyOf": [record, *(one for one in values if one.get("type") in _SCALARS)]}

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> "Sourced[Q]":
        if (self.value is None and not self.is_interval) != (self.status == "unknown"):
            raise ValueError("give a value or a bound, or the status 'unknown', but not both")
        if self.is_interval and self.costs() is None:
            raise ValueError("this number cannot be an interval: costs do not simply grow or shrink with it")
        numbers = {"low": self.low, "value": self.value, "high": self.high}
        given = [(key, _amounts(number)) for key, number in numbers.items() if number is not None]
        for (lower, below), (upper, above) in pairwise(given):
            if any(one > two for one, two in zip(below, above, strict=True)):
                raise ValueError(f"{lower} must not be above {upper}")
        return self

    @property
    def is_interval(self) -> bool:
        return self.low is not None or self.high is not None

    @classmethod
    def costs(cls) -> Costs | None:
        """Whether times and energies grow or shrink with a number of this kind; None for neither."""
        (kind,) = cls.__pydantic_generic_metadata__["args"]
        notes = [note for note in get_args(kind)[1:] if isinstance(note, Costs)]
        # The outermost annotation counts.
        return notes[-1] if notes else getattr(kind, "COSTS", None)

    @classmethod
    def nothing(cls) -> Any:
        """The least number of a kind with which costs grow: 0, or the record's own least."""
        (kind,) = cls.__pydantic_generic_metadata__["args"]
        return getattr(kind, "nothing", float)()

    @property
    def known(self) -> Q:
        """The value of a number that was checked to be known."""
        if self.value is None:
            raise AssertionError(f"an unknown number got past the checks: {self.source}")
        return self.value


def _needed(number: Sourced[Q]) -> Sourced[Q]:
    if number.value is None:
        raise ValueError("this number needs a value")
    return number


NEEDED = AfterValidator(_needed)
"""Annotates a ``Sourced`` number that cannot be unknown."""


def _amounts(number: Any) -> list[float]:
    """A number, or the numbers of a record."""
    if isinstance(number, BaseModel):
        return [amount for key in type(number).model_fields for amount in _amounts(getattr(number, key))]
    return [number]


def sourced(record: BaseModel) -> list[tuple[str, Sourced[Any]]]:
    """Every sourced number in a record, with its dotted name."""
    found: dict[str, Sourced[Any]] = {}
    changed(record, found.setdefault)
    return list(found.items())


def changed(record: Record, change: Callable[[str, Sourced[Any]], Sourced[Any]]) -> Record:
    """A record whose sourced numbers are changed, by their dotted names, as by ``numbers.get``."""

    def of(value: Any, name: str) -> Any:
        if isinstance(value, Sourced):
            return change(name.removeprefix("."), value)
        if isinstance(value, BaseModel):
            old = {key: getattr(value, key) for key in type(value).model_fields}
            new = of(old, name)
            # What a record leaves out, as its default, is still left out.
            return value.model_copy(update={key: new[key] for key in old if new[key] is not old[key]})
        if isinstance(value, dict):
            return {key: of(inner, f"{name}.{key}") for key, inner in value.items()}
        if isinstance(value, tuple):
            return tuple(of(inner, f"{name}.{place}") for place, inner in enumerate(value))
        return value

    copied: Record = of(record, "")
    return copied
