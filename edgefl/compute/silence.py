"""Notices workers that are silent because somebody stopped them: they neither work nor end.

The driver looks while it waits for answers. Time is counted in its own looks, so that none passes while it is
stopped itself, as by Ctrl-Z. A long job is not silence.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgefl.core.notes import LOG

# How long the driver waits for an answer before it looks, and how long a worker may be silent.
LOOK_S = 5.0
LIMIT_S = 60.0


class Silence:
    """How long each worker has been silent."""

    def __init__(self) -> None:
        self._silent_s: dict[int, float] = {}

    def look(self, silent: Mapping[int, str]) -> list[int]:
        """Adds a look, and says on the log who is silent for the first time.

        Args:
            silent: the workers that are silent now, by number, and what to call them.

        Returns:
            Those that have been silent for too long, to be given up.
        """
        for number, name in silent.items():
            if number not in self._silent_s:
                LOG.warning(
                    "%s is stopped; unless it continues within %.0f s, another does its work", name, LIMIT_S
                )
        self._silent_s = {number: self._silent_s.get(number, 0.0) + LOOK_S for number in silent}
        return [number for number, silent_s in self._silent_s.items() if silent_s >= LIMIT_S]


def given_up() -> str:
    """How such a worker ended, for messages."""
    return f"it was stopped for {LIMIT_S:.0f} s"
