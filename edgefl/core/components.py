"""Component names resolved to modules and validated parameters."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from edgefl.core import catalogue
from edgefl.core.errors import Mistakes, UnknownNameError, UserError, closest, nearest
from edgefl.core.params import Component, NameOf, OfKind, Strict, kinds
from edgefl.core.validation import validate
from edgefl.core.wording import Field
from edgefl.core.yamls import Document

R = TypeVar("R", bound=Strict)


class Nothing(Strict):
    """No parameters: of a component without ``Params``."""


def read(record: type[R], data: Any, document: Document) -> R:
    """Validates a record, with the names in it and the parameters of its components.

    Names are matched without regard to case; the record has them as their files are spelled.

    Args:
        record: the record's class.
        data: plain data.
        document: its source, for messages.

    Raises:
        UserError: the first mistake, with all others.
    """
    mistakes = Mistakes()
    data = copy.deepcopy(data)
    names = list(_names(record, data))
    unknown = [name for name in names if not name.spelled(document, mistakes)]
    with mistakes.collected():
        found = validate(record, data, document)
    for name in names:
        component = name.component()
        # Engines have checks of their own, before their parameters are read.
        if component and name not in unknown and name.note.kind != "engines":
            with mistakes.collected():
                resolve(name.note.kind, component, document, name.path, record)
    mistakes.check()
    return found


class _Name(NamedTuple):
    """A name in plain data.

    Attributes:
        holder: what holds it, or the component that has it.
        key: its key there.
        path: the value's path.
        note: what it is the name of.
        own: names that the data itself defines.
    """

    holder: Any
    key: str | int
    path: tuple[str | int, ...]
    note: NameOf | OfKind
    own: Sequence[str]

    def spelled(self, document: Document, mistakes: Mistakes) -> bool:
        """Spells the name as its file does; whether it is known, or no name at all."""
        value = self.holder[self.key]
        name = value.get("name") if isinstance(value, dict) else value
        if self.note.kind == "datasets" and isinstance(name, str) and "/" in name:
            # A folder of images is a dataset by its path.
            given = value if isinstance(value, dict) else {}
            value = self.holder[self.key] = {**given, "name": "folder", "path": name}
        holder, key, path = self.holder, self.key, self.path
        if isinstance(value, dict):
            holder, key, path = value, "name", (*path, "name")
        name = holder.get(key) if isinstance(holder, dict) else holder[key]
        if not isinstance(name, str) or name in self.own:
            return True
        try:
            holder[key] = as_its_file(self.note.kind, name, self.own, str(document.place(path)))
        except UnknownNameError as error:
            mistakes.add(error)
            return False
        return True

    def component(self) -> Component | None:
        """The component of this name; None if it is none, or is wrong."""
        try:
            found = Component.model_validate(self.holder[self.key])
        except ValidationError:
            return None
        return found if isinstance(self.note, OfKind) else None


def as_its_file(kind: str, name: str, own: Sequence[str], where: str) -> str:
    """A known name as it is spelled where it is defined; hyphens and underscores stay.

    Raises:
        UnknownNameError: it is not known.
    """
    folded = {each.casefold(): each for each in own}
    if name.casefold() in folded:
        return folded[name.casefold()]
    try:
        entry = catalogue.find(kind, name, where=where)
    except UnknownNameError as error:
        hint = nearest(name, own) if closest(name, own) else error.hint
        raise UnknownNameError(error.what, where=where, hint=hint) from None
    return name if name.replace("_", "-") == entry.name else entry.name


def _names(
    record: type[BaseModel], data: Any, path: tuple[str | int, ...] = (), above: Sequence[Any] = ()
) -> Iterator[_Name]:
    """All names in a record's data, of components and of files."""
    if not isinstance(data, dict):
        return
    above = (data, *above)
    for key, info in record.model_fields.items():
        if key not in data:
            continue
        notes = [note for note in info.metadata if isinstance(note, NameOf | OfKind)]
        for holder, place, below in _each(data, key, (*path, key)):
            if notes and (isinstance(notes[0], OfKind) or isinstance(holder[place], str)):
                own = [name for one in above for name in _own(one, notes[0])]
                yield _Name(holder, place, below, notes[0], own)
            for arm in Field(info.annotation).arms():
                inner = [arm.annotation, *(each.annotation for each in arm.element(0).arms())]
                for one in dict.fromkeys(inner):
                    if isinstance(one, type) and issubclass(one, Strict):
                        yield from _names(one, holder[place], below, above)


def _each(
    data: Any, key: str | int, path: tuple[str | int, ...]
) -> Iterator[tuple[Any, str | int, tuple[str | int, ...]]]:
    """A value by its holder, key and path; of a list, each of its items."""
    value = data[key]
    if not isinstance(value, list):
        yield data, key, path
        return
    for place in range(len(value)):
        yield value, place, (*path, place)


def _own(data: Any, note: NameOf | OfKind) -> list[str]:
    own = data.get(note.own) if isinstance(note, NameOf) and note.own else None
    return list(own) if isinstance(own, dict) else []


def resolve(
    kind: str,
    component: Component,
    document: Document,
    path: Sequence[str | int],
    whole: type[BaseModel] | None = None,
) -> tuple[ModuleType, Any]:
    """The module a component names, and its validated parameters.

    Args:
        kind: the catalogue's kind, such as "methods".
        component: its name and parameters.
        document: the source, for messages.
        path: its path there.
        whole: the record of the whole document, where a parameter that is none may be a key.

    Raises:
        UserError: the name is unknown or a parameter is wrong.
    """
    module = catalogue.load(kind, component.name, where=str(document.place([*path, "name"])))
    params = getattr(module, "Params", Nothing)
    if not (isinstance(params, type) and issubclass(params, Strict)):
        raise UserError(
            f"the Params of {component.name!r} must derive from edgefl.core.params.Strict",
            where=str(module.__file__),
        )
    return module, validate(params, component.params, document, path, whole)


def completed(record: R, document: Document, path: Sequence[str | int] = ()) -> R:
    """The record with all parameters of its components written out, defaults too, as plain data.

    Raises:
        UserError: see ``resolve``.
    """
    update: dict[str, Any] = {}
    of_kind = kinds(type(record))
    for key in type(record).model_fields:
        value = getattr(record, key)
        if key in of_kind:
            update[key] = _completed(of_kind[key], value, document, [*path, key])
        elif isinstance(value, Strict):
            update[key] = completed(value, document, [*path, key])
    return record.model_copy(update=update)


def _completed(kind: str, value: Any, document: Document, path: Sequence[str | int]) -> Any:
    if value is None:
        return None
    if isinstance(value, tuple):
        return tuple(_completed(kind, one, document, [*path, place]) for place, one in enumerate(value))
    return value.completed(resolve(kind, value, document, path)[1])


def merges_stale(policy: Any, params: Any) -> bool:
    """Whether a policy's module says, for its parameters, that it merges uploads from older versions."""
    stale = getattr(policy, "STALE", False)
    return bool(stale(params) if callable(stale) else stale)
