"""Loop: one client after another, in this process: the reference."""

from edgefl.compute.engines import TrainingParams
from edgefl.compute.job import Engine, EngineContext, Local
from edgefl.compute.loop import Loop


class Params(TrainingParams):
    def build(self, context: EngineContext) -> Engine:
        return Local(context, Loop(), ahead=False)
