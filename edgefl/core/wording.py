"""What a value must be, in words, for each type of error that pydantic reports; and how a value is quoted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import WithJsonSchema
from pydantic.fields import FieldInfo

from edgefl.core.units import show_bits, show_bytes, show_flops, show_grams, show_joules, show_seconds

# Longer values are cut.
_QUOTED = 60

# What follows "KEY must", and the types of errors that it is for; fields in braces come from the error.
_ASKED: Mapping[str, str] = {
    "be a mapping of keys to values": (
        "model_type model_attributes_type dataclass_type dataclass_exact_type named_tuple_type "
        "arguments_type dict_type mapping_type frozen_dict_type ordered_dict_type counter_type"
    ),
    "be a list": "list_type tuple_type set_type frozen_set_type deque_type iterable_type iteration_error",
    "be a whole number": "int_type int_parsing int_parsing_size int_from_float",
    "be a number": "float_type float_parsing decimal_type decimal_parsing fraction_type fraction_parsing",
    "be a complex number": "complex_type complex_str_parsing",
    "be true or false": "bool_type bool_parsing",
    "be text": "string_type string_unicode bytes_type json_type",
    "be a date, as in 2025-01-31": "date_type date_parsing date_from_datetime_parsing",
    "be a date without a time": "date_from_datetime_inexact",
    "be a date in the past": "date_past",
    "be a date in the future": "date_future",
    "be a time of day, as in 12:30": "time_type time_parsing",
    "be a date and time, as in 2025-01-31T12:30": (
        "datetime_type datetime_parsing datetime_object_invalid datetime_from_date_parsing"
    ),
    "be in the past": "datetime_past",
    "be in the future": "datetime_future",
    "have no time zone": "timezone_naive",
    "have a time zone": "timezone_aware",
    "have a time zone offset of {tz_expected} seconds": "timezone_offset",
    "be a duration": "time_delta_type time_delta_parsing",
    "be a URL": "url_type url_parsing url_syntax_violation",
    "be a URL of at most {max_length} characters": "url_too_long",
    "be a URL that begins with {expected_schemes}": "url_scheme",
    "be a UUID": "uuid_type uuid_parsing",
    "be a UUID of version {expected_version}": "uuid_version",
    "be null": "none_required",
    "be left out": (
        "missing_sentinel_error ellipsis_error extra_forbidden unexpected_keyword_argument "
        "unexpected_positional_argument"
    ),
    "be greater than {gt}": "greater_than",
    "be at least {ge}": "greater_than_equal",
    "be less than {lt}": "less_than",
    "be at most {le}": "less_than_equal",
    "be a multiple of {multiple_of}": "multiple_of",
    "be finite": "finite_number",
    "have at most {max_digits} digits": "decimal_max_digits",
    "have at most {decimal_places} decimal places": "decimal_max_places",
    "have at most {whole_digits} digits before the decimal point": "decimal_whole_digits",
    "have at least {min_length} {items}": "too_short",
    "have at most {max_length} {items}": "too_long",
    "have at least {min_length} characters": "string_too_short",
    "have at most {max_length} characters": "string_too_long",
    "have at least {min_length} bytes": "bytes_too_short",
    "have at most {max_length} bytes": "bytes_too_long",
    "be text in {encoding}": "bytes_invalid_encoding",
    "match the pattern {pattern}": "string_pattern_mismatch",
    "be {form}": "form",
    "have ASCII characters only": "string_not_ascii",
    "have plain values": "set_item_not_hashable",
    "have text as keys": "invalid_key",
    "be {expected}": "enum literal_error",
    "have {discriminator} set to one of {expected_tags}": "union_tag_invalid",
    "have the key {discriminator}": "union_tag_not_found",
    "be {class}": "is_instance_of",
    "be a kind of {class}": "is_subclass_of",
    "be a function": "callable_type",
    "be valid JSON": "json_invalid",
    "not contain itself": "recursion_loop recursion_depth_exceeded",
    "not be changed": "frozen_field frozen_instance",
    "be of another type": "no_such_attribute get_attribute_error needs_python_object",
    "be given": (
        "missing missing_argument missing_keyword_only_argument missing_positional_only_argument "
        "default_factory_not_called"
    ),
    "be given once": "multiple_argument_values",
}
_MUST = {kind: words for words, kinds in _ASKED.items() for kind in kinds.split()}

# Records that a bare name can stand for.
_COMPONENTS = frozenset({"Component", "Engine"})

_NUMERIC = frozenset(
    {
        *(kind for kind, words in _MUST.items() if words in {"be a whole number", "be a number"}),
        *("greater_than", "greater_than_equal", "less_than", "less_than_equal", "finite_number"),
    }
)


class Field(NamedTuple):
    """What a record says of a value: its type, and the notes of ``Annotated``."""

    annotation: Any
    notes: Sequence[Any] = ()

    def arms(self) -> Iterator[Field]:
        """The members of a union, apart from None; of anything else, itself."""
        origin = get_origin(self.annotation)
        if origin is Annotated:
            inner, *notes = get_args(self.annotation)
            yield from Field(inner, (*self.notes, *_flat(notes))).arms()
        elif origin in {Union, UnionType}:
            for inner in get_args(self.annotation):
                yield from Field(inner, self.notes).arms()
        elif self.annotation is not NoneType:
            yield self

    def element(self, key: str | int) -> Field:
        """What it says of the value under a key, or at an index; itself if that is not known."""
        for arm in self.arms():
            inner = get_args(arm.annotation)
            if get_origin(arm.annotation) is dict and inner:
                return Field(inner[-1])
            if get_origin(arm.annotation) in {tuple, list} and isinstance(key, int):
                return Field(inner[min(key, len(inner) - 1 - (inner[-1] is Ellipsis))])
        return self


def _flat(notes: Sequence[Any]) -> Iterator[Any]:
    for note in notes:
        yield from note.metadata if isinstance(note, FieldInfo) else (note,)


def must(kind: str, context: Mapping[str, Any], field: Field | None = None) -> str | None:
    """What follows "KEY must": "be a whole number greater than 0".

    Args:
        kind: pydantic's type of the error.
        context: what it says of the error.
        field: of the value, if known: a number's limits are told together with its type.

    Returns:
        None for a type of error that is not pydantic's own.
    """
    numbers = [words for arm in field.arms() if (words := _number(arm))] if field else []
    if kind in _NUMERIC and numbers:
        words = "be " + " or ".join(dict.fromkeys(numbers))
        return words.replace("be a number", "be a finite number") if kind == "finite_number" else words
    if kind not in _MUST:
        return None
    if kind == "model_type" and context.get("class_name") in _COMPONENTS:
        return "be a name, or a mapping with a name and parameters"
    if kind == "model_type" and str(context.get("class_name")).startswith("Sourced"):
        return "be a number, or {value: ..., status: ..., source: ...}"
    if kind == "string_too_short" and context["min_length"] == 1:
        return "not be empty"
    least = context.get("min_length", context.get("max_length"))
    values = {key: f"{value:g}" if isinstance(value, float) else value for key, value in context.items()}
    return _MUST[kind].format_map({**values, "items": "item" if least == 1 else "items"})


def _number(arm: Field) -> str:
    """A number with its limits, or a literal; "" for any other type."""
    if get_origin(arm.annotation) is Literal:
        return " or ".join(map(repr, get_args(arm.annotation)))
    if arm.annotation not in {int, float}:
        return ""
    noun = "a whole number" if arm.annotation is int else "a number"
    dimension = dimension_of(arm.notes)
    if dimension:
        noun = _NOUNS.get(dimension) or f"{'an' if dimension[0] in 'aeiou' else 'a'} {dimension}"
    return f"{noun} {limits}" if (limits := _limits(arm.notes, SHOWN.get(dimension))) else noun


_NOUNS = {"bytes": "a number of bytes"}

SHOWN: Mapping[str, Callable[[float], str]] = {
    "time": show_seconds,
    "bytes": show_bytes,
    "byte rate": lambda value: f"{show_bytes(value)}/s",
    "bit rate": show_bits,
    "operation rate": lambda value: f"{show_flops(value)}/s",
    "power": lambda value: f"{value:g} W",
    "energy": show_joules,
    "frequency": lambda value: f"{value / 1e6:g} MHz",
    "mass": show_grams,
    "energy per byte": lambda value: f"{value:g} kWh/GB",
}
"""How quantities are shown, by their dimension as ``core.units`` names it."""


def dimension_of(notes: Iterable[Any]) -> str:
    """The dimension of a quantity, by the description that ``core.units`` gives its type; "" for none."""
    schemas = (note.json_schema for note in notes if isinstance(note, WithJsonSchema))
    named = ((schema or {}).get("description", "").partition(",")[0] for schema in schemas)
    return next((dimension for dimension in named if dimension in SHOWN), "")


def _limits(notes: Sequence[Any], show: Callable[[float], str] | None) -> str:
    """Limits in words: "greater than 0", "between 0 and 1"."""
    given = {
        name: show(limit) if show and limit else f"{limit:.15g}"
        for note in notes
        for name in ("gt", "ge", "lt", "le")
        if isinstance(limit := getattr(note, name, None), int | float)
    }
    if "ge" in given and "le" in given:
        return f"between {given['ge']} and {given['le']}"
    if "gt" in given and "lt" in given:
        return f"between {given['gt']} and {given['lt']}, neither included"
    words = {"gt": "greater than", "ge": "of at least", "lt": "less than", "le": "at most"}
    return " and ".join(f"{words[name]} {given[name]}" for name in words if name in given)


def quoted(value: Any) -> str:
    """A value as messages quote it: as YAML writes it, and cut if it is long."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = re.sub(r"\s+", " ", repr(value))
    except ValueError:  # Python writes no integers of more than 4300 digits
        return "a number of thousands of digits"
    return text if len(text) <= _QUOTED else f"{text[: _QUOTED - 3]}..."
