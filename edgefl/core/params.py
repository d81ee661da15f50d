"""The base of every validated, frozen record, and of every component's parameters."""

import re
from collections.abc import Mapping
from inspect import cleandoc
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, model_serializer, model_validator
from pydantic_core import CoreSchema

Count = Annotated[int, Field(gt=0)]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, lt=1)]


def unless(value: Any) -> Any:
    """Annotates a field that is left out of a record's plain data where it has this value."""
    return Field(exclude_if=lambda given: given == value)


class Unknown(NamedTuple):
    """In place of the value of a key that a record does not have, which is refused: the keys that it has."""

    known: list[str]


class Strict(BaseModel):
    """Frozen; unknown keys are errors, and so are strings and booleans in place of numbers.

    ``Attributes:`` in docstrings are in the JSON schema, which editors show, and in the reference.

    Attributes:
        SHORT_FORMS: keys that are read though they are no fields, and the dotted keys that they stand for.
    """

    SHORT_FORMS: ClassVar[Mapping[str, str]] = {}

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _as_yaml_writes_it(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        known = [*cls.model_fields, *cls.SHORT_FORMS]
        refused = value.keys() - known if cls.model_config["extra"] == "forbid" else ()
        return {key: Unknown(known) if key in refused else _tuples(inner) for key, inner in value.items()}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Adds what docstrings say of the fields; a quantity's own description, its unit, follows it."""
        reference = handler(core)
        found = handler.resolve_ref_schema(reference)
        if text := _documented(cls)[0]:
            found["description"] = text
        for base in cls.__mro__:
            for key, meaning in _documented(base)[1].items():
                own = found.get("properties", {}).get(key, {})
                own["description"] = "; ".join(filter(None, (meaning, own.get("description"))))
        return reference


def _documented(record: type) -> tuple[str, dict[str, str]]:
    """A docstring without its ``Attributes:``, and what these say of each."""
    text, _, attributes = cleandoc(record.__doc__ or "").partition("Attributes:\n")
    found = re.findall(r"^    (\w+): (.+(?:\n {8}.+)*)", attributes, flags=re.MULTILINE)
    return text.strip(), {
        key: " ".join(meaning.split()).removesuffix(".").replace("``", "`") for key, meaning in found
    }


def _tuples(value: Any) -> Any:
    """YAML has lists only; frozen records hold tuples, which strict validation does not make from lists."""
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


class Component(Strict):
    """The base of every component's ``Params``.

    Written as ``{name: dirichlet, alpha: 0.5}``, or as the bare name. A field that names one has the
    ``Params`` of its file: it is annotated with a kind, as in ``components.AnyMethod``.
    """

    name: Annotated[str, Field(description="the component's")] = ""

    @model_validator(mode="before")
    @classmethod
    def _name_of_the_file(cls, value: Any) -> Any:
        own = cls.__module__.rpartition(".")[2].replace("_", "-")
        return {"name": own, **value} if isinstance(value, Mapping) else value

    @model_serializer
    def _plain(self) -> dict[str, Any]:
        # Of its own class, and not of that of the field. Without its None, a parameter that is not None by
        # default would be read back as the default.
        fields = type(self).model_fields
        kept = {key for key, field in fields.items() if field.default is not None}
        return {key: value for key, value in self if value is not None or key in kept}
