"""Loop: one client after another, in this process: the reference."""

from __future__ import annotations

from edgefl.compute.engines._params import EngineParams
from edgefl.compute.job import Engine, EngineContext
from edgefl.compute.local import Local
from edgefl.compute.loop import Loop


class Params(EngineParams):
    """Loop has no parameters of its own."""


def build(params: Params, context: EngineContext) -> Engine:  # noqa: ARG001 - every engine is built the same way
    """The loop."""
    return Local(context, Loop(), ahead=False)
