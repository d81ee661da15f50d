"""Values checked against records, with errors that name file, line and key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from edgefl.core import catalogue
from edgefl.core.errors import Mistakes, ScenarioError, UserError, closest, nearest
from edgefl.core.named import ByName
from edgefl.core.params import kinds, short_forms
from edgefl.core.wording import Field, must, quoted
from edgefl.core.yamls import Document, item

T = TypeVar("T", bound=BaseModel)

Path = Sequence[str | int]


def validate(
    model: type[T],
    value: Any,
    document: Document,
    prefix: Path = (),
    whole: type[BaseModel] | None = None,
) -> T:
    """Validates ``value`` against ``model``, with messages that name file, line and key.

    Args:
        model: the record.
        value: plain data, found at ``prefix`` in ``document``.
        document: the source.
        prefix: its path there.
        whole: the record of the whole document, among whose keys an unknown one is looked for; by default
            ``model``.

    Raises:
        ScenarioError: the first mistake, with all others.
    """
    try:
        return model.model_validate(value, context=document.context)
    except ValidationError as error:
        mistakes = Mistakes()
        told = _Told(model, value, document, prefix, whole or model)
        for one in _of_unions(error.errors(include_url=False), model, value):
            mistakes.add(told.error(one))
        # Raised here, the first error would have pydantic's as its cause.
    mistakes.check()
    raise AssertionError("pydantic reports at least one error")


class _Mistake(NamedTuple):
    """One of pydantic's errors.

    Attributes:
        kind: its type.
        path: of the value, without the tags that pydantic adds for the members of a union.
        message: pydantic's.
        context: what it says of the error.
        given: the value.
        musts: of a union that has no member of the value's type: what each member asks for.
    """

    kind: str
    path: Path
    message: str
    context: Mapping[str, Any]
    given: Any
    musts: Sequence[str] = ()


def _of_unions(errors: Sequence[ErrorDetails], model: type[BaseModel], value: Any) -> Iterator[_Mistake]:
    """The errors, of which a union gives one for each of its members.

    Those of the member that was meant are kept: the one whose errors are the deepest inside. Where the value
    is of no member's type, its errors become one.
    """
    unions: dict[tuple[Path, Path], list[tuple[str | int, _Mistake]]] = {}
    for error in errors:
        if error["type"] == "too_short" and any(_below(error["loc"], other["loc"]) for other in errors):
            continue  # it has the items, and they are wrong
        loc = _short_form(error["loc"], model, value)
        path, tags = _written(loc, value, missing=error["type"] == "missing")
        given = item_at(value, path, error["input"])
        mistake = _Mistake(error["type"], path, error["msg"], error.get("ctx", {}), given)
        if loc[-1:] == ("[key]",) and error["type"] == "literal_error":
            hint = {"hint": f"use {mistake.context['expected']}"}
            mistake = mistake._replace(kind="unknown_name", message=f"unknown key {path[-1]!r}", context=hint)
        # Errors of one union agree in what is before its first tag.
        where: tuple[Path, Path] = (loc[: tags[0]], ()) if tags else (tuple(path), (error["type"],))
        unions.setdefault(where, []).append((loc[tags[0]] if tags else "", mistake))
    for (before, own), members in unions.items():
        if own:
            yield from (mistake for _, mistake in members)
            continue
        depth = {tag: max(len(one.path) for one_tag, one in members if one_tag == tag) for tag, _ in members}
        meant = max(depth, key=lambda tag: depth[tag])
        top = _written(before, value)[0]
        if depth[meant] > len(top):
            yield from (mistake for tag, mistake in members if tag == meant)
            continue
        # A member's own check comes after its type's.
        checked = [one for _, one in members if one.kind in _OWN_WORDS]
        if checked:
            yield checked[0]
            continue
        fitting = [one for _, one in members if not one.kind.endswith("_type")]
        asked = fitting or [one for _, one in members]
        words = [must(one.kind, one.context) or one.message for one in asked]
        yield asked[0]._replace(musts=tuple(dict.fromkeys(words)))


# Errors that a record's own checks raise, in its own words.
_OWN_WORDS = frozenset({"value_error", "assertion_error", "unknown_name"})


def _below(loc: Path, other: Path) -> bool:
    return len(other) > len(loc) and other[: len(loc)] == loc


def _short_form(loc: tuple[str | int, ...], model: type[BaseModel], value: Any) -> tuple[str | int, ...]:
    """A location with the short form of a key where the data has that."""
    for place in range(len(loc)):
        at = item_at(value, loc[:place])
        for record in _records(_field(model, value, loc[:place]), direct=True):
            for short, dotted in short_forms(record).items():
                target = tuple(dotted.split("."))
                if isinstance(at, dict) and short in at and loc[place : place + len(target)] == target:
                    return (*loc[:place], short, *loc[place + len(target) :])
    return loc


def _written(loc: Path, value: Any, *, missing: bool = False) -> tuple[list[str | int], list[int]]:
    """A location without the tags that pydantic adds for the members of a union, and the tags' places.

    Tags are what the data does not have, apart from a last key that is ``missing``.
    """
    path: list[str | int] = []
    tags = []
    for place, key in enumerate(loc):
        known = (
            range(len(value)) if isinstance(value, list | tuple) else value if isinstance(value, dict) else ()
        )
        if key in known:
            value = value[key]
        elif not missing or place < len(loc) - 1:
            tags.append(place)
            continue
        path.append(key)
    return path, tags


def item_at(value: Any, path: Path, otherwise: Any = None) -> Any:
    """The value at a path in plain data."""
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return otherwise
    return value


class _Told(NamedTuple):
    """What errors are told of: the arguments of ``validate``."""

    model: type[BaseModel]
    value: Any
    document: Document
    prefix: Path
    whole: type[BaseModel]

    def error(self, mistake: _Mistake) -> ScenarioError:
        """One mistake in our words."""
        what, hint = self._words(mistake)
        return ScenarioError(what, where=str(self.document.place([*self.prefix, *mistake.path])), hint=hint)

    def _words(self, mistake: _Mistake) -> tuple[str, str]:
        """What is wrong, and what to do about it."""
        path = [*self.prefix, *mistake.path]
        key = str(path[-1]) if path else ""
        context = mistake.context
        if mistake.kind == "extra_forbidden":
            return f"unknown key {key!r}", self._known_key(mistake.path)
        if mistake.kind == "missing":
            return _missing(path), ""
        if mistake.kind == "unknown_name":
            return mistake.message, context["hint"]
        if mistake.kind in {"value_error", "assertion_error"}:
            return str(context.get("error", mistake.message)), ""
        field = _field(self.model, self.value, mistake.path)
        asked = " or ".join(dict.fromkeys(mistake.musts)).replace(" or be ", " or ")
        asked = asked or must(mistake.kind, context, field) or ""
        if not asked:  # a type of error that a record has made up
            return f"{mistake.message}; got {quoted(mistake.given)}", ""
        whose = ".".join(map(str, path)) or "the file"
        hint = ""
        if mistake.kind in {"literal_error", "enum"}:
            words = context["expected"].replace(" or ", ",").split(",")
            near = closest(str(mistake.given), [word.strip(" '\"") for word in words])
            hint = f"did you mean {near!r}?" if near else ""
        elif mistake.kind in {"list_type", "tuple_type"} and isinstance(mistake.given, str):
            hint = f"write [{mistake.given}]"
        return f"{whose} must {asked}; got {quoted(mistake.given)}", hint

    def _known_key(self, path: Path) -> str:
        """A hint for an unknown key: the nearest of its record, where it belongs, or all of its record."""
        key = str(path[-1])
        known = _siblings(self.model, self.value, path)
        if closest(key, known):
            return nearest(key, known)
        data = self.document.data if self.prefix else self.value
        places = [".".join(place) for place in _places(self.whole, data, key)]
        if len(places) == 1:
            place, _, own = places[0].rpartition(".")
            return f"{own!r} is a key of {place!r}" if place else f"{own!r} is a key of the file itself"
        if known:
            return nearest(key, known)
        component = item_at(data, [*self.prefix, *path[:-1], "name"]) if self.prefix else None
        return f"{component} has no parameters" if component else "no keys are allowed here"


def _missing(path: Path) -> str:
    """What is wrong where a key, or an item of a list, is missing."""
    *above, last = path
    if isinstance(last, int):
        return f"{'.'.join(map(str, above))} must have at least {last + 1} items"
    return f"{last!r} is missing"


def _siblings(model: type[BaseModel], value: Any, path: Path) -> list[str]:
    """The keys that are valid in place of a path's last one."""
    found = _field(model, value, path[:-1])
    return sorted({name for record in _records(found) for name in keys_of(record)})


