"""The codecs that a scenario names, one for each direction."""

from __future__ import annotations

from typing import Literal

from edgefl.core.components import resolve
from edgefl.core.errors import ScenarioError, UserError
from edgefl.core.params import Component
from edgefl.core.scenario import Wire
from edgefl.core.yamls import Document
from edgefl.protocol.codec import Codec


def codec(wire: Wire, way: Literal["down", "up"], document: Document) -> Codec:
    """The codec of one direction.

    Raises:
        UserError: the name or a parameter is wrong, or the codec cannot be used in that direction.
    """
    path = ["wire", way]
    component: Component = getattr(wire, way)
    module, params = resolve("codecs", component, document, path)
    where = str(document.place(path))
    found = Codec(component, module, params, where)
    if way == "down" and found.needs_reference:
        raise ScenarioError(
            f"{component.name!r} cannot carry what clients receive: it codes the difference from a payload "
            "that both ends already have, and on the way down there is none",
            where=where,
            hint="use it for wire.up, where both ends have the payload that the client received",
        )
    if not hasattr(module, "sizes"):
        raise UserError(f"the codec {component.name!r} has no function 'sizes'", where=str(module.__file__))
    if not hasattr(module, "carried") and not (hasattr(module, "encode") and hasattr(module, "decode")):
        raise UserError(
            f"the codec {component.name!r} has neither a function 'carried' nor 'encode' and 'decode'",
            where=str(module.__file__),
        )
    return found
