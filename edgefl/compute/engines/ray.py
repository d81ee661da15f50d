"""Ray: workers on a Ray cluster, one thread each, on as many computers as it has; needs the extra `ray`."""

import os
from typing import Annotated

from pydantic import Field

from edgefl.compute.engines import Working
from edgefl.compute.job import Engine, EngineContext
from edgefl.core.host import needs


class Params(Working):
    address: Annotated[
        Annotated[str, Field(pattern=r"^(auto|.+:\d+)$")] | None,
        Field(description="the cluster's address: auto or host:port; null starts one on this computer"),
    ] = None

    def check(self) -> None:
        needs("ray", "the ray engine needs", where="engine.name")
        # The engine tells of a death that matters; Ray would print each, and reads this early.
        os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "A worker died or was killed")
        from edgefl.compute.on_ray import check_address

        check_address(self.address)

    def build(self, context: EngineContext) -> Engine:
        from edgefl.compute.on_ray import Cluster

        return Cluster(context, context.setup(self.trainer()), self.workers, self.address)
