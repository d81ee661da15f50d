"""Auto: the fastest engine for this run on this machine, by a short measurement whose result is kept."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from edgefl.compute.engines._params import Count, EngineParams


class Params(EngineParams):
    """Parameters for the engine that is chosen."""

    workers: Annotated[Count | None, Field(description="the most workers; null is one per core")] = None