def keys_of(record: type[BaseModel]) -> list[str]:
    """The keys of a record, with those that are short for others."""
    return [*record.model_fields, *short_forms(record)]


def _field(model: type[BaseModel], value: Any, path: Path) -> Field:
    """What a record says of the value at a path."""
    current = Field(model)
    for key in path:
        value = item(value, key)
        current = _inner(current, key, value)
    return current


def _inner(field: Field, key: str | int, value: Any) -> Field:
    """What is said of a value under a key: a record that is found by name, or the field's annotation."""
    for record in _records(field, direct=True):
        if key in short_forms(record):
            return _field(record, None, short_forms(record)[str(key)].split("."))
        if key in record.model_fields:
            info = record.model_fields[str(key)]
            return _named(Field(info.annotation, info.metadata), value)
    return _named(field.element(key), value)


def _named(field: Field, value: Any) -> Field:
    """The record that a name decides; the field itself where none does."""
    for arm in field.arms():
        for note in arm.notes:
            if isinstance(note, ByName):
                try:
                    return Field(note.record(value))
                except ValueError:  # it has no known name, which is an error of its own
                    return field
    return field


def _records(field: Field, *, direct: bool = False) -> list[type[BaseModel]]:
    """The records that a value can be, or unless ``direct`` also those in a list or mapping of it."""
    found: list[type[BaseModel]] = []
    for arm in field.arms():
        if isinstance(arm.annotation, type) and issubclass(arm.annotation, BaseModel):
            found.append(arm.annotation)
        elif not direct and (inner := arm.element(0)) is not arm:
            found += _records(inner)
    return found


def _places(
    record: type[BaseModel], data: Any, key: str, above: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """The paths at which a record, or one below it, has a key, as far as the names in the data tell."""
    for name in keys_of(record):
        if name.casefold() == key.casefold():
            yield (*above, name)
    components = kinds(record)
    for name, info in record.model_fields.items():
        value = item(data, name)
        if value is None and info.default is None:  # a record that is left out
            continue
        if name in components:
            inner = _params(components[name], value, info.default)
        else:
            inner = _records(_named(Field(info.annotation, info.metadata), value), direct=True)
        for below in inner:
            yield from _places(below, value, key, (*above, name))


def _params(kind: str, value: Any, default: Any) -> list[type[BaseModel]]:
    """The parameters of a component as it is written, or of the default one; none if it has none."""
    name = item(value, "name") if isinstance(value, Mapping) else value or getattr(default, "name", None)
    try:
        params = getattr(catalogue.load(kind, name), "Params", None) if isinstance(name, str) else None
    except UserError:  # an unknown name is an error of its own
        return []
    return [params] if isinstance(params, type) and issubclass(params, BaseModel) else []
