"""Names of a scenario turned into code and checked parameters."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from edgefl.core import catalogue
from edgefl.core.errors import UserError
from edgefl.core.params import Component, Strict
from edgefl.core.yamls import Document, validate


class Nothing(Strict):
    """The parameters of a component that declares none."""


def resolve(
    kind: str, component: Component, document: Document, path: Sequence[str | int]
) -> tuple[ModuleType, Any]:
    """The module a component names, and its validated parameters.

    Args:
        kind: the catalogue's kind, such as "methods".
        component: name and parameters.
        document: where it was written, for messages.
        path: its place there.

    Raises:
        UserError: the name is unknown or a parameter is wrong.
    """
    module = catalogue.load(kind, component.name, where=str(document.place([*path, "name"])))
    params = getattr(module, "Params", Nothing)
    if not (isinstance(params, type) and issubclass(params, Strict)):
        raise UserError(f"the Params of {component.name!r} is no Strict record", where=str(module.__file__))
    return module, validate(params, component.params, document, path)
