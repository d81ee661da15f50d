"""Component names resolved to modules and validated parameters."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from edgefl.core import catalogue
from edgefl.core.errors import UserError
from edgefl.core.params import Component, Strict
from edgefl.core.yamls import Document, validate


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
