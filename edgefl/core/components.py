"""Component names resolved to modules and validated parameters."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, TypeVar

from edgefl.core import catalogue
from edgefl.core.errors import UserError
from edgefl.core.params import Component, Strict, kinds
from edgefl.core.validation import validate
from edgefl.core.yamls import Document

R = TypeVar("R", bound=Strict)


class Nothing(Strict):
    """No parameters: of a component without ``Params``."""


def resolve(
    kind: str, component: Component, document: Document, path: Sequence[str | int]
) -> tuple[ModuleType, Any]:
    """The module a component names, and its validated parameters.

    Args:
        kind: the catalogue's kind, such as "methods".
        component: its name and parameters.
        document: the source, for messages.
        path: its path there.

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
    return module, validate(params, component.params, document, path)


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
    if isinstance(value, tuple):
        return tuple(_completed(kind, one, document, [*path, place]) for place, one in enumerate(value))
    return value.completed(resolve(kind, value, document, path)[1])


def merges_stale(policy: Any, params: Any) -> bool:
    """Whether a policy's module says, for its parameters, that it merges uploads from older versions."""
    stale = getattr(policy, "STALE", False)
    return bool(stale(params) if callable(stale) else stale)
