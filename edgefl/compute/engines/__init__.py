"""Engines, which do the client work; one file each."""

from abc import abstractmethod
from typing import ClassVar

from edgefl.compute.job import Engine, EngineContext
from edgefl.core.params import Component


class EngineParams(Component):
    """The parameters of an engine."""

    TRAINS: ClassVar[bool] = True

    @abstractmethod
    def build(self, context: EngineContext) -> Engine:
        """The engine of a run."""

    def check(self) -> None:
        """Refuses, before the run, what this machine does not have; raises a ``UserError``."""
