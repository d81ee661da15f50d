"""Local training alone: nothing travels (the baseline of FedClassAvg's Table 2).

Compared fairly, it takes the same local epochs as the others. With a single client that holds all data
and a server that merges nothing, it is FedAvg.
"""

from edgefl.methods import MethodParams
from edgefl.protocol import Method, NetObjective, Site, averaging, local_training


class Params(MethodParams):
    def build(self, site: Site) -> Method:
        return averaging(site, local_training(site, NetObjective(site.net)), shared=())
