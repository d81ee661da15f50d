"""Null: no training; the clock and the costs alone."""

from __future__ import annotations

from edgefl.compute.engines import EngineParams


class Params(EngineParams):
    """Null has no parameters."""

    TRAINS = False
