"""Auto: stacks clients or trains one at a time, by the run's plan; in workers where it takes long."""

from typing import Annotated

import torch
from pydantic import Field

from edgefl.compute.engines import TrainingParams, Workers
from edgefl.compute.job import Engine, EngineContext
from edgefl.core.errors import UserError


class Params(TrainingParams):
    workers: Annotated[
        Workers | None,
        Field(
            description="how many processes train, one thread each; null is one, or one per core if that pays"
        ),
    ] = None

    def build(self, context: EngineContext) -> Engine:
        raise NotImplementedError  # another engine is chosen in its place

    def check(self) -> None:
        gpu = torch.cuda.is_available() if self.device == "auto" else self.device != "cpu"
        if gpu and (self.workers or 1) > 1:
            raise UserError(
                f"{self.workers} workers would train on the CPU, and this run trains on a GPU",
                where="engine.workers",
                hint="set engine.device to cpu, or leave out the workers",
            )
