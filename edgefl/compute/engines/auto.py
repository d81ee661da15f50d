"""Auto: the fastest of the others for this work on this machine, by a short measurement that is kept."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from edgefl.compute.engines._params import Count, EngineParams


class Params(EngineParams):
    """What the chosen engine is given."""

    workers: Annotated[Count | None, Field(description="the most workers; null is one a core")] = None
