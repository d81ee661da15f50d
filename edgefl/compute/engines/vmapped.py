"""Vmapped: many clients of one model at once, their weights stacked; for small models, and on a GPU."""

from edgefl.compute.engines import Stacking
from edgefl.compute.job import Engine, EngineContext, Local
from edgefl.compute.vmapped import Vmapped


class Params(Stacking):
    def build(self, context: EngineContext) -> Engine:
        return Local(context, Vmapped(self.group, int(self.memory)), ahead=True)
