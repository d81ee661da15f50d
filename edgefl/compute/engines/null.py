"""Null: no training; the clock and the costs alone."""

from __future__ import annotations

from edgefl.core.params import Component


class Params(Component):
    """Null has no parameters."""
