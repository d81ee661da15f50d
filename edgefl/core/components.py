"""Fields that name a component, such as a method, a device's cost model or a link: read with its file.

The name decides whose ``Params`` the field has; one pass validates a scenario with all of its components.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import ModuleType, NoneType
from typing import Annotated, Any, TypeAlias, TypeVar, get_args

from pydantic import (
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    Tag,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from edgefl.core import catalogue
from edgefl.core.errors import UnknownNameError, UserError, closest, nearest
from edgefl.core.params import Component, Strict
from edgefl.core.validation import validate
from edgefl.core.yamls import RECORDED, WRITTEN, Document


class _Recorded(Component):
    """A component of a run that is read, whose file is not loaded: importing torch takes seconds."""

    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True)
class OfKind:
    """Annotates a field that names a component, by ``key``, with the catalogue's kind, such as "methods"."""

    kind: str
    # Where a mapping has no name; "" where it must have one.
    default: str = ""
    key: str = "name"

    def read(self, value: Any, info: ValidationInfo) -> Any:
        """The component that plain data name, or ``Component(name=...)``, as its file's ``Params``."""
        value = value.name if type(value) is Component else value
        if isinstance(value, Strict):
            return value
        given = {self.key: value} if isinstance(value, str) else value
        if not isinstance(given, Mapping):
            told = "Input should be a name, or a mapping with a name and parameters"
            raise PydanticCustomError("component", told)
        name = given.get(self.key, self.default)
        if not isinstance(name, str) or not name:
            problem = PydanticCustomError("name", "Input should be a name") if name else "missing"
            raise self._at_key(name, problem)
        if self.kind == "datasets" and "/" in name:
            # A folder of images is a dataset by its path.
            given, name = {"path": name, **given}, "folder"
        if info.context == RECORDED and self.kind not in catalogue.LIGHT:
            return _Recorded.model_validate({**given, self.key: name})
        try:
            entry = catalogue.find(self.kind, name)
        except UnknownNameError as error:
            if isinstance(value, str):
                raise
            raise self._at_key(name, "value_error", error=error) from None
        params = params_of(self.kind, catalogue.module_of(self.kind, entry))
        return params.model_validate({**given, self.key: entry.name}, context=info.context)

    def _at_key(self, name: Any, problem: str | PydanticCustomError, **context: Any) -> ValidationError:
        details = InitErrorDetails(type=problem, loc=(self.key,), input=name, ctx=context)
        return ValidationError.from_exception_data("component", [details])

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Reads with the file's record, and checks that it is one of the field's type."""
        read = core_schema.with_info_before_validator_function(self.read, handler(source))
        return core_schema.nullable_schema(read) if NoneType in get_args(source) else read

    def __get_pydantic_json_schema__(self, *_: Any) -> dict[str, Any]:
        """Its kind; see ``planning.schema``."""
        return {"component": self.kind, "default_name": self.default}


def params_of(kind: str, module: ModuleType) -> type[Component]:
    """The record of a component's parameters, whose methods are what it does; raises where it lacks one."""
    base, found = catalogue.base_of(kind), getattr(module, "Params", None)
    one, where = f"this {catalogue.singular(kind)}", str(module.__file__)
    hint = "docs/extending.md has an example of each kind"
    if not (isinstance(found, type) and issubclass(found, base)):
        what = f"{one} has no class Params derived from {base.__module__}.{base.__name__}"
        raise UserError(what, where=where, hint=hint)
    if lacks := ", ".join(map(repr, sorted(getattr(found, "__abstractmethods__", ())))):
        raise UserError(f"the Params of {one} lack {lacks}", where=where, hint=hint)
    return found


# The names of a fleet's own links, beside the catalogue's.
_OWN_LINKS: ContextVar[Sequence[str]] = ContextVar("own_links", default=())


@contextmanager
def own_links(links: Any) -> Iterator[None]:
    """Inside, the keys of a mapping are known as names of links."""
    token = _OWN_LINKS.set(list(links) if isinstance(links, Mapping) else [])
    try:
        yield
    finally:
        _OWN_LINKS.reset(token)


@dataclass(frozen=True)
class NameOf:
    """Annotates a text that names a file of the catalogue's, such as a device; it is spelled as the file."""

    kind: str

    def _read(self, name: str, info: ValidationInfo) -> str:
        # Others are spelled right already; and a cluster's worker may lack the user's own.
        if info.context != WRITTEN:
            return name
        return as_its_file(self.kind, name, _OWN_LINKS.get() if self.kind == "links" else ())

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_after_validator_function(self._read, handler(source))


def as_its_file(kind: str, name: str, own: Sequence[str] = (), where: str = "") -> str:
    """A known name as it is spelled where it is defined; raises an ``UnknownNameError`` for others."""
    folded = {each.casefold(): each for each in own}
    if name.casefold() in folded:
        return folded[name.casefold()]
    try:
        return catalogue.find(kind, name, where=where).name
    except UnknownNameError as error:
        hint = nearest(name, own) if closest(name, own) else error.hint
        raise UnknownNameError(error.what, where=where, hint=hint) from None


def component(kind: str, value: Any, document: Document, path: Sequence[str | int] = ()) -> Any:
    """A component by its name, or as a mapping with its parameters, found at ``path`` in a document."""
    one: Any = Annotated[Component, OfKind(kind)]
    return validate(one, value, document, path)


DEFAULT = Field(validate_default=True)
"""Annotates a field whose default is a component's name."""

AnyMethod: TypeAlias = Annotated[Any, OfKind("methods"), DEFAULT]
AnyAugmentation: TypeAlias = Annotated[Any, OfKind("augmentations")]

One = TypeVar("One")
OneOrMany: TypeAlias = Annotated[
    Annotated[One, Tag("<one>")] | Annotated[tuple[One, ...], Field(min_length=1), Tag("<many>")],
    Discriminator(lambda value: "<many>" if isinstance(value, list | tuple) else "<one>"),
    DEFAULT,
]
