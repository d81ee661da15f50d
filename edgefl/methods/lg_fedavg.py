"""LG-FedAvg: the head is averaged, bodies stay with their clients and may differ.

Think Locally, Act Globally: Federated Learning with Local and Global Representations (Liang et al. 2020),
Algorithm 1: a client trains its local representation and the received global model together, sends the global
model alone, and the server averages it by samples. Here the local representation is the body with its running
statistics, the global model the head; a client's own model is its body under the averaged head. Models of one
federation need one feature width only.

The authors' code starts from a model that FedAvg trained for some rounds; here training starts from random
weights, as in the algorithm.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from edgefl.methods import MethodParams
from edgefl.protocol import BUFFERS, Method, NetObjective, Site, averaging, local_training


class Params(MethodParams):
    NEUTRAL: ClassVar = {"share_body": True}

    share_body: Annotated[bool, Field(description="whether the body is averaged too; true is FedAvg")] = False

    def build(self, site: Site) -> Method:
        train = local_training(site, NetObjective(site.net))
        shared = (*site.net.trained, BUFFERS) if self.share_body else ("head",)
        return averaging(site, train, shared=shared)
