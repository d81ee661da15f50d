"""Loop: one client after another, in this process: the reference."""

from __future__ import annotations

from edgefl.compute.engines._params import EngineParams
from edgefl.compute.job import Bench, Engine
from edgefl.compute.local import Local
from edgefl.compute.loop import Loop


class Params(EngineParams):
    """Loop has no parameters of its own."""


def build(params: Params, bench: Bench) -> Engine:  # noqa: ARG001 - every engine is built the same way
    """The loop on a bench."""
    return Local(bench, Loop(), ahead=False)
