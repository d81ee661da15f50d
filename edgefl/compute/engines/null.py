"""Null: no training; the clock and the costs alone."""

from edgefl.compute.engines import EngineParams
from edgefl.compute.job import Engine, EngineContext


class Params(EngineParams):
    TRAINS = False

    def build(self, context: EngineContext) -> Engine:
        raise NotImplementedError  # nothing is trained
