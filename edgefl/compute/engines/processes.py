"""Processes: workers on this machine, one thread each, with data and server state in shared memory."""

from edgefl.compute.engines import Working
from edgefl.compute.job import Engine, EngineContext
from edgefl.compute.parallel import Processes
from edgefl.core.host import cores


class Params(Working):
    def build(self, context: EngineContext) -> Engine:
        return Processes(context, context.setup(self.trainer()), self.workers or cores())
