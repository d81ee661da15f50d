"""The base of every validated, frozen record, and of every component's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_serializer, model_validator

Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, lt=1)]


class Strict(BaseModel):
    """Frozen; unknown keys are errors, and so are strings and booleans in place of numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _lists_are_tuples(cls, value: Any) -> Any:
        # YAML has lists only; frozen records hold tuples, which strict validation does not make from lists.
        return {key: _frozen(inner) for key, inner in value.items()} if isinstance(value, Mapping) else value


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


class Component(BaseModel):
    """A method, model, partition, policy or codec of a scenario: a name with parameters.

    Written as ``{name: dirichlet, alpha: 0.5}``, or as the bare name. The keys beside
    ``name`` are validated later, by the component's own ``Params``.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str

    @model_validator(mode="before")
    @classmethod
    def _bare_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @property
    def params(self) -> dict[str, Any]:
        """The keys beside the name."""
        return dict(self.model_extra or {})

    def completed(self, params: Strict) -> Component:
        """The component with every parameter written out, defaults too, as plain data."""
        return Component(name=self.name, **params.model_dump(mode="json"))

    @model_serializer
    def _plain(self) -> dict[str, Any]:
        # Field by field, a parameter that is None would be left out together with the fields that are absent.
        return {"name": self.name, **self.params}


class OfKind(NamedTuple):
    """Annotates a field that names a component, or several, with the catalogue's kind."""

    kind: str


def kinds(record: type[BaseModel]) -> dict[str, str]:
    """The kinds of a record's components, by field."""
    return {
        key: note.kind
        for key, field in record.model_fields.items()
        for note in field.metadata
        if isinstance(note, OfKind)
    }
