"""How transfers share links and take their time."""

from __future__ import annotations

from typing import TypeAlias

from edgefl.world.network.direct import Direct
from edgefl.world.network.shared import Shared

Network: TypeAlias = Direct | Shared
"""Each has the same functions for the dispatcher and for the accounts."""
