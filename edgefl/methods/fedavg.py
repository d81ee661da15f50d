"""FedAvg: train everything locally, average it at the server (McMahan et al. 2017, Algorithm 1).

w <- sum_k p_k w_k with p_k = n_k over the samples of the round's participants; momentum restarts every
round; batch norm's running statistics travel and are averaged with the weights.
"""

from typing import ClassVar

from edgefl.methods import MethodParams
from edgefl.protocol import BUFFERS, Method, NetObjective, Site, averaging, local_training


class Params(MethodParams):
    NEUTRAL: ClassVar = {}

    def build(self, site: Site) -> Method:
        train = local_training(site, NetObjective(site.net))
        return averaging(site, train, shared=(*site.net.trained, BUFFERS))
