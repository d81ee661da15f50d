"""FedPer: the body is averaged, every client keeps a head of its own (Arivazhagan et al. 2019, Algorithm 1).

Federated Learning with Personalization Layers: base layers are averaged by samples, personalization layers
never leave their client, and local training updates both at once. The personalization layers are the head
here; the paper also tries more layers. Batch norm's running statistics travel with the body.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from edgefl.methods import MethodParams
from edgefl.protocol import BUFFERS, Method, NetObjective, Site, averaging, local_training


class Params(MethodParams):
    NEUTRAL: ClassVar = {"share_head": True}

    share_head: Annotated[bool, Field(description="whether the head is averaged too; true is FedAvg")] = False

    def build(self, site: Site) -> Method:
        train = local_training(site, NetObjective(site.net))
        shared = (*site.net.trained, BUFFERS) if self.share_head else ("body", BUFFERS)
        return averaging(site, train, shared=shared)
