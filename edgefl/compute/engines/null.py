"""Null: no training; the clock, the costs and the ledger alone."""

from __future__ import annotations

from edgefl.core.params import Strict


class Params(Strict):
    """Null has no parameters."""
