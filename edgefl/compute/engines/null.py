"""Null: no training; the clock and the costs alone."""

from __future__ import annotations

from edgefl.core.params import Strict


class Params(Strict):
    """Null has no parameters."""
