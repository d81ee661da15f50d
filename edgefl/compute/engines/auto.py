"""Auto: stacks clients or trains one at a time, by the run's plan; in workers where it takes long."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field

from edgefl.compute.engines._params import Count, EngineParams, check_workers
from edgefl.core.errors import UserError


class Params(EngineParams):
    """Parameters for the engine that is chosen."""

    workers: Annotated[
        Count | None,
        Field(
            description="how many processes train, one thread each; null is one, or one per core if that pays"
        ),
    ] = None


def check(params: Params) -> None:
    """Checks that workers can be had before a run begins.

    Raises:
        UserError: there are too many, or several although the run trains on a GPU.
    """
    check_workers(params.workers)
    gpu = torch.cuda.is_available() if params.device == "auto" else params.device != "cpu"
    if gpu and (params.workers or 1) > 1:
        raise UserError(
            f"{params.workers} workers would train on the CPU, and this run trains on a GPU",
            where="engine.workers",
            hint="set engine.device to cpu, or leave out the workers",
        )
