"""Some clients are always rarer than others: each has a persistent lognormal probability, T / max T.

Ribero et al. 2022 (arXiv:2205.06730), whose T is lognormal(0, -ln(1 - beta)); FLGo's mode LN. Its state is
drawn anew every round; here, in continuous time, at the events of a Poisson process, once an hour in the mean
(assumed).
"""

from pydantic import Field

from edgefl.core.arrays import Floats
from edgefl.core.availability import ByShare, relative_lognormal
from edgefl.core.clients import Clients


class Params(ByShare):
    sigma: float = Field(0.7, ge=0, le=10, description="of the distribution; -ln(1 - beta) in the paper")

    def relative(self, clients: Clients, root: int) -> Floats:
        return relative_lognormal(root, len(clients), self.sigma)
