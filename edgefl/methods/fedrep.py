"""FedRep: the body is averaged, and a client trains its own head before the body.

Exploiting Shared Representations for Personalized Federated Learning (Collins et al. 2021, Algorithm 1): a
client takes head steps with the received body frozen, then body steps with its new head frozen, sends the
body and keeps the head. The server averages bodies by samples; in Algorithm 1 all clients have equally many.

Each phase has an optimizer state of its own. Batch norm is in training mode in both, as in the authors' code:
a frozen body normalises by its batches, its running statistics move in both phases, and they travel and are
averaged with the body. A job that is cut short loses the end of its body phase first.
"""

from typing import Annotated

from pydantic import Field

from edgefl.core.steps import Passes
from edgefl.methods import MethodParams
from edgefl.protocol import BUFFERS, GradientStep, Method, NetObjective, Phase, Site, averaging, needs_trained


class Params(MethodParams):
    head_epochs: Annotated[int, Field(ge=0, description="epochs of the head at a frozen body")] = 10
    body_epochs: Annotated[
        int | None,
        Field(ge=1, description="epochs of the body at a frozen head; null is the length of local training"),
    ] = None

    def build(self, site: Site) -> Method:
        """Raises a ``UserError`` if the net has no body, or its head is fixed."""
        needs_trained("fedrep", site.net, "head", "body")
        objective, optimizer = NetObjective(site.net), site.local.optimizer
        length = site.local.passes if self.body_epochs is None else Passes(epochs=self.body_epochs)
        head = Phase("head", GradientStep(objective, optimizer, ("head",)), Passes(epochs=self.head_epochs))
        body = Phase("body", GradientStep(objective, optimizer, ("body",)), length)
        return averaging(site, head, body, shared=("body", BUFFERS))
