"""FedProx: a pull towards the received weights (Li et al. 2020, Equation 2).

A step minimises the base's objective + (mu / 2) * ||w - w_received||^2 over all trained parts. Of parts that
stay with a client, w_received is what it began the round with.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from edgefl.core.components import AnyMethod
from edgefl.methods import MethodParams
from edgefl.protocol import Method, Site, anchored, needs_received, proximal_term


class Params(MethodParams):
    NEUTRAL: ClassVar = {"mu": 0.0}

    mu: Annotated[float, Field(ge=0, description="strength of the pull; 0 is the base method")] = 0.01
    base: Annotated[AnyMethod, Field(description="the method whose objective is pulled")] = "fedavg"

    def build(self, site: Site) -> Method:
        """Raises a ``UserError`` if clients of the base receive none of the trained parts."""
        net = site.net
        if not self.mu:
            return site.base(net)
        base = site.base(net.with_term(proximal_term(net, self.mu)))
        needs_received("fedprox", base, self.base, net, net.trained)
        return anchored(base, net, net.trained)
