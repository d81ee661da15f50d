"""Engines, which do the client work; one file each."""

from __future__ import annotations

from typing import ClassVar

from edgefl.compute.job import Engine, EngineContext
from edgefl.core.params import Component


class EngineParams(Component):
    """The parameters of an engine; what trains nothing, or is replaced by another, builds none."""

    TRAINS: ClassVar[bool] = True

    def build(self, context: EngineContext) -> Engine:
        """The engine of a run."""
        raise NotImplementedError

    def check(self) -> None:
        """Refuses, before the run, what this machine does not have; raises a ``UserError``."""
