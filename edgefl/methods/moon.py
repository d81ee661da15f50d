"""MOON: representations closer to the received model's than to the client's previous one's (Li et al. 2021).

A step minimises the base's objective + mu * l_con (Section 3.3 and Algorithm 1)::

    l_con = mean_i -log[e^(cos(h, h_w) / tau) / (e^(cos(h, h_w) / tau) + e^(cos(h, h_v) / tau))]

h is what the training model's head gets of a sample, h_w and h_v are the same of the received model w and of
the model v that the client trained last. The paper's projection head is the last layers of a model's
body, as in fedcka_cnn. Two forward passes of the frozen models, in evaluation mode; gradients flow through h
alone.

The paper's v of a client that takes part for the first time is open. Here it is w, so that the term is log 2
and has no gradient; the authors' code begins with random models. A client that is rarely asked has an old v:
its state has the round that v is from.
"""

from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from edgefl.core.components import AnyMethod
from edgefl.methods import MethodParams
from edgefl.protocol import Carry, Method, Seen, Site, frozen, needs_received, with_previous
from edgefl.protocol.similarities import contrast, cosine


class Params(MethodParams):
    NEUTRAL: ClassVar = {"mu": 0.0}

    mu: Annotated[float, Field(ge=0, description="weight of the term; 0 is the base method")] = 1.0
    tau: Annotated[float, Field(gt=0, description="temperature of the contrastive term")] = 0.5
    base: Annotated[AnyMethod, Field(description="the method whose objective has the term")] = "fedavg"

    def build(self, site: Site) -> Method:
        """Raises a ``UserError`` if the base leaves the body with its clients."""
        net = site.net

        def loss(seen: Seen, carry: Carry) -> Tensor:
            received, previous = (
                cosine(seen.features, frozen(seen.net, carry["moon"][model], seen.x)[0]) / self.tau
                for model in ("received", "previous")
            )
            return self.mu * contrast(received, previous).mean()

        if not self.mu:
            return site.base(net)
        base = site.base(net.with_term(loss))
        needs_received("moon", base, self.base, net, ("body",))
        return with_previous(base, "moon", net, lambda weights: weights)
